"""Symptom `alarm_missing`: no CloudWatch alarm watches the queue or its DLQ.

The fault: nobody is notified if consumers stop or if messages reach the DLQ. Three metrics matter:
the age of the oldest message, the number of messages in flight, and the number of messages in the
DLQ.

How it shows: Mendq lists the CloudWatch alarms of the account. An alarm on the age of a DLQ's
oldest message counts too, because it also shows that messages are there. An alarm on
NumberOfMessagesSent of a DLQ does not count: that metric leaves out the messages that SQS itself
moves to a DLQ.

What Mendq does: it reports the queue, with the command that prints suitable alarms. It creates
none. An alarm belongs in the template of the queue's owner, who decides whom it notifies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mendq.catalogue.examples import DLQ_ARN, dlq, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import make_alarms_command

DEPTH_METRIC = "ApproximateNumberOfMessagesVisible"
AGE_METRIC = "ApproximateAgeOfOldestMessage"
IN_FLIGHT_METRIC = "ApproximateNumberOfMessagesNotVisible"
# An alarm on either of these shows that messages are in a DLQ. NumberOfMessagesSent does not: it
# leaves out messages that SQS moves there.
_METRICS_OF_WATCHED_DLQ = frozenset({DEPTH_METRIC, AGE_METRIC})
# The metrics that an alarm should watch, in words for people.
DESCRIPTION_BY_METRIC: Mapping[str, str] = {
    AGE_METRIC: "how old its oldest message is",
    IN_FLIGHT_METRIC: "how many of its messages are in flight",
    DEPTH_METRIC: "how many messages lie in {name}",
}


def find_unwatched_metrics(facts: Facts) -> Iterator[tuple[QueueFacts, str]]:
    """Yield each metric that no alarm watches, with the queue that it belongs to.

    The queue is the one of `facts` or its DLQ. A DLQ needs only one alarm, on DEPTH_METRIC or
    AGE_METRIC. If a queue's alarms were not read, nothing is yielded for it.
    """
    is_dlq = facts.receives_only_dlq_messages
    if facts.alarmed_metrics is not None and not is_dlq:
        for metric in (AGE_METRIC, IN_FLIGHT_METRIC):
            if metric not in facts.alarmed_metrics:
                yield facts, metric
    dlq = facts if is_dlq else facts.dlq
    if (
        dlq is not None
        and dlq.alarmed_metrics is not None
        and not dlq.alarmed_metrics & _METRICS_OF_WATCHED_DLQ
    ):
        yield dlq, DEPTH_METRIC


def detect(facts: Facts) -> DetectedFault | None:
    """Report the metrics of the queue and its DLQ that no alarm of this account watches."""
    unwatched_metrics = [
        DESCRIPTION_BY_METRIC[metric].format(name=queue.name)
        for queue, metric in find_unwatched_metrics(facts)
    ]
    if not unwatched_metrics:
        return None
    alarms_command_text = f"`{make_alarms_command(facts.queue_arn)}` writes alarms that do"
    return DetectedFault(
        f"no CloudWatch alarm of this account watches {', nor '.join(unwatched_metrics)}: "
        f"{alarms_command_text}"
    )


def _make_queue_with_dlq(*alarmed_metrics: str) -> Facts:
    """Return a queue with alarms on AGE_METRIC and IN_FLIGHT_METRIC.

    Its DLQ has alarms on `alarmed_metrics`.
    """
    dlq_facts = QueueFacts(
        DLQ_ARN, {"DelaySeconds": "0"}, alarmed_metrics=frozenset(alarmed_metrics)
    )
    return standard_queue(alarmed_metrics=frozenset({AGE_METRIC, IN_FLIGHT_METRIC}), dlq=dlq_facts)


ALARM_MISSING = ReportedSymptom(
    name="alarm_missing",
    sentence="No CloudWatch alarm watches the queue, or its DLQ.",
    plan_in_words="Report it, weekly; `mendq alarms` prints alarms sized by its last two weeks.",
    first_step="Create the alarms that `mendq alarms` prints.",
    aws_page=f"{SQS_GUIDE}/set-cloudwatch-alarms-for-metrics.html",
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.DLQ, Need.DLQ_SOURCES, Need.ALARMS})),
    examples=lambda: (
        QueueExample("no alarm at all", standard_queue(alarmed_metrics=frozenset())),
        QueueExample(
            "its age alone is watched", standard_queue(alarmed_metrics=frozenset({AGE_METRIC}))
        ),
        QueueExample(
            "of its DLQ what SQS does not count", _make_queue_with_dlq("NumberOfMessagesSent")
        ),
        QueueExample("a DLQ that nobody watches", dlq(alarmed_metrics=frozenset())),
        QueueNearMiss("all are watched", _make_queue_with_dlq(DEPTH_METRIC)),
        QueueNearMiss("it has no DLQ", replace(_make_queue_with_dlq(), dlq=None)),
        QueueNearMiss(
            "its DLQ is gone", replace(_make_queue_with_dlq(), dlq=QueueFacts(DLQ_ARN, {}))
        ),
        QueueNearMiss("a DLQ whose age is watched", dlq(alarmed_metrics=frozenset({AGE_METRIC}))),
        QueueNearMiss("nobody asked for alarms", standard_queue()),
    ),
)
