"""Symptom `consumer_throttled`: Lambda cannot run the queue's function as often as needed.

The fault: the function's reserved concurrency, or the account's, is used up, so Lambda throttles
invocations. The messages of a throttled invocation return to the queue after the visibility
timeout, and each try counts as a receive. With a DLQ, a message that no code has seen can be moved
there. With a reserved concurrency of 0 Lambda never runs the function.

How it shows: at least a tenth of the last hour's invocations were throttled, and messages wait or
were received and not deleted. Such messages are in flight or in the DLQ, and not visible. A
reserved concurrency of 0 is a fact and needs no metric: one message of the queue is enough.

What Mendq does: it notifies people, with the share and a command that shows the concurrency. It
changes nothing: concurrency is shared by all functions of the account, and people decide who gets
it. A person may have set it to 0 on purpose.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from shlex import quote
from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, as_dlq, queue_with_dlq, standard_queue
from mendq.catalogue.symptom import (
    Advice,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    QuotaSection,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.model.traffic import MARGIN_MESSAGES
from mendq.notifications.commands import make_aws_command
from mendq.notifications.text import format_count, format_duration

# Throttled invocations explain the receives without a delete if their share is at least this part
# of the share of such receives.
LEAST_PART_OF_FRUITLESS_SHARE = 0.5
# From this share of throttled invocations on, the queue is reported. Less is normal in a short
# peak, because Lambda tries again automatically.
LEAST_THROTTLED_SHARE = 0.1
_THROTTLED = EvidenceKind(SeverityClass.FAILING_IN_PART, "Lambda throttles a part of the runs")
_SWITCHED_OFF = EvidenceKind(
    SeverityClass.STANDING_STILL,
    "the function's reserved concurrency is 0",
    is_of_template=True,
)


def detect(facts: Facts) -> DetectedFault | None:
    """Report a function that Lambda never runs, or else the one with the most throttled runs.

    None if that share is below LEAST_THROTTLED_SHARE (a tenth), or if the queue has no messages
    that the function cannot handle.
    """
    return _find_switched_off_fault(facts) or _find_throttled_fault(facts)


def do_throttles_explain_receives(facts: Facts) -> bool:
    """Return True if this symptom shows and explains most of the receives without a delete.

    Then the consumers' code is not the cause: Lambda did not run it.
    """
    measurement = facts.measurement
    function = _find_most_throttled_function(facts)
    if measurement is None or function is None or detect(facts) is None:
        return False
    fruitless_share = measurement.fruitless_receives / max(1, measurement.received)
    throttled_share = function.throttled_share or 0
    return (
        function.is_switched_off
        or throttled_share >= LEAST_PART_OF_FRUITLESS_SHARE * fruitless_share
    )


def detect_fact(facts: Facts, _now: datetime) -> DetectedFault | None:
    """Find a queue that was not measured, and whose function Lambda never runs."""
    return _find_switched_off_fault(facts)


def _find_switched_off_fault(facts: Facts) -> DetectedFault | None:
    """Report a function with a reserved concurrency of 0 if the queue has messages for it.

    A DLQ is not reported: its function is often switched off until somebody wants the messages.
    """
    function = _find_most_throttled_function(facts)
    if function is None or not function.is_switched_off or facts.receives_only_dlq_messages:
        return None
    held_count = facts.visible + facts.in_flight
    unfinished_count = _count_unfinished_messages(facts)
    if held_count:
        verb = "is" if held_count == 1 else "are"
        messages_text = f"{format_count(held_count, 'message')} {verb} waiting or in flight"
    elif unfinished_count > MARGIN_MESSAGES:
        count_text = format_count(unfinished_count, "message")
        messages_text = f"{count_text} were received and never deleted"
    else:
        return None
    return DetectedFault(
        f"Lambda never runs {function.name}, because its reserved concurrency is 0. "
        f"{messages_text}",
        evidence_kind=_SWITCHED_OFF,
    )


def _find_throttled_fault(facts: Facts) -> DetectedFault | None:
    measurement = facts.measurement
    throttled_function = _find_most_throttled_function(facts)
    if measurement is None or throttled_function is None:
        return None
    throttled_share = throttled_function.throttled_share or 0
    if throttled_share < LEAST_THROTTLED_SHARE:
        return None
    unfinished_count = _count_unfinished_messages(facts)
    if measurement.now.visible:
        verb = "waits" if measurement.now.visible == 1 else "wait"
        messages_text = (
            f"{format_count(measurement.now.visible, 'message')} {verb}, the oldest for "
            f"{measurement.now.oldest_age_seconds:,} s"
        )
    elif unfinished_count > measurement.balance_tolerance:
        messages_text = (
            f"{format_count(unfinished_count, 'message')} were received and never deleted in "
            f"{format_duration(measurement.duration)}"
        )
    else:
        return None
    return DetectedFault(
        f"{100 * throttled_share:.0f} % of the invocations of {throttled_function.name} were "
        f"throttled, and {messages_text}",
        evidence_kind=_THROTTLED,
    )


def _count_unfinished_messages(facts: Facts) -> int:
    """Return how many messages arrived in the measured time, were received and not deleted.

    Messages of the last hour do not count if they are still in the queue.
    """
    measurement = facts.measurement
    if measurement is None or not measurement.received:
        return 0
    return measurement.unfinished_messages


def _find_most_throttled_function(facts: Facts) -> LambdaConsumer | None:
    """Return a function that Lambda never runs, or else the one with the largest throttled share.

    None if no function reads the queue.
    """
    consumers = facts.lambda_consumers
    return max(
        consumers,
        key=lambda consumer: (consumer.is_switched_off, consumer.throttled_share or 0),
        default=None,
    )


def is_possible(facts: Facts) -> bool:
    """Return True if a Lambda function reads the queue."""
    return bool(facts.lambda_consumers)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: they decide how concurrency is shared."""
    function = _find_most_throttled_function(facts)
    is_switched_off = function is not None and function.is_switched_off
    max_receive_count = facts.max_receive_count
    if max_receive_count:
        consequence_text = (
            "Each throttled try counts as a receive, and after "
            f"{format_count(max_receive_count, 'receive')} a message moves to the DLQ, although no "
            "code has seen it"
        )
    elif is_switched_off:
        consequence_text = "The messages wait until the function can run"
    else:
        consequence_text = "The messages wait until Lambda can run the function more often"
    if is_switched_off:
        start_command = _make_function_command(facts, "delete-function-concurrency")
        advice = (
            f"To start the function again: {start_command}. If it is off on purpose, disable its "
            "event source mapping, so that the messages stay in the queue"
        )
        reason = f"{facts.found}. {consequence_text}. {advice}"
    else:
        cause_text = (
            "The function's reserved concurrency, or what is left of the account's, is too small "
            "for the traffic, or the mapping's MaximumConcurrency is higher than the reserve"
        )
        reason = f"{facts.found}. {cause_text}. {consequence_text}"
    # If this command prints nothing, the function has no reserved concurrency.
    command = _make_function_command(facts, "get-function-concurrency")
    return Escalate("consumer_throttled", reason, command)


