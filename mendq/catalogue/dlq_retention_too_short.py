"""A DLQ keeps its messages no longer than a source keeps messages: some expire unseen.

A standard queue's message keeps the time at which its message was first sent.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, Need, SourceQueue
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import LONGEST_RETENTION_SECONDS
from mendq.model.steps import SetMessageRetention

# Said once, with the change: afterwards nothing is found, because nothing is left to set.
_CANNOT_BE_LONGER = (
    ". At 14 days both keep the same, and this cannot be longer: for what dies later still, "
    "somebody has to shorten that source's retention, which deletes its older messages"
)


def detect(facts: Facts) -> Found | None:
    """None where nothing longer could be set, and on FIFO, where a message's time begins anew."""
    longest = _longest_retained(facts)
    if facts.is_fifo or longest is None:
        return None
    retained, sent_for = facts.retention_seconds, _retention_seconds(longest)
    if retained > sent_for or retained >= LONGEST_RETENTION_SECONDS:
        return None
    return Found(
        f"it keeps messages for {retained:,} s counted from when they were first sent, and "
        f"{longest.queue_arn} keeps its messages for {sent_for:,} s: what dies late there is "
        f"deleted here before anybody has seen it"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The longest retention that SQS has; a retention is never lowered."""
    found = detect(facts)
    if found is None:
        reason = "messages are kept for as long as they can be, or longer than at their sources"
        return Ignore("need_already_met", reason)
    step = SetMessageRetention(facts.retention_seconds, LONGEST_RETENTION_SECONDS)
    return Plan((step,), f"{found.because}{_CANNOT_BE_LONGER * _is_retained_longest(facts)}")


def _longest_retained(facts: Facts) -> SourceQueue | None:
    others = (each for each in facts.dlq_sources or () if each.queue_arn != facts.queue_arn)
    return max(others, key=_retention_seconds, default=None)


def _is_retained_longest(facts: Facts) -> bool:
    source = _longest_retained(facts)
    return source is not None and _retention_seconds(source) >= LONGEST_RETENTION_SECONDS


def _retention_seconds(source: SourceQueue) -> int:
    return int(source.attributes.get("MessageRetentionPeriod", "0"))


def _retained(
    messages_seconds: int, source_seconds: int, queue_arn: str = examples.DLQ_ARN
) -> Facts:
    source = SourceQueue(examples.STANDARD_ARN, {"MessageRetentionPeriod": str(source_seconds)})
    messages = examples.queue(queue_arn=queue_arn, MessageRetentionPeriod=str(messages_seconds))
    return replace(messages, dlq_sources=(source,))


DLQ_RETENTION_TOO_SHORT = Symptom(
    name="dlq_retention_too_short",
    sentence="A DLQ keeps messages no longer than their source keeps messages, "
    "so they are deleted unseen.",
    plan_in_words="Raise its MessageRetentionPeriod to 14 days; never lower one.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    needs=frozenset({Need.QUEUE, Need.DLQ_SOURCES}),
    steps=(SetMessageRetention,),
    plan=plan,
    autonomy=Mode.HEAL,
    shows=("MessageRetentionPeriod",),
    detection=Detection(
        detect,
        needs=frozenset({Need.QUEUE, Need.DLQ_SOURCES}),
        of_configuration=True,
    ),
    detected=(
        Detected(
            "both keep for the four days that SQS starts with",
            _retained(345_600, 345_600),
            (SetMessageRetention(345_600, 1_209_600),),
        ),
        Detected(
            "the source keeps longer",
            _retained(1_209_599, 1_209_600),
            (SetMessageRetention(1_209_599, 1_209_600),),
        ),
    ),
    near_misses=(
        NearMiss("messages are kept a second longer", NOT_FOUND, facts=_retained(345_601, 345_600)),
        NearMiss("both keep as long as SQS can", NOT_FOUND, facts=_retained(1_209_600, 1_209_600)),
        NearMiss(
            "on FIFO a message's time begins when it arrives",
            NOT_FOUND,
            facts=_retained(60, 345_600, examples.QUEUE_ARN),
        ),
        NearMiss(
            "nobody's DLQ",
            NOT_FOUND,
            facts=replace(_retained(60, 345_600), dlq_sources=()),
        ),
        NearMiss(
            "its own DLQ",
            NOT_FOUND,
            facts=_retained(60, 345_600, examples.STANDARD_ARN),
        ),
        NearMiss(
            "somebody raised it meanwhile", "need_already_met", facts=_retained(1_209_600, 345_600)
        ),
    ),
)
