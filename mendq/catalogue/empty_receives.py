"""Readers come back before there is anything to read, and may get a queue throttled with it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import (
    NOT_FOUND,
    Caught,
    Detected,
    Detection,
    Found,
    NearMiss,
    SeenAs,
    Symptom,
)
from mendq.model.evidence import MESSAGE_TRAFFIC, receives
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.failed_call import FailedCall, codes_labelled
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import not_on_fifo
from mendq.model.steps import SetReceiveWaitTime
from mendq.notifications.commands import quotas_command
from mendq.notifications.text import counted

MOST_SECONDS = SetReceiveWaitTime.maximum
# Receives are paid for, found something or not: ten of these are for nothing where one is not,
# and ten thousand an hour are about three dollars a month.
EMPTY_FOR_EACH_MESSAGE = 10
EMPTY_AN_HOUR = 10_000


def speaks(call: FailedCall) -> bool:
    """Message traffic alone: looking at a queue has a rate of its own."""
    return call.event_name in MESSAGE_TRAFFIC


def detect(facts: Facts) -> Found | None:
    """Short polling that finds nothing nearly every time; Lambda polls long by itself."""
    measured = facts.measured
    if measured is None or not is_suspect(facts):
        return None
    empty, received = measured.empty_receives, measured.received
    if empty < max(1, EMPTY_FOR_EACH_MESSAGE * received, EMPTY_AN_HOUR * measured.hours):
        return None
    return Found(
        f"{empty:,} receives in {measured.hours:.1f} h found nothing, while "
        f"{counted(received, 'message')} came"
    )


def is_suspect(facts: Facts) -> bool:
    return facts.receive_wait_seconds == 0 and not facts.lambda_consumers


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The longest wait, where it is the receives that are throttled, or in vain."""
    return _no_receive_throttled(facts) or _already_long(facts) or _wait_longer(facts)


def _no_receive_throttled(facts: Facts) -> Refusal | None:
    """Where no call failed, a scan counted receives."""
    if facts.found or receives(facts.event_names):
        return None
    if not facts.event_names:
        return Ignore("need_already_met", "few receives are in vain by now")
    calls = ", ".join(facts.event_names)
    reason = (
        f"the throttled calls are {calls}: readers that wait longer would not make them fewer. "
        "A person has to look at how the callers retry, and at the account's rate of calls"
    )
    return Refuse("senders_throttled", reason, next_command=quotas_command("sqs", facts.queue_arn))


def _already_long(facts: Facts) -> Refusal | None:
    if facts.receive_wait_seconds < MOST_SECONDS:
        return None
    reason = (
        f"receives already wait {MOST_SECONDS} s unless a reader asks for less, and are throttled: "
        "look for readers that set WaitTimeSeconds themselves, and for how many there are"
    )
    return Escalate(
        "already_long_polling", reason, next_command=quotas_command("sqs", facts.queue_arn)
    )


def _wait_longer(facts: Facts) -> Plan:
    current = facts.receive_wait_seconds
    reason = (
        f"{facts.found or 'receives are throttled'}, and on an empty queue each waits {current} s "
        f"for a message; with {MOST_SECONDS} s there are fewer of them. A client whose read "
        f"timeout is shorter than {MOST_SECONDS} s hangs up first and leaves messages in flight "
        "that nobody has"
    )
    step = SetReceiveWaitTime(current, MOST_SECONDS)
    if not facts.lambda_consumers:
        return Plan((step,), reason)
    reason += ". Lambda sets the wait itself: if nobody else reads the queue, this changes nothing"
    return Plan((step,), reason, at_most=Mode.PROPOSE)


def _read(wait_seconds: str, *event_names: str) -> Facts:
    queue = examples.queue(
        queue_arn=examples.STANDARD_ARN, ReceiveMessageWaitTimeSeconds=wait_seconds
    )
    return replace(queue, event_names=event_names)


_RECEIVE = examples.failed_call(
    "ReceiveMessage", "RequestThrottled", queue_arn=examples.STANDARD_ARN
)
_IN_VAIN = replace(
    _read("0"),
    measured=examples.measured(empty_receives=60_000, sent=6_000, received=6_000, deleted=6_000),
)
_FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 0)

EMPTY_RECEIVES = Symptom(
    name="empty_receives",
    sentence="Readers ask for messages that are not there, so often that it costs or is throttled.",
    plan_in_words="Raise ReceiveMessageWaitTimeSeconds to 20, where receives are throttled or in "
    "vain.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-short-and-long-polling.html",
    seen_as=tuple(SeenAs(None, code, on=not_on_fifo) for code in codes_labelled("empty_receives")),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetReceiveWaitTime,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    speaks=speaks,
    # SQS starts every queue with short polling: nearly all of an account's may be suspect.
    detection=Detection(detect, frozenset({Need.MEASUREMENTS}), is_suspect, measured_last=True),
    caught=(
        Caught(
            "short polling, SQS's default",
            _RECEIVE,
            _read("0", "ReceiveMessage"),
            (SetReceiveWaitTime(0, 20),),
        ),
        Caught(
            "a short wait, receives among other throttled calls",
            examples.failed_call(
                "SendMessage", "ThrottlingException", queue_arn=examples.STANDARD_ARN
            ),
            _read("5", "ReceiveMessage", "SendMessage"),
            (SetReceiveWaitTime(5, 20),),
        ),
        Caught(
            "a Lambda consumer beside other readers",
            _RECEIVE,
            replace(_read("0", "ReceiveMessage"), lambda_consumers=(_FUNCTION,)),
            (SetReceiveWaitTime(0, 20),),
        ),
    ),
    detected=(
        Detected("ten in vain for each message", _IN_VAIN, (SetReceiveWaitTime(0, 20),)),
        Detected(
            "nobody sends, and readers never rest",
            replace(_read("0"), measured=examples.measured(empty_receives=2_000_000)),
            (SetReceiveWaitTime(0, 20),),
        ),
    ),
    near_misses=(
        NearMiss(
            "fewer than 10,000 an hour",
            NOT_FOUND,
            facts=replace(_IN_VAIN, measured=examples.measured(empty_receives=59_999)),
        ),
        NearMiss(
            "every tenth receive finds one",
            NOT_FOUND,
            facts=replace(
                _IN_VAIN, measured=examples.measured(empty_receives=60_000, received=6_001)
            ),
        ),
        NearMiss(
            "readers wait, if only a little",
            NOT_FOUND,
            facts=replace(_read("1"), measured=_IN_VAIN.measured),
        ),
        NearMiss(
            "Lambda reads it, and waits by itself",
            NOT_FOUND,
            facts=replace(_IN_VAIN, lambda_consumers=(_FUNCTION,)),
        ),
        NearMiss(
            "a FIFO queue is throttled for another reason",
            "no_match",
            call=examples.failed_call("ReceiveMessage", "RequestThrottled"),
        ),
        NearMiss(
            "too much in flight is not too often asked",
            "no_match",
            call=examples.failed_call(
                "ReceiveMessage", "OverLimit", queue_arn=examples.STANDARD_ARN
            ),
        ),
        NearMiss("senders alone", "senders_throttled", facts=_read("0", "SendMessage")),
        NearMiss("long polling is on", "already_long_polling", facts=_read("20", "ReceiveMessage")),
    ),
)
