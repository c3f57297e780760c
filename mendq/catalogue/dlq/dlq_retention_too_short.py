"""Symptom `dlq_retention_too_short`: a DLQ keeps messages no longer than its source does.

The fault: on a standard queue, the age of a message counts from its first send, also after the move
to a DLQ. If the DLQ's retention period is not longer than the source's, a message that fails late
is deleted in the DLQ before anybody has seen it. On a FIFO queue the age begins anew with the move,
so FIFO queues are not affected.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html

How it shows: in the retention periods of the two queues alone.

What Mendq changes: it raises the DLQ's `MessageRetentionPeriod` to 14 days, SQS's maximum.

Why that is safe: a longer retention deletes nothing, and a queue that producers send to is left
alone. A person approves it once for each source; after that Mendq may make it alone. A retention is
never lowered, because that would delete messages.
"""

from __future__ import annotations

from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, dlq, replace_values, sources
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import LONGEST_RETENTION_SECONDS, RedrivePolicy, is_fifo_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetMessageRetention

_SHORTER = EvidenceKind(SeverityClass.WILL_LOSE, "the DLQ's retention is shorter")
_EQUAL = EvidenceKind(SeverityClass.MAY_LOSE, "both are equal")
# This goes into the reason of the change, because it is the only chance to tell people: once the
# DLQ has 14 days, the symptom is not found again.
_LONGEST_RETENTION_REMARK = (
    ". At 14 days both keep the same, and this cannot be longer: for what dies later still, "
    "somebody has to shorten that source's retention, which deletes its older messages"
)


def detect(facts: Facts) -> DetectedFault | None:
    """Find a standard DLQ whose retention is not longer than that of its source.

    If the DLQ has several sources, the source with the longest retention counts. None if no other
    queue names it as its DLQ, or if it has SQS's maximum already. None also if producers send to
    it: then its owner may have chosen the retention for the producers' messages.
    A source that SQS refuses, because its type is another, does not count. None if the
    source is also the queue's own DLQ (`redrive_cycle`): then people must end the cycle first.
    """
    source_with_longest_retention = _find_source_with_longest_retention(facts)
    if facts.is_fifo or source_with_longest_retention is None or facts.is_sent_to:
        return None
    retention_seconds = facts.retention_seconds
    source_retention_seconds = source_with_longest_retention.retention_seconds
    if (
        retention_seconds > source_retention_seconds
        or retention_seconds >= LONGEST_RETENTION_SECONDS
    ):
        return None
    if source_with_longest_retention.queue_arn == facts.dlq_arn:
        return None
    return DetectedFault(
        f"it keeps messages for {retention_seconds:,} s counted from when they were first sent, "
        f"and {source_with_longest_retention.queue_arn} keeps its messages for "
        f"{source_retention_seconds:,} s: what dies late there is deleted here before anybody has "
        "seen it",
        evidence_kind=_EQUAL if retention_seconds == source_retention_seconds else _SHORTER,
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan SQS's longest retention. A person must approve it once for each source.

    Mendq never lowers a retention, so this change has no rollback.
    """
    fault = detect(facts)
    source_with_longest_retention = _find_source_with_longest_retention(facts)
    if fault is None or source_with_longest_retention is None:
        reason = (
            "messages are kept as long as can be, or longer than at their sources, or come from "
            "producers too"
        )
        return Ignore("need_already_met", reason)
    raise_step = SetMessageRetention(facts.retention_seconds, LONGEST_RETENTION_SECONDS)
    reason = fault.because
    if source_with_longest_retention.retention_seconds >= LONGEST_RETENTION_SECONDS:
        reason += _LONGEST_RETENTION_REMARK
    return Plan(
        (raise_step,),
        reason,
        highest_mode=Mode.HEAL
        if source_with_longest_retention.queue_arn in facts.approved_sources
        else Mode.PROPOSE,
        source_arn=source_with_longest_retention.queue_arn,
    )


def _find_source_with_longest_retention(facts: Facts) -> QueueFacts | None:
    """Return the source of the same type with the longest retention.

    None if no other queue of this type names this one as its DLQ.
    """
    other_sources = (
        source
        for source in facts.dlq_sources or ()
        if source.queue_arn != facts.queue_arn and is_fifo_arn(source.queue_arn) == facts.is_fifo
    )
    return max(other_sources, key=lambda source: source.retention_seconds, default=None)


def _make_dlq(dlq_retention_seconds: int, source_retention_seconds: int) -> Facts:
    """Return a DLQ and its source, which keep messages for this many seconds."""
    source_queues = sources(STANDARD_ARN, MessageRetentionPeriod=str(source_retention_seconds))
    return dlq(MessageRetentionPeriod=dlq_retention_seconds, dlq_sources=source_queues)


def _make_example(
    title: str, dlq_retention_seconds: int, source_retention_seconds: int
) -> QueueExample:
    raise_step = SetMessageRetention(dlq_retention_seconds, LONGEST_RETENTION_SECONDS)
    return QueueExample(
        title, _make_dlq(dlq_retention_seconds, source_retention_seconds), (raise_step,)
    )


DLQ_RETENTION_TOO_SHORT = FixedSymptom(
    name="dlq_retention_too_short",
    sentence="A DLQ keeps messages no longer than their source keeps messages, "
    "so they are deleted unseen.",
    plan_in_words="Raise its MessageRetentionPeriod to 14 days, by itself once a person approved "
    "it for that source; never lower one.",
    first_step="Raise the DLQ's retention period to 14 days.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(_SHORTER, _EQUAL),
    needs=frozenset({Need.MEASUREMENTS, Need.APPROVED_SOURCES}),
    steps=(SetMessageRetention,),
    plan=plan,
    autonomy=Mode.HEAL,
    shared_attribute=SetMessageRetention.attribute,
    shown_attributes=("MessageRetentionPeriod",),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.DLQ_SOURCES}), is_of_configuration=True
    ),
    examples=lambda: (
        _make_example("both keep for the four days that SQS starts with", 345_600, 345_600),
        _make_example("the source keeps longer", 1_209_599, 1_209_600),
        QueueNearMiss("messages are kept a second longer", _make_dlq(345_601, 345_600)),
        QueueNearMiss("both keep as long as SQS can", _make_dlq(1_209_600, 1_209_600)),
        QueueNearMiss(
            "on FIFO time begins anew", replace_values(_make_dlq(60, 345_600), queue_arn=QUEUE_ARN)
        ),
        QueueNearMiss("producers send to it", replace_values(_make_dlq(60, 345_600), sent=1)),
        QueueNearMiss("nobody's DLQ", replace_values(_make_dlq(60, 345_600), dlq_sources=())),
        QueueNearMiss(
            "its own DLQ", replace_values(_make_dlq(60, 345_600), queue_arn=STANDARD_ARN)
        ),
        QueueNearMiss(
            "its source is its own DLQ too",
            replace_values(
                _make_dlq(60, 345_600), RedrivePolicy=RedrivePolicy(STANDARD_ARN, 5).text
            ),
        ),
        QueueNearMiss(
            "a FIFO queue names it, which SQS refuses",
            replace_values(
                _make_dlq(60, 345_600),
                dlq_sources=sources(QUEUE_ARN, MessageRetentionPeriod="345600"),
            ),
        ),
        RefusalExample(
            "somebody raised it meanwhile", _make_dlq(1_209_600, 345_600), "need_already_met"
        ),
    ),
)
