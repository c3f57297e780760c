"""Symptom `message_too_long`: messages are longer than the queue takes, though SQS would take them.

The fault: the queue's `MaximumMessageSize` is below SQS's maximum of 1 MiB, often because the queue
is from the time when the maximum was 256 KiB. SQS refuses longer messages, and they are lost unless
the producer keeps them.

How it shows: CloudTrail records sends that fail with "Message must be shorter than N bytes", where
N is below 1 MiB.

What Mendq changes: it proposes a `MaximumMessageSize` of 1,048,576 bytes. If the queue's DLQ takes
less, it prints the command that raises the DLQ first. It never changes that queue on its own.

Why that is safe: the new value only allows longer messages, and the messages in the queue stay as
they are. The value comes from SQS's limit and not from the failed call, whose text an attacker
could choose. Consumers may not be built for long messages, so by default a person approves the
change.
"""

from __future__ import annotations

from mendq.catalogue.examples import (
    DLQ_ARN,
    failed_call,
    make_send_with_refused_attribute,
    queue_with_dlq,
    standard_queue,
)
from mendq.catalogue.symptom import (
    SEND_CALLS,
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    FailedCallPattern,
    FixedSymptom,
    RefusalExample,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.failed_call import FailedCall, find_size_limit_bytes
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import parse_queue_arn, queue_arn_or_none, read_number_attribute
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetMaximumMessageSize
from mendq.notifications.commands import get_attributes_command, set_attributes_command

LONGEST_MESSAGE_BYTES = SetMaximumMessageSize.maximum


def is_about_raisable_limit(error_message: str) -> bool:
    """Return True if SQS names a limit below its maximum; False for any other text."""
    limit_bytes = find_size_limit_bytes(error_message)
    return limit_bytes is not None and limit_bytes < LONGEST_MESSAGE_BYTES


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan SQS's maximum, if the queue's attribute is below it.

    If the DLQ takes less or cannot be checked, the plan has a command that a person runs first. The
    limit in the failed call does not count, because anybody may have written its text.
    """
    current_limit_bytes = read_number_attribute(facts.attributes, SetMaximumMessageSize.attribute)
    if current_limit_bytes >= LONGEST_MESSAGE_BYTES:
        reason = f"the queue takes {LONGEST_MESSAGE_BYTES:,} bytes by now, as much as SQS allows"
        return Ignore("need_already_met", reason)
    raise_step = SetMaximumMessageSize(current_limit_bytes, LONGEST_MESSAGE_BYTES)
    reason = (
        f"senders' messages are longer than the {current_limit_bytes:,} bytes that the queue "
        f"takes; SQS allows {LONGEST_MESSAGE_BYTES:,}. Consumers may be built for 256 KB: ask "
        "their owners first"
    )
    dlq_sentence, command = _describe_dlq_to_raise(facts)
    if not dlq_sentence:
        return Plan((raise_step,), reason)
    return Plan(
        (raise_step,),
        f"{reason}. {dlq_sentence}",
        first_commands=(command,),
        highest_mode=Mode.PROPOSE,
    )


def _describe_dlq_to_raise(facts: Facts) -> tuple[str, str]:
    """Return why a person must change the DLQ before this queue is changed, and the command for it.

    Both are empty if the queue has no DLQ, or if the DLQ takes messages of SQS's maximum size.
    """
    if not facts.attributes.get("RedrivePolicy"):
        return "", ""
    dlq_arn = queue_arn_or_none(facts.dlq_arn)
    dlq = facts.dlq
    show_dlq_command = get_attributes_command(facts.queue_arn, "RedrivePolicy")
    if dlq_arn is None or dlq is None:
        return (
            "Its RedrivePolicy names no queue that Mendq can read: see to that first",
            show_dlq_command,
        )
    raise_limit_command = set_attributes_command(
        dlq_arn, {SetMaximumMessageSize.attribute: str(LONGEST_MESSAGE_BYTES)}
    )
    if parse_queue_arn(dlq_arn)[:3] != parse_queue_arn(facts.queue_arn)[:3]:
        return (
            f"Its DLQ {dlq_arn} is in another account or region: raise it first",
            raise_limit_command,
        )
    if not dlq.exists:
        return f"Its DLQ {dlq_arn} is gone: see to that first", show_dlq_command
    dlq_limit_bytes = read_number_attribute(dlq.attributes, SetMaximumMessageSize.attribute)
    if dlq_limit_bytes >= LONGEST_MESSAGE_BYTES:
        return "", ""
    return f"Its DLQ takes {dlq_limit_bytes:,} bytes: raise that one first", raise_limit_command


def _make_refused_send(limit_bytes: int) -> FailedCall:
    """Return a send that SQS refused, with this limit in SQS's sentence."""
    reason = f"Reason: Message must be shorter than {limit_bytes} bytes."
    error_message = f"One or more parameters are invalid. {reason}"
    return failed_call("SendMessage", "InvalidParameterValue", error_message)


def _make_example(title: str, limit_bytes: int, facts: Facts) -> CallExample:
    """Return an example whose failed call names `limit_bytes`, on the queue in `facts`."""
    raise_step = SetMaximumMessageSize(facts.maximum_message_bytes, LONGEST_MESSAGE_BYTES)
    return CallExample(title, _make_refused_send(limit_bytes), facts, (raise_step,))


def _make_example_queue(maximum_message_bytes: int) -> Facts:
    """Return a queue with this MaximumMessageSize."""
    return standard_queue(MaximumMessageSize=maximum_message_bytes)


_QUEUE_WITH_SMALLER_DLQ = queue_with_dlq(
    MaximumMessageSize=262_144, dlq=QueueFacts(DLQ_ARN, _make_example_queue(262_144).attributes)
)

_SIZE_REFUSAL_SENTENCE = _make_refused_send(1_024).error_message

MESSAGE_TOO_LONG = FixedSymptom(
    name="message_too_long",
    sentence="Messages are longer than the queue takes, though SQS would take them.",
    plan_in_words="Raise MaximumMessageSize to 1,048,576; print the command for a DLQ that takes "
    "less.",
    habit="keeps being sent messages that are too long for it",
    first_step="Raise MaximumMessageSize, or send a reference in place of the payload.",
    aws_page=f"{SQS_GUIDE}/quotas-messages.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    seen_as=(FailedCallPattern(SEND_CALLS, "InvalidParameterValue", is_about_raisable_limit),),
    needs=frozenset({Need.QUEUE, Need.DLQ}),
    steps=(SetMaximumMessageSize,),
    plan=plan,
    shown_attributes=(SetMaximumMessageSize.attribute, "RedrivePolicy"),
    examples=lambda: (
        _make_example("a queue from the days of 256 KB", 262_144, _make_example_queue(262_144)),
        _make_example(
            "what the event says is not how far it goes", 1_024, _make_example_queue(65_536)
        ),
        _make_example("the DLQ takes less", 262_144, _QUEUE_WITH_SMALLER_DLQ),
        CallNearMiss("longer than SQS takes at all", _make_refused_send(LONGEST_MESSAGE_BYTES)),
        CallNearMiss(
            "SQS's sentence in a group id",
            make_send_with_refused_attribute("MessageGroupId", _SIZE_REFUSAL_SENTENCE),
        ),
        RefusalExample(
            "it was raised meanwhile",
            _make_example_queue(LONGEST_MESSAGE_BYTES),
            "need_already_met",
        ),
    ),
)
