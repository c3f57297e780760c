"""A FIFO queue is asked more often than its 300 calls a second for each API action."""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue.examples import STANDARD_ARN, failed_call, queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    FixedSymptom,
    QuotaSection,
    RefusalExample,
    carries_messages,
    seen_as_labelled,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.queue import on_fifo
from mendq.model.steps import DeduplicateByGroup, LimitThroughputByGroup, WordStep
from mendq.notifications.commands import quotas_command

_FIXED = "300 a second without high throughput, which nobody can raise"
# In this order: SQS takes a throughput limit by group only with deduplication by group.
HIGH_THROUGHPUT: tuple[type[WordStep], ...] = (DeduplicateByGroup, LimitThroughputByGroup)


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """High throughput, as far as it is not on yet."""
    stands = {step: step.value_in(facts.attributes) for step in HIGH_THROUGHPUT}
    missing = [step for step in HIGH_THROUGHPUT if stands[step] != step.wanted]
    quotas = quotas_command("sqs", facts.queue_arn)
    for step in missing:
        # What SQS adds some day is not ours to overwrite.
        if stands[step] != step.shipped:
            word = stands[step]
            reason = f"{step.attribute} is {word!r}, which Mendq does not know: it keeps off"
            return Escalate("high_throughput_unknown", reason, quotas)
    if not missing:
        reason = (
            "the queue has high throughput: few message groups carry most of the load (300 calls a "
            "second each), or the region's quota is reached; more groups and batches help"
        )
        return Escalate("high_throughput_already", reason, quotas)
    return Plan(
        tuple(step(step.shipped, step.wanted) for step in missing),
        "the queue is throttled at 300 calls a second for each API action; with high throughput "
        "that holds for each message group, so it helps only where there are many. Deduplication "
        "then looks at each group alone: one id in two groups is two messages",
    )


def _queue(scope: str, limit: str = "perQueue") -> Facts:
    return queue(DeduplicationScope=scope, FifoThroughputLimit=limit)


_THROTTLED = failed_call("SendMessage", "ThrottlingException", "Rate exceeded")
_BY_GROUP = LimitThroughputByGroup.wanted
_BOTH = tuple(step(step.shipped, step.wanted) for step in HIGH_THROUGHPUT)

FIFO_THROTTLED = FixedSymptom(
    name="fifo_throttled",
    sentence="A FIFO queue is called more often than SQS allows it.",
    plan_in_words="Turn on high throughput: DeduplicationScope messageGroup and "
    "FifoThroughputLimit perMessageGroupId, in one call.",
    habit="keeps outrunning its FIFO quota",
    aws_page=f"{SQS_GUIDE}/high-throughput-fifo.html",
    seen_as=seen_as_labelled("empty_receives", on_fifo),
    # High throughput does nothing for other calls.
    is_evidence=carries_messages,
    steps=HIGH_THROUGHPUT,
    plan=plan,
    extra_sections=QuotaSection("calls of each API action", f"{_FIXED}; with it, by region", "sqs"),
    examples=lambda: (
        CallExample("a queue as SQS makes it", _THROTTLED, _queue("queue"), _BOTH),
        CallExample(
            "what is on is not written again", _THROTTLED, _queue("messageGroup"), _BOTH[1:]
        ),
        CallNearMiss("a standard queue", replace(_THROTTLED, queue_arn=STANDARD_ARN)),
        RefusalExample("both are on", _queue("messageGroup", _BY_GROUP), "high_throughput_already"),
        RefusalExample(
            "a scope that SQS has added since", _queue("tenant"), "high_throughput_unknown"
        ),
    ),
)
