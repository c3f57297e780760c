"""A tag of Mendq's says nothing that Mendq knows; reported, because only its author knows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# A module, because its list of symptoms imports this file. `known_tags` is called later.
from mendq import catalogue
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG
from mendq.catalogue.examples import queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG
from mendq.model.facts import Facts
from mendq.model.limits import DRILL_TAG, MODE_TAG, TEAM_TAG, TagUnreadable, read_seconds_tag
from mendq.model.tags import QueueTag, TagValues
from mendq.notifications.text import first_of, value

_MOST = 40


def not_understood(tags: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with each tag of Mendq's that means nothing; others' text is quoted.

    Args:
        tags: A queue's tags without the one that names a team of the settings: the catalogue does
            not know the settings, so it takes every team for an unknown one.
    """
    known = catalogue.known_tags()
    for key, text in sorted(tags.items()):
        tag = known.get(key)
        if tag is not None:
            yield from _mistakes_in(tag, text)
        elif key.lower().partition(":")[0] == MODE_TAG:
            yield f"{value(key, _MOST)} is no tag that Mendq knows"


def _mistakes_in(tag: QueueTag, text: str) -> Iterator[str]:
    """Yield what is wrong with the value of a tag that Mendq knows."""
    says = f"the tag {tag.key} says {value(text, _MOST)}"
    if tag.values is TagValues.SECONDS:
        try:
            read_seconds_tag({tag.key: text}, tag.key)
        except TagUnreadable as unreadable:
            yield str(unreadable)
    elif tag.values is TagValues.TEAM:
        yield f"{says}, which is no team of the settings"
    elif tag.values is TagValues.WORD and text not in tag.words:
        yield f"{says}, which is none of {', '.join(tag.words)}: it is taken for {tag.words[-1]}"


def detect(facts: Facts) -> DetectedFault | None:
    wrong = first_of(not_understood(facts.tags), 3)
    return DetectedFault("; ".join(wrong)) if wrong else None


TAG_NOT_UNDERSTOOD = ReportedSymptom(
    name="tag_not_understood",
    sentence="A tag of Mendq's on the queue says nothing that Mendq knows.",
    plan_in_words="Report it; a mode that cannot be read is taken for observe.",
    aws_page=f"{SQS_GUIDE}/sqs-queue-tags.html",
    detection=Detection(detect, of_configuration=True),
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
