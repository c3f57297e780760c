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
    EvidenceKind,
    FixedSymptom,
    QuotaSection,
    RefusalExample,
    is_message_call,
    make_code_patterns,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.queue import is_fifo_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import DeduplicateByGroup, LimitThroughputByGroup, WordStep
from mendq.notifications.commands import list_quotas_command

_QUOTA_WITHOUT_HIGH_THROUGHPUT_TEXT = "300 a second without high throughput, which nobody can raise"
# The order counts: SQS takes a throughput limit per group only with deduplication per group.
HIGH_THROUGHPUT_STEPS: tuple[type[WordStep], ...] = (DeduplicateByGroup, LimitThroughputByGroup)


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan those steps to high throughput that the queue still lacks.

    Notify people if it lacks none, or if a step would overwrite a value that Mendq does not know.
    """
    current_value_by_step = {
        step: step.value_in(facts.attributes) for step in HIGH_THROUGHPUT_STEPS
    }
    missing_steps = [
        step for step in HIGH_THROUGHPUT_STEPS if current_value_by_step[step] != step.fix_word
    ]
    quotas_command_line = list_quotas_command("sqs", facts.queue_arn)
    for step in missing_steps:
        # SQS may get new values. Mendq does not know their meaning, so it does not overwrite them.
        if current_value_by_step[step] != step.default_word:
            current_value = current_value_by_step[step]
            reason = (
                f"{step.attribute} is {current_value!r}, which Mendq does not know: it keeps off"
            )
            return Escalate("high_throughput_unknown", reason, quotas_command_line)
    if not missing_steps:
        reason = (
            "the queue has high throughput: few message groups carry most of the load (300 calls a "
            "second each), or the region's quota is reached; more groups and batches help"
        )
        return Escalate("high_throughput_already", reason, quotas_command_line)
    return Plan(
        tuple(step(step.default_word, step.fix_word) for step in missing_steps),
        "the queue is throttled at 300 calls a second for each API action; with high throughput "
        "that holds for each message group, so it helps only where there are many. Deduplication "
        "then looks at each group alone: one id in two groups is two messages",
    )


def _make_example_queue(deduplication_scope: str, throughput_limit: str = "perQueue") -> Facts:
    """Return a FIFO queue with this DeduplicationScope and FifoThroughputLimit."""
    return queue(DeduplicationScope=deduplication_scope, FifoThroughputLimit=throughput_limit)


_THROTTLED_SEND = failed_call("SendMessage", "ThrottlingException", "Rate exceeded")
_PER_GROUP_THROUGHPUT_LIMIT = LimitThroughputByGroup.fix_word
_BOTH_HIGH_THROUGHPUT_STEPS = tuple(
    step(step.default_word, step.fix_word) for step in HIGH_THROUGHPUT_STEPS
)

FIFO_THROTTLED = FixedSymptom(
    name="fifo_throttled",
    sentence="A FIFO queue is called more often than SQS allows it.",
    plan_in_words="Turn on high throughput: DeduplicationScope messageGroup and "
    "FifoThroughputLimit perMessageGroupId, in one call.",
    habit="keeps outrunning its FIFO quota",
    first_step="Turn on high throughput for the FIFO queue.",
    aws_page=f"{SQS_GUIDE}/high-throughput-fifo.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    seen_as=make_code_patterns("empty_receives", is_fifo_arn),
    # High throughput does not help other calls.
    is_evidence=is_message_call,
    steps=HIGH_THROUGHPUT_STEPS,
    plan=plan,
    extra_sections=QuotaSection(
        "calls of each API action",
        f"{_QUOTA_WITHOUT_HIGH_THROUGHPUT_TEXT}; with it, by region",
        "sqs",
    ),
    examples=lambda: (
        CallExample(
            "a queue as SQS makes it",
            _THROTTLED_SEND,
            _make_example_queue("queue"),
            _BOTH_HIGH_THROUGHPUT_STEPS,
        ),
        CallExample(
            "what is on is not written again",
            _THROTTLED_SEND,
            _make_example_queue("messageGroup"),
            _BOTH_HIGH_THROUGHPUT_STEPS[1:],
        ),
        CallNearMiss("a standard queue", replace(_THROTTLED_SEND, queue_arn=STANDARD_ARN)),
        RefusalExample(
            "both are on",
            _make_example_queue("messageGroup", _PER_GROUP_THROUGHPUT_LIMIT),
            "high_throughput_already",
        ),
        RefusalExample(
            "a scope that SQS has added since",
            _make_example_queue("tenant"),
            "high_throughput_unknown",
        ),
    ),
)
