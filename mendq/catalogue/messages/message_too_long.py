"""Senders' messages are longer than the queue takes, and shorter than SQS would."""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, failed_call, not_taken, standard, with_dlq
from mendq.catalogue.symptom import (
    SENDS,
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    FixedSymptom,
    RefusalExample,
    SeenAs,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.failed_call import FailedCall, size_limit_bytes
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import arn_of, number_in, parts_of
from mendq.model.steps import SetMaximumMessageSize
from mendq.notifications.commands import get_attributes, set_command

MOST_BYTES = SetMaximumMessageSize.maximum


def names_a_limit_that_can_rise(error_message: str) -> bool:
    limit_bytes = size_limit_bytes(error_message)
    return limit_bytes is not None and limit_bytes < MOST_BYTES


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """SQS's own limit, from the queue's attribute and never from the event."""
    current = number_in(facts.attributes, SetMaximumMessageSize.attribute)
    if current >= MOST_BYTES:
        reason = f"the queue takes {MOST_BYTES:,} bytes by now, as much as SQS allows"
        return Ignore("need_already_met", reason)
    step = SetMaximumMessageSize(current, MOST_BYTES)
    reason = (
        f"senders' messages are longer than the {current:,} bytes that the queue takes; SQS allows "
        f"{MOST_BYTES:,}. Consumers may be built for 256 KB: ask their owners first"
    )
    because, command = _dlq_first(facts)
    if not because:
        return Plan((step,), reason)
    return Plan((step,), f"{reason}. {because}", first=(command,), at_most=Mode.PROPOSE)


def _dlq_first(facts: Facts) -> tuple[str, str]:
    """What a person does about the DLQ before this one is raised: why, and the command.

    Both are empty where no DLQ stands in the way: there is none, or it takes as much.
    """
    if not facts.attributes.get("RedrivePolicy"):
        return "", ""
    arn, dlq = arn_of(facts.dlq_arn), facts.dlq
    command = get_attributes(facts.queue_arn, "RedrivePolicy")
    if arn is None or dlq is None:
        return "Its RedrivePolicy names no queue that Mendq can read: see to that first", command
    raise_it = set_command(arn, {SetMaximumMessageSize.attribute: str(MOST_BYTES)})
    if parts_of(arn)[:3] != parts_of(facts.queue_arn)[:3]:
        return f"Its DLQ {arn} is in another account or region: raise it first", raise_it
    if not dlq.exists:
        return f"Its DLQ {arn} is gone: see to that first", command
    taken = number_in(dlq.attributes, SetMaximumMessageSize.attribute)
    if taken >= MOST_BYTES:
        return "", ""
    return f"Its DLQ takes {taken:,} bytes: raise that one first", raise_it


def _too_long(limit_bytes: int) -> FailedCall:
    reason = f"Reason: Message must be shorter than {limit_bytes} bytes."
    said = f"One or more parameters are invalid. {reason}"
    return failed_call("SendMessage", "InvalidParameterValue", said)


def _caught(title: str, limit_bytes: int, facts: Facts) -> CallExample:
    """A call that names a limit, on a queue that takes what it takes."""
    raised = SetMaximumMessageSize(facts.maximum_message_bytes, MOST_BYTES)
    return CallExample(title, _too_long(limit_bytes), facts, (raised,))


def _taking(size_bytes: int) -> Facts:
    return standard(MaximumMessageSize=size_bytes)


_TO_LESS = with_dlq(
    MaximumMessageSize=262_144, dlq=QueueFacts(DLQ_ARN, _taking(262_144).attributes)
)

_SAID = _too_long(1_024).error_message

MESSAGE_TOO_LONG = FixedSymptom(
    name="message_too_long",
    sentence="Messages are longer than the queue takes, though SQS would take them.",
    plan_in_words="Raise MaximumMessageSize to 1,048,576; print the command for a DLQ that takes "
    "less.",
    habit="keeps being sent messages that are too long for it",
    aws_page=f"{SQS_GUIDE}/quotas-messages.html",
    seen_as=(SeenAs(SENDS, "InvalidParameterValue", names_a_limit_that_can_rise),),
    needs=frozenset({Need.QUEUE, Need.DLQ}),
    steps=(SetMaximumMessageSize,),
    plan=plan,
    shown_attributes=(SetMaximumMessageSize.attribute, "RedrivePolicy"),
    examples=lambda: (
        _caught("a queue from the days of 256 KB", 262_144, _taking(262_144)),
        _caught("what the event says is not how far it goes", 1_024, _taking(65_536)),
        _caught("the DLQ takes less", 262_144, _TO_LESS),
        CallNearMiss("longer than SQS takes at all", _too_long(MOST_BYTES)),
        CallNearMiss("SQS's sentence in a group id", not_taken("MessageGroupId", _SAID)),
        RefusalExample("it was raised meanwhile", _taking(MOST_BYTES), "need_already_met"),
    ),
)
