"""Symptom `dedup_interval_outlasted`: a repeated send may be handled a second time.

The fault: a FIFO queue drops a message that is sent again within five minutes. Producers of this
queue do send again, and a consumer may work on a message for longer than five minutes. If the
producer sends it again after that time, while the consumer is still at work, SQS accepts it as a
new message.

How it shows: CloudWatch counts sends that SQS dropped as repeated in the last hour
(NumberOfDeduplicatedSentMessages), and the visibility timeout is longer than five minutes.

What Mendq does: it reports the queue. It changes nothing, because how producers repeat a send is
for their owner to decide, and SQS's five minutes cannot be changed.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import STANDARD_ARN, queue, replace_values
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import DEDUPLICATION_INTERVAL_SECONDS, Facts, Need
from mendq.model.metrics import RecentCounts
from mendq.model.severity_class import SeverityClass
from mendq.notifications.text import format_count


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose producers send again, and whose work may outlast SQS's five minutes."""
    dropped_send_count = facts.measurement.recent.deduplicated if facts.measurement else 0
    if not dropped_send_count or not is_possible(facts):
        return None
    return DetectedFault(
        f"producers send again: SQS dropped {format_count(dropped_send_count, 'send')} of the last "
        f"hour as repeated, as it does for {DEDUPLICATION_INTERVAL_SECONDS} s after the first. A "
        f"message may be at work for {facts.visibility_seconds:,} s: one that is sent again "
        f"meanwhile, but after the {DEDUPLICATION_INTERVAL_SECONDS} s, is handled twice"
    )


_REPEATED_SEND_METRIC_KINDS = ("repeated sends",)


def is_possible(facts: Facts) -> bool:
    """Return True for a FIFO queue with a visibility timeout of more than five minutes."""
    return facts.can_outlast_deduplication


def _make_example_queue(
    dropped_sends: int = 12, visibility_seconds: int = 301, **overrides: Any
) -> Facts:
    """Return a FIFO queue with this visibility timeout and number of dropped sends."""
    return replace_values(
        queue(
            VisibilityTimeout=visibility_seconds, recent=RecentCounts(deduplicated=dropped_sends)
        ),
        **overrides,
    )


DEDUP_INTERVAL_OUTLASTED = ReportedSymptom(
    name="dedup_interval_outlasted",
    sentence="Producers send again, and work may outlast the 5 minutes in which SQS drops repeats.",
    plan_in_words="Report it; how producers repeat is for their owner to say.",
    first_step="Make the work idempotent: repeats can arrive after 5 minutes.",
    aws_page=f"{SQS_GUIDE}/using-messagededuplicationid-property.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    detection=Detection(
        detect,
        frozenset({Need.MEASUREMENTS}),
        is_possible,
        is_measured_last=True,
        metric_kinds=_REPEATED_SEND_METRIC_KINDS,
    ),
    examples=lambda: (
        QueueExample("work of up to 301 s", _make_example_queue()),
        QueueExample("one repeat", _make_example_queue(1, 43_200)),
        QueueNearMiss("nobody sends again", _make_example_queue(0)),
        QueueNearMiss("work ends within five minutes", _make_example_queue(visibility_seconds=300)),
        QueueNearMiss(
            "a standard queue drops nothing", _make_example_queue(queue_arn=STANDARD_ARN)
        ),
    ),
)
