"""Senders' messages are longer than the queue takes, and shorter than SQS would."""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, but, failed_call, not_taken, standard
from mendq.catalogue.symptom import SENDS, SQS_GUIDE, Caught, Fixed, NotMatched, Refused, SeenAs
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.failed_call import size_limit_bytes
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import Redrive, arn_of, number_in, parts_of
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


def _too_long(limit_bytes: int) -> str:
    return (
        "One or more parameters are invalid. "
        f"Reason: Message must be shorter than {limit_bytes} bytes."
    )


_REFUSED = failed_call("SendMessage", "InvalidParameterValue", _too_long(262_144))
_RAISED = (SetMaximumMessageSize(262_144, 1_048_576),)
_OF_256_KB = standard(MaximumMessageSize=262_144)

MESSAGE_TOO_LONG = Fixed(
    name="message_too_long",
    sentence="Messages are longer than the queue takes, though SQS would take them.",
    plan_in_words="Raise MaximumMessageSize to 1,048,576; print the command for a dead-letter "
    "queue that takes less.",
    habit="keeps being sent messages that are too long for it",
    aws_page=f"{SQS_GUIDE}/quotas-messages.html",
    seen_as=(SeenAs(SENDS, "InvalidParameterValue", names_a_limit_that_can_rise),),
    needs=frozenset({Need.QUEUE, Need.DLQ}),
    steps=(SetMaximumMessageSize,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    shows=(SetMaximumMessageSize.attribute, "RedrivePolicy"),
    examples=lambda: (
        Caught("a queue from the days of 256 KB", _REFUSED, _OF_256_KB, _RAISED),
        Caught(
            "what the event says is not how far it goes",
            failed_call("SendMessage", "InvalidParameterValue", _too_long(1_024)),
            standard(MaximumMessageSize=65_536),
            (SetMaximumMessageSize(65_536, 1_048_576),),
        ),
        Caught(
            "the DLQ takes less",
            _REFUSED,
            but(
                _OF_256_KB,
                RedrivePolicy=Redrive(DLQ_ARN, 5).text,
                dlq=QueueFacts(DLQ_ARN, {"MaximumMessageSize": "262144"}),
            ),
            _RAISED,
        ),
        NotMatched(
            "longer than SQS takes at all",
            failed_call("SendMessage", "InvalidParameterValue", _too_long(1_048_576)),
        ),
        NotMatched(
            "a caller who writes SQS's sentence into a group id",
            not_taken("MessageGroupId", _too_long(1_024)),
        ),
        Refused(
            "a queue that was raised meanwhile",
            standard(MaximumMessageSize=1_048_576),
            "need_already_met",
        ),
    ),
)