def _make_function_command(facts: Facts, subcommand: str) -> str:
    """Return a command of `aws lambda` for the most throttled function.

    It is empty if no Lambda function reads the queue.
    """
    throttled_function = _find_most_throttled_function(facts)
    if throttled_function is None:
        return ""
    function_option = f"--function-name {quote(throttled_function.name)}"
    return make_aws_command(f"lambda {subcommand}", facts.queue_arn, function_option)


def _make_queue_of_switched_off_function(**overrides: Any) -> Facts:
    """Return a queue that was not measured, whose function has a reserved concurrency of 0."""
    function = replace(LAMBDA_FUNCTION, reserved_concurrency=0)
    return queue_with_dlq(lambda_consumers=(function,), **overrides)


def _make_example_queue(throttled_share: float | None, **overrides: Any) -> Facts:
    """Return a queue with 900 waiting messages, and a function with this throttled share."""
    waiting_message_values = {"visible_now": 900, "oldest_age_seconds_now": 1_800, **overrides}
    consumers = (replace(LAMBDA_FUNCTION, throttled_share=throttled_share),)
    return standard_queue(
        ApproximateNumberOfMessages=900, lambda_consumers=consumers, **waiting_message_values
    )


CONSUMER_THROTTLED = NotifiedSymptom(
    name="consumer_throttled",
    sentence="Lambda cannot run the queue's function as often as there are messages for it.",
    plan_in_words="Page with the share of throttled invocations and how to see the concurrency.",
    first_step="Give the function more concurrency.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    evidence_kinds=(_THROTTLED, _SWITCHED_OFF),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    extra_sections=QuotaSection("concurrent executions", "1,000", "lambda", "L-B99A9384"),
    advice_if_many=Advice(
        "The account's concurrency in this region is used up: look for the function that "
        "takes it, reserve what others need, or ask AWS for more.",
        partial(make_aws_command, "lambda get-account-settings"),
    ),
    detection=Detection(
        detect,
        frozenset(
            {
                Need.LAMBDA_CONSUMERS,
                Need.SWITCHED_OFF_FUNCTIONS,
                Need.MEASUREMENTS,
                Need.DLQ_SOURCES,
            }
        ),
        is_possible,
        detect_fact=detect_fact,
    ),
    examples=lambda: (
        QueueExample(
            "a tenth is throttled", _make_example_queue(LEAST_THROTTLED_SHARE), "consumer_throttled"
        ),
        QueueExample("every invocation is", _make_example_queue(1.0), "consumer_throttled"),
        QueueExample(
            "Lambda never runs it, and one message is in flight",
            _make_queue_of_switched_off_function(ApproximateNumberOfMessagesNotVisible=1),
            "consumer_throttled",
        ),
        QueueExample(
            "Lambda never runs it, and all messages are in the DLQ",
            _make_queue_of_switched_off_function(sent=4, received=12),
            "consumer_throttled",
        ),
        QueueExample(
            "throttled messages are in the DLQ and none is visible",
            _make_example_queue(0.5, visible_now=0, sent=400, received=600, deleted=390),
            "consumer_throttled",
        ),
        QueueNearMiss(
            "Lambda never runs it, and has nothing to do", _make_queue_of_switched_off_function()
        ),
        QueueNearMiss(
            "Lambda never runs it, and all messages were deleted before",
            _make_queue_of_switched_off_function(sent=400, received=400, deleted=397),
        ),
        QueueNearMiss(
            "Lambda never runs it, and reads a DLQ",
            as_dlq(_make_queue_of_switched_off_function(ApproximateNumberOfMessages=9)),
        ),
        QueueNearMiss(
            "throttled, and all but a few messages were finished",
            _make_example_queue(0.5, visible_now=0, sent=400, received=600, deleted=397),
        ),
        QueueNearMiss("a burst now and then", _make_example_queue(0.099)),
        QueueNearMiss("throttled, and nothing waits", _make_example_queue(0.5, visible_now=0)),
        QueueNearMiss("Lambda counted no invocation", _make_example_queue(None)),
    ),
)
