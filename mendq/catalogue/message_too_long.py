"""Senders' messages are longer than the queue takes, and shorter than SQS would.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, SeenAs, Symptom
from mendq.model.facts import DlqFacts, Facts, Need
from mendq.model.failed_call import size_limit_bytes
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import arn_of, parts_of, public_url
from mendq.model.steps import SetMaximumMessageSize
from mendq.notifications.commands import get_attributes

MOST_BYTES = SetMaximumMessageSize.maximum


@dataclass(frozen=True)
class DlqFirst:
    """What a person does about the DLQ before this one is raised, and why."""

    because: str
    command: str


def names_a_limit_that_can_rise(error_message: str) -> bool:
    limit_bytes = size_limit_bytes(error_message)
    return limit_bytes is not None and limit_bytes < MOST_BYTES


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """SQS's own limit, from the queue's attribute and never from the event."""
    return _already_met(facts) or _raise(facts, _dlq_first(facts))


def _already_met(facts: Facts) -> Refusal | None:
    if facts.maximum_message_bytes < MOST_BYTES:
        return None
    reason = f"the queue takes {MOST_BYTES:,} bytes by now, as much as SQS allows"
    return Ignore("need_already_met", reason)


def _raise(facts: Facts, first: DlqFirst | None) -> Plan:
    current = facts.maximum_message_bytes
    step = SetMaximumMessageSize(current, MOST_BYTES)
    reason = (
        f"senders' messages are longer than the {current:,} bytes that the queue takes; SQS allows "
        f"{MOST_BYTES:,}. Consumers may be built for 256 KB: ask their owners first"
    )
    if first is None:
        return Plan((step,), reason)
    return Plan(
        (step,),
        f"{reason}. {first.because}",
        first=(first.command,),
        at_most=Mode.PROPOSE,
    )


def _dlq_first(facts: Facts) -> DlqFirst | None:
    """None where no DLQ stands in the way: there is none, or it takes as much."""
    if not facts.attributes.get("RedrivePolicy"):
        return None
    queue = facts.dlq
    arn = arn_of(facts.dlq_arn)
    if arn is None or queue is None:
        because = "Its RedrivePolicy names no queue that Mendq can read: see to that first"
        return DlqFirst(because, get_attributes(facts.queue_arn, "RedrivePolicy"))
    if parts_of(arn)[:3] != parts_of(facts.queue_arn)[:3]:
        because = f"Its DLQ {arn} is in another account or region: raise it first"
        return DlqFirst(because, _raise_command(arn))
    if queue.attributes is None:
        because = f"Its DLQ {arn} is gone: see to that first"
        return DlqFirst(because, get_attributes(facts.queue_arn, "RedrivePolicy"))
    taken = Facts(arn, queue.attributes, {}).maximum_message_bytes
    if taken >= MOST_BYTES:
        return None
    because = f"Its DLQ takes {taken:,} bytes: raise that one first"
    return DlqFirst(because, _raise_command(arn))


def _raise_command(queue_arn: str) -> str:
    return (
        f"aws sqs set-queue-attributes --region {parts_of(queue_arn).region} "
        f"--queue-url {public_url(queue_arn)} "
        f"--attributes {SetMaximumMessageSize.attribute}={MOST_BYTES}"
    )


def _too_long(limit_bytes: int) -> str:
    return (
        "One or more parameters are invalid. "
        f"Reason: Message must be shorter than {limit_bytes} bytes."
    )


def _taking(size_bytes: int, dlq_takes: int | None = None) -> Facts:
    """An example queue; with a DLQ where `dlq_takes` says how much."""
    queue = examples.queue(queue_arn=examples.STANDARD_ARN, MaximumMessageSize=str(size_bytes))
    if dlq_takes is None:
        return queue
    arn = f"{examples.STANDARD_ARN}-dlq"
    redrive = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 5}}'
    return replace(
        queue,
        attributes={**queue.attributes, "RedrivePolicy": redrive},
        dlq=DlqFacts(arn, {"MaximumMessageSize": str(dlq_takes)}),
    )


_REFUSED = examples.failed_call(
    "SendMessage", "InvalidParameterValue", _too_long(262_144), examples.STANDARD_ARN
)

MESSAGE_TOO_LONG = Symptom(
    name="message_too_long",
    sentence="Messages are longer than the queue takes, though SQS would take them.",
    plan_in_words="Raise MaximumMessageSize to 1,048,576; print the command for a dead-letter "
    "queue that takes less.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "quotas-messages.html",
    seen_as=(
        SeenAs(
            frozenset({"SendMessage", "SendMessageBatch"}),
            "InvalidParameterValue",
            names_a_limit_that_can_rise,
        ),
    ),
    needs=frozenset({Need.QUEUE, Need.DLQ}),
    steps=(SetMaximumMessageSize,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    shows=(SetMaximumMessageSize.attribute, "RedrivePolicy"),
    caught=(
        Caught(
            "a queue from the days of 256 KB",
            _REFUSED,
            _taking(262_144),
            (SetMaximumMessageSize(262_144, 1_048_576),),
        ),
        Caught(
            "what the event says is not how far it goes",
            examples.failed_call("SendMessage", "InvalidParameterValue", _too_long(1_024)),
            _taking(65_536),
            (SetMaximumMessageSize(65_536, 1_048_576),),
        ),
        Caught(
            "the DLQ takes less",
            _REFUSED,
            _taking(262_144, dlq_takes=262_144),
            (SetMaximumMessageSize(262_144, 1_048_576),),
        ),
    ),
    near_misses=(
        NearMiss(
            "longer than SQS takes at all",
            "no_match",
            call=examples.failed_call("SendMessage", "InvalidParameterValue", _too_long(1_048_576)),
        ),
        NearMiss(
            "a batch that is too long altogether",
            "no_match",
            call=examples.failed_call(
                "SendMessageBatch",
                "AWS.SimpleQueueService.BatchRequestTooLong",
                "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
            ),
        ),
        NearMiss(
            "a caller who writes SQS's sentence into a group id",
            "no_match",
            call=examples.failed_call(
                "SendMessage",
                "InvalidParameterValue",
                f"Value {_too_long(1_024)} for parameter MessageGroupId is invalid. Reason: "
                "MessageGroupId can only include alphanumeric and punctuation characters. "
                "1 to 128 in length.",
            ),
        ),
        NearMiss("a queue that was raised meanwhile", "need_already_met", facts=_taking(1_048_576)),
    ),
)
