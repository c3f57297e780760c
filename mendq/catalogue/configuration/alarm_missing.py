"""No alarm of the account watches the queue's age, its DLQ's depth or its messages in flight.

Reported: an alarm belongs into the template of whoever owns the queue, who says whom it tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mendq.catalogue.examples import DLQ_ARN, dlq, standard
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need, QueueFacts

DEPTH = "ApproximateNumberOfMessagesVisible"
AGE, IN_FLIGHT = "ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesNotVisible"
# What its age tells of a DLQ too; NumberOfMessagesSent counts nothing that SQS moves there.
_OF_A_DLQ = frozenset({DEPTH, AGE})
WATCHED: Mapping[str, str] = {
    AGE: "how old its oldest message is",
    IN_FLIGHT: "how many of its messages are in flight",
    DEPTH: "how many messages lie in {name}",
}


def unwatched(facts: Facts) -> Iterator[tuple[QueueFacts, str]]:
    """The queue or its DLQ, each with a metric that no alarm watches; none where nobody asked."""
    is_dlq = facts.takes_dlq_messages
    if facts.alarmed is not None and not is_dlq:
        yield from ((facts, each) for each in (AGE, IN_FLIGHT) if each not in facts.alarmed)
    dlq = facts if is_dlq else facts.dlq
    if dlq is not None and dlq.alarmed is not None and not dlq.alarmed & _OF_A_DLQ:
        yield dlq, DEPTH


def detect(facts: Facts) -> DetectedFault | None:
    missing = [WATCHED[metric].format(name=queue.name) for queue, metric in unwatched(facts)]
    if not missing:
        return None
    command = f"`mendq alarms {facts.name}` writes alarms that do"
    return DetectedFault(
        f"no CloudWatch alarm of this account watches {', nor '.join(missing)}: {command}"
    )


def _with_dlq(*alarmed: str) -> Facts:
    """A queue of which all is watched, and a DLQ of which `alarmed` are."""
    dlq_facts = QueueFacts(DLQ_ARN, {"DelaySeconds": "0"}, alarmed=frozenset(alarmed))
    return standard(alarmed=frozenset({AGE, IN_FLIGHT}), dlq=dlq_facts)


ALARM_MISSING = ReportedSymptom(
    name="alarm_missing",
    sentence="No CloudWatch alarm watches the queue, or its DLQ.",
    plan_in_words="Report it, weekly; `mendq alarms` prints alarms sized by its last two weeks.",
    aws_page=f"{SQS_GUIDE}/set-cloudwatch-alarms-for-metrics.html",
    detection=Detection(detect, frozenset({Need.QUEUE, Need.DLQ, Need.DLQ_SOURCES, Need.ALARMS})),
    examples=lambda: (
        QueueExample("no alarm at all", standard(alarmed=frozenset())),
        QueueExample("its age alone is watched", standard(alarmed=frozenset({AGE}))),
        QueueExample("of its DLQ what SQS does not count", _with_dlq("NumberOfMessagesSent")),
        QueueExample("a DLQ that nobody watches", dlq(alarmed=frozenset())),
        QueueNearMiss("all are watched", _with_dlq(DEPTH)),
        QueueNearMiss("it has no DLQ", replace(_with_dlq(), dlq=None)),
        QueueNearMiss("its DLQ is gone", replace(_with_dlq(), dlq=QueueFacts(DLQ_ARN, {}))),
        QueueNearMiss("a DLQ whose age is watched", dlq(alarmed=frozenset({AGE}))),
        QueueNearMiss("nobody asked for alarms", standard()),
    ),
)
