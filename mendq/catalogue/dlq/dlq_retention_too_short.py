"""A DLQ keeps its messages no longer than a source keeps messages: some expire unseen.

A standard queue's message keeps the time at which its message was first sent.
"""

from __future__ import annotations

from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, dlq, sources, vary
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import LONGEST_RETENTION_SECONDS
from mendq.model.steps import SetMessageRetention

# Said once, with the change: afterwards nothing is found, because nothing is left to set.
_CANNOT_BE_LONGER = (
    ". At 14 days both keep the same, and this cannot be longer: for what dies later still, "
    "somebody has to shorten that source's retention, which deletes its older messages"
)


def detect(facts: Facts) -> DetectedFault | None:
    """None where nothing longer could be set, and on FIFO, where a message's time begins anew.

    A queue that producers send to is none for DLQ messages alone, whoever says so.
    """
    longest = _longest_retained(facts)
    if facts.is_fifo or longest is None or facts.is_sent_to:
        return None
    retained, sent_for = facts.retention_seconds, longest.retention_seconds
    if retained > sent_for or retained >= LONGEST_RETENTION_SECONDS:
        return None
    return DetectedFault(
        f"it keeps messages for {retained:,} s counted from when they were first sent, and "
        f"{longest.queue_arn} keeps its messages for {sent_for:,} s: what dies late there is "
        f"deleted here before anybody has seen it"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The longest retention that SQS has, which a person approves once for each source.

    A retention is never lowered, so nothing takes the change back.
    """
    found, longest = detect(facts), _longest_retained(facts)
    if found is None or longest is None:
        reason = (
            "messages are kept as long as can be, or longer than at their sources, or come from "
            "producers too"
        )
        return Ignore("need_already_met", reason)
    step = SetMessageRetention(facts.retention_seconds, LONGEST_RETENTION_SECONDS)
    is_at_its_longest = longest.retention_seconds >= LONGEST_RETENTION_SECONDS
    return Plan(
        (step,),
        f"{found.because}{_CANNOT_BE_LONGER * is_at_its_longest}",
        at_most=Mode.HEAL if longest.queue_arn in facts.approved_sources else Mode.PROPOSE,
        source_arn=longest.queue_arn,
    )


def _longest_retained(facts: Facts) -> QueueFacts | None:
    others = (source for source in facts.dlq_sources or () if source.queue_arn != facts.queue_arn)
    return max(others, key=lambda source: source.retention_seconds, default=None)


def _retained(own_seconds: int, source_seconds: int) -> Facts:
    named_by = sources(STANDARD_ARN, MessageRetentionPeriod=str(source_seconds))
    return dlq(MessageRetentionPeriod=own_seconds, dlq_sources=named_by)


def _detected(title: str, own_seconds: int, source_seconds: int) -> QueueExample:
    raised = SetMessageRetention(own_seconds, LONGEST_RETENTION_SECONDS)
    return QueueExample(title, _retained(own_seconds, source_seconds), (raised,))


DLQ_RETENTION_TOO_SHORT = FixedSymptom(
    name="dlq_retention_too_short",
    sentence="A DLQ keeps messages no longer than their source keeps messages, "
    "so they are deleted unseen.",
    plan_in_words="Raise its MessageRetentionPeriod to 14 days, by itself once a person approved "
    "it for that source; never lower one.",
    aws_page=DLQ_GUIDE,
    needs=frozenset({Need.MEASUREMENTS, Need.APPROVED_SOURCES}),
    steps=(SetMessageRetention,),
    plan=plan,
    autonomy=Mode.HEAL,
    shown_attributes=("MessageRetentionPeriod",),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.DLQ_SOURCES}), of_configuration=True),
    examples=lambda: (
        _detected("both keep for the four days that SQS starts with", 345_600, 345_600),
        _detected("the source keeps longer", 1_209_599, 1_209_600),
        QueueNearMiss("messages are kept a second longer", _retained(345_601, 345_600)),
        QueueNearMiss("both keep as long as SQS can", _retained(1_209_600, 1_209_600)),
        QueueNearMiss(
            "on FIFO time begins anew", vary(_retained(60, 345_600), queue_arn=QUEUE_ARN)
        ),
        QueueNearMiss("producers send to it", vary(_retained(60, 345_600), sent=1)),
        QueueNearMiss("nobody's DLQ", vary(_retained(60, 345_600), dlq_sources=())),
        QueueNearMiss("its own DLQ", vary(_retained(60, 345_600), queue_arn=STANDARD_ARN)),
        RefusalExample(
            "somebody raised it meanwhile", _retained(1_209_600, 345_600), "need_already_met"
        ),
    ),
)
