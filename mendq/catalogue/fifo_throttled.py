"""A FIFO queue is asked more often than its 300 calls a second for each API action.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, SeenAs, Symptom
from mendq.model.evidence import MESSAGE_TRAFFIC
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall, codes_labelled
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.queue import on_fifo
from mendq.model.steps import DeduplicateByGroup, LimitThroughputByGroup, WordStep
from mendq.notifications.commands import quotas_command

# In this order: SQS takes a throughput limit by group only with deduplication by group.
HIGH_THROUGHPUT: tuple[type[WordStep], ...] = (DeduplicateByGroup, LimitThroughputByGroup)


def speaks(call: FailedCall) -> bool:
    """Message traffic alone: high throughput does nothing for other calls."""
    return call.event_name in MESSAGE_TRAFFIC


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """High throughput, as far as it is not on yet."""
    return _unknown_value(facts) or _already_on(facts) or _switch_on(facts)


def _missing(facts: Facts) -> tuple[type[WordStep], ...]:
    return tuple(
        step for step in HIGH_THROUGHPUT if step.standing_in(facts.attributes) != step.wanted
    )


def _unknown_value(facts: Facts) -> Refusal | None:
    """What SQS adds some day is not ours to overwrite."""
    for step in _missing(facts):
        standing = step.standing_in(facts.attributes)
        if standing != step.shipped:
            reason = f"{step.attribute} is {standing!r}, which Mendq does not know: it keeps off"
            return Escalate(
                "high_throughput_unknown",
                reason,
                next_command=quotas_command("sqs", facts.queue_arn),
            )
    return None


def _already_on(facts: Facts) -> Refusal | None:
    if _missing(facts):
        return None
    reason = (
        "the queue has high throughput already: either few message groups carry most of the load "
        "(300 calls a second each), or the region's quota is reached; more groups and batches help"
    )
    return Escalate(
        "high_throughput_already", reason, next_command=quotas_command("sqs", facts.queue_arn)
    )


def _switch_on(facts: Facts) -> Plan:
    return Plan(
        steps=tuple(step(step.shipped, step.wanted) for step in _missing(facts)),
        reason="the queue is throttled at 300 calls a second for each API action; with high "
        "throughput that holds for each message group, so it helps only where there are many. "
        "Deduplication then looks at each group alone: one id in two groups is two messages",
    )


_THROTTLED = examples.failed_call("SendMessage", "ThrottlingException", "Rate exceeded")
_REQUEST_THROTTLED = examples.failed_call("ReceiveMessage", "RequestThrottled")

FIFO_THROTTLED = Symptom(
    name="fifo_throttled",
    sentence="A FIFO queue is called more often than SQS allows it.",
    plan_in_words="Turn on high throughput: DeduplicationScope messageGroup and "
    "FifoThroughputLimit perMessageGroupId, in one call.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "high-throughput-fifo.html",
    seen_as=tuple(SeenAs(None, code, on=on_fifo) for code in codes_labelled("empty_receives")),
    needs=frozenset({Need.QUEUE}),
    steps=(DeduplicateByGroup, LimitThroughputByGroup),
    plan=plan,
    autonomy=Mode.PROPOSE,
    speaks=speaks,
    caught=(
        Caught(
            "a queue as SQS makes it",
            _THROTTLED,
            examples.queue(DeduplicationScope="queue", FifoThroughputLimit="perQueue"),
            (
                DeduplicateByGroup("queue", "messageGroup"),
                LimitThroughputByGroup("perQueue", "perMessageGroupId"),
            ),
        ),
        Caught(
            "attributes that SQS leaves out stand at their defaults",
            _REQUEST_THROTTLED,
            examples.queue(),
            (
                DeduplicateByGroup("queue", "messageGroup"),
                LimitThroughputByGroup("perQueue", "perMessageGroupId"),
            ),
        ),
        Caught(
            "what is there already is not written again",
            _THROTTLED,
            examples.queue(DeduplicationScope="messageGroup", FifoThroughputLimit="perQueue"),
            (LimitThroughputByGroup("perQueue", "perMessageGroupId"),),
        ),
    ),
    near_misses=(
        NearMiss(
            "a standard queue has no such limit",
            "no_match",
            call=examples.failed_call(
                "SendMessage", "ThrottlingException", queue_arn=examples.STANDARD_ARN
            ),
        ),
        NearMiss(
            "KMS that throttles",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.ThrottlingException"),
        ),
        NearMiss(
            "high throughput is on",
            "high_throughput_already",
            facts=examples.queue(
                DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId"
            ),
        ),
        NearMiss(
            "a scope that SQS has added since",
            "high_throughput_unknown",
            facts=examples.queue(DeduplicationScope="tenant", FifoThroughputLimit="perQueue"),
        ),
    ),
)
