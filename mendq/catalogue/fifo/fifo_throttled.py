"""Symptom `fifo_throttled`: a FIFO queue gets more calls than SQS allows.

The fault: without high throughput, a FIFO queue takes 300 calls per second for each API action. SQS
throttles the rest.

How it shows: CloudTrail records calls that carry messages and fail with ThrottlingException or
RequestThrottled.

What Mendq changes: it proposes high throughput: `DeduplicationScope` messageGroup and
`FifoThroughputLimit` perMessageGroupId, in one call. Then the 300 calls hold for each message
group.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html

Why a person decides: SQS then looks for repeated sends in each group alone, so one id in two groups
becomes two messages. It also helps only if the queue has many groups. The order within a group
stays. Mendq writes only over SQS's two default values, never over a value that it does not know.
"""

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
from mendq.model.queue import is_fifo_arn
from mendq.model.steps import DeduplicateByGroup, LimitThroughputByGroup, WordStep
from mendq.notifications.commands import quotas_command

_FIXED = "300 a second without high throughput, which nobody can raise"
# The order counts: SQS takes a throughput limit per group only with deduplication per group.
HIGH_THROUGHPUT: tuple[type[WordStep], ...] = (DeduplicateByGroup, LimitThroughputByGroup)


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the steps to high throughput that are not made yet.

    Notify people if none is left, or if a step would overwrite a value that Mendq does not know.
    """
    current = {step: step.value_in(facts.attributes) for step in HIGH_THROUGHPUT}
    missing = [step for step in HIGH_THROUGHPUT if current[step] != step.wanted]
    quotas = quotas_command("sqs", facts.queue_arn)
    for step in missing:
        # SQS may get new values. Mendq does not know their meaning, so it does not overwrite them.
        if current[step] != step.shipped:
            word = current[step]
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
    """Return a FIFO queue with this DeduplicationScope and FifoThroughputLimit."""
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
    seen_as=seen_as_labelled("empty_receives", is_fifo_arn),
    # High throughput does not help other calls.
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
