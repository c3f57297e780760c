"""A tag of Mendq's says nothing that Mendq knows; reported, because only its author knows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mendq.catalogue.dlq.redrive_causes import ON, REDRIVE_TAG
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
from mendq.model.limits import DRILL_TAG, MODE_TAG, OFF, TEAM_TAG, TagUnreadable, seconds_tag
from mendq.notifications.text import first_of, value

# The words that each may say; what else it says is taken for the last.
_WORDS: Mapping[str, tuple[str, ...]] = {
    MODE_TAG: ("heal", "propose", OFF, "observe"),
    REDRIVE_TAG: (ON, OFF),
}
_SECONDS = (MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG)
_MOST = 40


def not_understood(tags: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with each tag of Mendq's that means nothing; others' text is quoted.

    A tag that names a team of the settings is not among `tags`: they alone know it.
    """
    for key, text in sorted(tags.items()):
        if key in _SECONDS:
            try:
                seconds_tag(tags, key)
            except TagUnreadable as unreadable:
                yield str(unreadable)
        elif words := _WORDS.get(key):
            says = f"the tag {key} says {value(text, _MOST)}, which is none of {', '.join(words)}"
            if text not in words:
                yield f"{says}: it is taken for {words[-1]}"
        elif key == TEAM_TAG:
            yield f"the tag {key} says {value(text, _MOST)}, which is no team of the settings"
        elif key.lower().partition(":")[0] == MODE_TAG and key != DRILL_TAG:
            yield f"{value(key, _MOST)} is no tag that Mendq knows"


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
