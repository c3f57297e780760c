"""Symptom `empty_receives`: too many receives return no message.

The fault: `ReceiveMessageWaitTimeSeconds` is 0 (short polling), so SQS answers each receive at
once, also with no message. Each receive is billed, and too many of them get the queue throttled.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html

How it shows: CloudTrail records throttled receives, or CloudWatch counts at least ten empty
receives for each message and at least 10,000 per hour.

What Mendq changes: it proposes a wait of 20 s, SQS's maximum (long polling). SQS then answers as
soon as a message arrives, or after 20 s.

Why that is safe: no message is delayed or lost, and consumers that set their own WaitTimeSeconds
are not affected. One thing can go wrong, and the proposal says it: a client whose read timeout is
shorter than the wait gives up too early and leaves messages in flight. So by default a person
approves it.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, STANDARD_ARN, failed_call, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    is_message_call,
    make_code_patterns,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.message_calls import RECEIVE_MESSAGE_ACTION, list_actions_allowing
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import is_standard_arn, read_number_attribute
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetReceiveWaitTime
from mendq.notifications.commands import list_quotas_command
from mendq.notifications.text import format_count, format_duration

LONGEST_WAIT_SECONDS = SetReceiveWaitTime.maximum
# AWS bills every receive, also an empty one. The queue is reported from ten empty receives for each
# received message on, if there are at least 10,000 an hour: these cost about 3 dollars a month.
LEAST_EMPTY_RECEIVES_PER_MESSAGE = 10
LEAST_EMPTY_RECEIVES_PER_HOUR = 10_000
_DETECTION_NEEDS = frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS})


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue with short polling on which nearly every receive returns no message.

    There must also be at least LEAST_EMPTY_RECEIVES_PER_HOUR empty receives per hour. A queue that
    a Lambda function reads is not reported, because Lambda uses long polling.
    """
    measurement = facts.measurement
    if measurement is None or not facts.is_short_polled:
        return None
    empty_receive_count = measurement.empty_receives
    received_message_count = measurement.received
    if empty_receive_count < max(
        1,
        LEAST_EMPTY_RECEIVES_PER_MESSAGE * received_message_count,
        LEAST_EMPTY_RECEIVES_PER_HOUR * measurement.hours,
    ):
        return None
    return DetectedFault(
        f"{empty_receive_count:,} receives in {format_duration(measurement.duration)} found "
        f"nothing, while {format_count(received_message_count, 'message')} came"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the longest wait if receives are throttled, or if nearly all of them are empty.

    If other calls are throttled, or if the wait is the longest already, return the refusal. After
    failed calls, `facts.event_names` has the throttled API calls. After a scan, `facts.found` says
    how many receives were empty.
    """
    quotas_command_line = list_quotas_command("sqs", facts.queue_arn)
    if not facts.found and not facts.event_names:
        return Ignore("need_already_met", "few receives are in vain by now")
    if not facts.found and RECEIVE_MESSAGE_ACTION not in list_actions_allowing(facts.event_names):
        reason = (
            f"the throttled calls are {', '.join(facts.event_names)}: readers that wait longer "
            "would not make them fewer. Look at how callers retry, and at the account's rate"
        )
        return Refuse("senders_throttled", reason, quotas_command_line)
    current_wait_seconds = read_number_attribute(facts.attributes, SetReceiveWaitTime.attribute)
    if current_wait_seconds >= LONGEST_WAIT_SECONDS:
        reason = (
            f"receives already wait {LONGEST_WAIT_SECONDS} s unless a reader asks for less, and "
            "are throttled: look for readers that set WaitTimeSeconds, and how many there are"
        )
        return Escalate("already_long_polling", reason, quotas_command_line)
    reason = (
        f"{facts.found or 'receives are throttled'}, and on an empty queue each waits "
        f"{current_wait_seconds:,} s for a message; with {LONGEST_WAIT_SECONDS} s there are fewer "
        "of them. A client whose read timeout is shorter hangs up first and leaves messages in "
        "flight that nobody has"
    )
    step = SetReceiveWaitTime(current_wait_seconds, LONGEST_WAIT_SECONDS)
    if not facts.lambda_consumers:
        return Plan((step,), reason)
    reason += ". Lambda sets the wait itself: if nobody else reads the queue, this changes nothing"
    return Plan((step,), reason, highest_mode=Mode.PROPOSE)


def _make_throttled_queue(wait_seconds: int, *event_names: str, **overrides: Any) -> Facts:
    """Return a queue with this wait, on which these API calls were throttled."""
    return standard_queue(
        ReceiveMessageWaitTimeSeconds=wait_seconds, event_names=event_names, **overrides
    )


def _make_short_polled_queue(
    empty_receive_count: int = 60_000, received_count: int = 6_000, **overrides: Any
) -> Facts:
    """Return a queue with short polling and these counts in six hours."""
    receive_counts = {"empty_receives": empty_receive_count, "received": received_count}
    return standard_queue(**{"ReceiveMessageWaitTimeSeconds": 0, **receive_counts, **overrides})


_RAISE_WAIT_TIME_STEPS = (SetReceiveWaitTime(0, 20),)
_QUEUE_WITH_LAMBDA_READER = _make_throttled_queue(
    0, "ReceiveMessage", lambda_consumers=(LAMBDA_FUNCTION,)
)
_THROTTLED_RECEIVE = failed_call("ReceiveMessage", "RequestThrottled", "", STANDARD_ARN)

EMPTY_RECEIVES = FixedSymptom(
    name="empty_receives",
    sentence="Readers ask for messages that are not there, so often that it costs or is throttled.",
    plan_in_words="Raise ReceiveMessageWaitTimeSeconds to 20, where receives are throttled or in "
    "vain.",
    habit="keeps being polled faster than its messages come",
    first_step="Turn on long polling (20 seconds).",
    aws_page=f"{SQS_GUIDE}/sqs-short-and-long-polling.html",
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    seen_as=make_code_patterns("empty_receives", is_standard_arn),
    is_evidence=is_message_call,
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetReceiveWaitTime,),
    plan=plan,
    # Short polling is SQS's default, so nearly every queue of an account may be suspect.
    detection=Detection(
        detect,
        _DETECTION_NEEDS,
        lambda facts: facts.is_short_polled,
        is_measured_last=True,
        metric_kinds=("receives",),
    ),
    examples=lambda: (
        CallExample(
            "short polling, SQS's default",
            _THROTTLED_RECEIVE,
            _make_throttled_queue(0, "ReceiveMessage"),
            _RAISE_WAIT_TIME_STEPS,
        ),
        CallExample(
            "a Lambda consumer beside other readers",
            _THROTTLED_RECEIVE,
            _QUEUE_WITH_LAMBDA_READER,
            _RAISE_WAIT_TIME_STEPS,
        ),
        QueueExample(
            "ten in vain for each message", _make_short_polled_queue(), _RAISE_WAIT_TIME_STEPS
        ),
        QueueExample(
            "nobody sends, and readers never rest",
            _make_short_polled_queue(2_000_000, 0),
            _RAISE_WAIT_TIME_STEPS,
        ),
        QueueNearMiss("every tenth receive finds one", _make_short_polled_queue(60_000, 6_001)),
        QueueNearMiss(
            "readers wait, if only a little",
            _make_short_polled_queue(ReceiveMessageWaitTimeSeconds=1),
        ),
        QueueNearMiss(
            "Lambda reads it, and waits by itself",
            _make_short_polled_queue(lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
        CallNearMiss("FIFO has other limits", failed_call("ReceiveMessage", "RequestThrottled")),
        RefusalExample(
            "senders alone", _make_throttled_queue(0, "SendMessage"), "senders_throttled"
        ),
        RefusalExample(
            "long polling is on",
            _make_throttled_queue(20, "ReceiveMessage"),
            "already_long_polling",
        ),
    ),
)
