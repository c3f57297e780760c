"""Symptom `tag_not_understood`: a tag for Mendq has a key or a value that Mendq does not know.

The fault: somebody wrote a tag to steer Mendq and made a mistake, such as `mendq=Heal`, `5m` for a
number of seconds, or a misspelt key. Mendq does not do what they expect.

How it shows: in the queue's tags alone. Mendq knows `TAGS_OF_EVERY_QUEUE` and the tags that
symptoms declare. Every other key `mendq:...`, or one of these in other upper or lower case, is a
mistake.

What Mendq does: it reports the tag. It never writes tags, because only the author knows what the
tag should say. An unknown word counts as the most careful one: a mode that cannot be read is
`observe`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# Imported as a module: its list of symptoms imports this file, and `list_known_tags` is called only
# later.
from mendq import catalogue
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG
from mendq.catalogue.examples import queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG
from mendq.model.facts import Facts
from mendq.model.severity_class import SeverityClass
from mendq.model.tags import (
    DRILL_TAG,
    MODE_TAG,
    TEAM_TAG,
    QueueTag,
    TagUnreadable,
    TagValueKind,
    read_seconds_tag,
)
from mendq.notifications.text import format_value, limit_lines

# At most this many characters of a key or a value are shown.
_MOST_SHOWN_VALUE_CHARACTERS = 40


def describe_tag_mistakes(tags: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each Mendq tag with an unknown key or value.

    Keys and values are escaped and shortened, because anybody who may tag the queue can write them.

    Args:
        tags: A queue's tags. Leave out the tag that names a team if the settings have that team:
            this function does not know the settings, so it reports every team as unknown.
    """
    tag_by_key = catalogue.list_known_tags()
    for key, tag_value in sorted(tags.items()):
        tag = tag_by_key.get(key)
        if tag is not None:
            yield from _describe_value_mistake(tag, tag_value)
        elif key.lower().partition(":")[0] == MODE_TAG:
            yield f"{format_value(key, _MOST_SHOWN_VALUE_CHARACTERS)} is no tag that Mendq knows"


def _describe_value_mistake(tag: QueueTag, tag_value: str) -> Iterator[str]:
    """Yield a sentence if a tag that Mendq knows has a value that Mendq does not know."""
    sentence_start = (
        f"the tag {tag.key} says {format_value(tag_value, _MOST_SHOWN_VALUE_CHARACTERS)}"
    )
    if tag.values is TagValueKind.SECONDS:
        try:
            read_seconds_tag({tag.key: tag_value}, tag.key)
        except TagUnreadable as unreadable:
            yield str(unreadable)
    elif tag.values is TagValueKind.TEAM:
        yield f"{sentence_start}, which is no team of the settings"
    elif tag.values is TagValueKind.WORD and tag_value not in tag.words:
        yield (
            f"{sentence_start}, which is none of {', '.join(tag.words)}: it is taken for "
            f"{tag.words[-1]}"
        )


def detect(facts: Facts) -> DetectedFault | None:
    """Report the first three tags with a mistake."""
    tag_mistakes = limit_lines(describe_tag_mistakes(facts.tags), 3)
    return DetectedFault("; ".join(tag_mistakes)) if tag_mistakes else None


TAG_NOT_UNDERSTOOD = ReportedSymptom(
    name="tag_not_understood",
    sentence="A tag of Mendq's on the queue says nothing that Mendq knows.",
    plan_in_words="Report it; a mode that cannot be read is taken for observe.",
    first_step="Correct the tag's name or value.",
    aws_page=f"{SQS_GUIDE}/sqs-queue-tags.html",
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(detect, is_of_configuration=True),
    examples=lambda: (
        QueueExample("a mode in upper case", queue({"mendq": "Heal"})),
        QueueExample("no whole seconds", queue({MAX_PROCESSING_TAG: "5m"})),
        QueueExample("a word that redrive does not know", queue({REDRIVE_TAG: "yes"})),
        QueueExample("no tag of Mendq's", queue({"mendq:typo": "1"})),
        QueueExample("a team that the settings lack", queue({TEAM_TAG: "payments"})),
        QueueExample("its key in upper case", queue({"Mendq": "heal"})),
        QueueNearMiss("every tag as it may be", queue({"mendq": "heal", REDRIVE_TAG: "off"})),
        QueueNearMiss("a number of seconds", queue({MAX_VISIBILITY_TAG: "900", DRILL_TAG: "true"})),
        QueueNearMiss("somebody else's tags", queue({"mendquery": "Heal", "team": "mendq"})),
    ),
)
