"""Symptom `empty_receives`: consumers ask so often for messages that are not there that it hurts.

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

from mendq.catalogue.examples import FUNCTION, STANDARD_ARN, failed_call, standard
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    carries_messages,
    seen_as_labelled,
)
from mendq.model.evidence import RECEIVE_MESSAGE, actions_allowing
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import is_standard_arn, number_in
from mendq.model.steps import SetReceiveWaitTime
from mendq.notifications.commands import quotas_command
from mendq.notifications.text import format_count, format_duration

MOST_SECONDS = SetReceiveWaitTime.maximum
# AWS bills every receive, also an empty one. The queue is reported from ten empty receives for each
# received message on, if there are at least 10,000 an hour: these cost about 3 dollars a month.
EMPTY_FOR_EACH_MESSAGE = 10
EMPTY_AN_HOUR = 10_000
_NEEDS = frozenset({Need.MEASUREMENTS})


def detect(facts: Facts) -> DetectedFault | None:
    """Find short polling that gets no message nearly every time.

    A queue that a Lambda function reads is not reported, because Lambda uses long polling.
    """
    measured = facts.measurement
    if measured is None or not facts.is_short_polled:
        return None
    empty = measured.empty_receives
    received = measured.received
    if empty < max(1, EMPTY_FOR_EACH_MESSAGE * received, EMPTY_AN_HOUR * measured.hours):
        return None
    return DetectedFault(
        f"{empty:,} receives in {format_duration(measured.duration)} found nothing, while "
        f"{format_count(received, 'message')} came"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the longest wait if receives are throttled, or if nearly all of them are empty.

    Failed calls name the throttled API calls. A scan has no failed calls: it counted the receives.
    """
    quotas = quotas_command("sqs", facts.queue_arn)
    if not facts.found and not facts.event_names:
        return Ignore("need_already_met", "few receives are in vain by now")
    if not facts.found and RECEIVE_MESSAGE not in actions_allowing(facts.event_names):
        reason = (
            f"the throttled calls are {', '.join(facts.event_names)}: readers that wait longer "
            "would not make them fewer. Look at how callers retry, and at the account's rate"
        )
        return Refuse("senders_throttled", reason, quotas)
    current = number_in(facts.attributes, SetReceiveWaitTime.attribute)
    if current >= MOST_SECONDS:
        reason = (
            f"receives already wait {MOST_SECONDS} s unless a reader asks for less, and are "
            "throttled: look for readers that set WaitTimeSeconds, and how many there are"
        )
        return Escalate("already_long_polling", reason, quotas)
    reason = (
        f"{facts.found or 'receives are throttled'}, and on an empty queue each waits "
        f"{current:,} s for a message; with {MOST_SECONDS} s there are fewer of them. A client "
        "whose read timeout is shorter hangs up first and leaves messages in flight that nobody has"
    )
    step = SetReceiveWaitTime(current, MOST_SECONDS)
    if not facts.lambda_consumers:
        return Plan((step,), reason)
    reason += ". Lambda sets the wait itself: if nobody else reads the queue, this changes nothing"
    return Plan((step,), reason, at_most=Mode.PROPOSE)


def _throttled_queue(wait_seconds: int, *event_names: str, **over: Any) -> Facts:
    """Return a queue with this wait, on which these API calls were throttled."""
    return standard(ReceiveMessageWaitTimeSeconds=wait_seconds, event_names=event_names, **over)


def _short_polled_queue(empty_receives: int = 60_000, received: int = 6_000, **over: Any) -> Facts:
    """Return a queue with short polling and these counts in six hours."""
    counts = {"empty_receives": empty_receives, "received": received}
    return standard(**{"ReceiveMessageWaitTimeSeconds": 0, **counts, **over})


_RAISED = (SetReceiveWaitTime(0, 20),)
_BY_LAMBDA_TOO = _throttled_queue(0, "ReceiveMessage", lambda_consumers=(FUNCTION,))
_RECEIVE = failed_call("ReceiveMessage", "RequestThrottled", "", STANDARD_ARN)

EMPTY_RECEIVES = FixedSymptom(
    name="empty_receives",
    sentence="Readers ask for messages that are not there, so often that it costs or is throttled.",
    plan_in_words="Raise ReceiveMessageWaitTimeSeconds to 20, where receives are throttled or in "
    "vain.",
    habit="keeps being polled faster than its messages come",
    aws_page=f"{SQS_GUIDE}/sqs-short-and-long-polling.html",
    seen_as=seen_as_labelled("empty_receives", is_standard_arn),
    is_evidence=carries_messages,
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetReceiveWaitTime,),
    plan=plan,
    # Short polling is SQS's default, so nearly every queue of an account may be suspect.
    detection=Detection(
        detect, _NEEDS, lambda facts: facts.is_short_polled, measured_last=True, reads=("receives",)
    ),
    examples=lambda: (
        CallExample(
            "short polling, SQS's default", _RECEIVE, _throttled_queue(0, "ReceiveMessage"), _RAISED
        ),
        CallExample("a Lambda consumer beside other readers", _RECEIVE, _BY_LAMBDA_TOO, _RAISED),
        QueueExample("ten in vain for each message", _short_polled_queue(), _RAISED),
        QueueExample(
            "nobody sends, and readers never rest", _short_polled_queue(2_000_000, 0), _RAISED
        ),
        QueueNearMiss("every tenth receive finds one", _short_polled_queue(60_000, 6_001)),
        QueueNearMiss(
            "readers wait, if only a little", _short_polled_queue(ReceiveMessageWaitTimeSeconds=1)
        ),
        QueueNearMiss(
            "Lambda reads it, and waits by itself",
            _short_polled_queue(lambda_consumers=(FUNCTION,)),
        ),
        CallNearMiss("FIFO has other limits", failed_call("ReceiveMessage", "RequestThrottled")),
        RefusalExample("senders alone", _throttled_queue(0, "SendMessage"), "senders_throttled"),
        RefusalExample(
            "long polling is on", _throttled_queue(20, "ReceiveMessage"), "already_long_polling"
        ),
    ),
)
