"""Symptom `consumer_throttled`: Lambda cannot run the queue's function as often as needed.

The fault: the function's reserved concurrency, or the account's, is used up, so Lambda throttles
invocations. The messages of a throttled invocation return to the queue after the visibility
timeout, and each try counts as a receive. With a DLQ, a message that no code has seen can be moved
there.

How it shows: at least a tenth of the last hour's invocations were throttled, and messages wait.

What Mendq does: it notifies people, with the share and a command that shows the concurrency. It
changes nothing: concurrency is shared by all functions of the account, and people decide who gets
it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from shlex import quote
from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, standard_queue
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
from mendq.notifications.commands import make_aws_command
from mendq.notifications.text import format_count

# From this share of throttled invocations on, the queue is reported. Less is normal in a short
# peak, because Lambda tries again automatically.
LEAST_THROTTLED_SHARE = 0.1


def detect(facts: Facts) -> DetectedFault | None:
    """Report the function with the largest share of throttled invocations, if messages wait.

    None if that share is below LEAST_THROTTLED_SHARE (a tenth), or if no message waits.
    """
    measurement = facts.measurement
    throttled_function = _find_most_throttled_function(facts)
    if measurement is None or not measurement.now.visible or throttled_function is None:
        return None
    throttled_share = throttled_function.throttled_share or 0
    if throttled_share < LEAST_THROTTLED_SHARE:
        return None
    return DetectedFault(
        f"{100 * throttled_share:.0f} % of the invocations of {throttled_function.name} were "
        "throttled, and "
        f"{format_count(measurement.now.visible, 'message')} waiting, the oldest for "
        f"{measurement.now.oldest_age_seconds:,} s"
    )


def _find_most_throttled_function(facts: Facts) -> LambdaConsumer | None:
    """Return the function with the largest throttled share; None if no function reads the queue."""
    consumers = facts.lambda_consumers
    return max(consumers, key=lambda consumer: consumer.throttled_share or 0, default=None)


def is_possible(facts: Facts) -> bool:
    """Return True if a Lambda function reads the queue."""
    return bool(facts.lambda_consumers)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: they decide how concurrency is shared."""
    max_receive_count = facts.max_receive_count
    consequence_text = (
        f"each throttled try counts as a receive, and after {max_receive_count} of them a message "
        "that no "
        "code has seen goes to the DLQ"
        if max_receive_count
        else "messages wait until Lambda has room"
    )
    reason = (
        f"{facts.found}. Its reserved concurrency or the account's is too small for what comes, "
        f"or the mapping lets in more than that: {consequence_text}"
    )
    return Escalate("consumer_throttled", reason, _make_concurrency_command(facts))


def _make_concurrency_command(facts: Facts) -> str:
    """Return the command that shows the most throttled function's reserved concurrency.

    If the command prints nothing, the function has no reserved concurrency and shares the
    account's. The command is empty if no Lambda function reads the queue.
    """
    throttled_function = _find_most_throttled_function(facts)
    if throttled_function is None:
        return ""
    function_option = f"--function-name {quote(throttled_function.name)}"
    return make_aws_command("lambda get-function-concurrency", facts.queue_arn, function_option)


def _make_example_queue(throttled_share: float | None, **overrides: Any) -> Facts:
    """Return a queue with 900 waiting messages, and a function with this throttled share."""
    waiting_message_values = {"visible_now": 900, "oldest_age_seconds_now": 1_800, **overrides}
    consumers = (replace(LAMBDA_FUNCTION, throttled_share=throttled_share),)
    return standard_queue(
        ApproximateNumberOfMessages=900, lambda_consumers=consumers, **waiting_message_values
    )


CONSUMER_THROTTLED = NotifiedSymptom(
    name="consumer_throttled",
    sentence="Lambda may not run the queue's function as often as there are messages for it.",
    plan_in_words="Page with the share of throttled invocations and how to see the concurrency.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    extra_sections=QuotaSection("concurrent executions", "1,000", "lambda", "L-B99A9384"),
    advice_if_many=Advice(
        "The account's concurrency in this region is used up: look for the function that "
        "takes it, reserve what others need, or ask AWS for more.",
        partial(make_aws_command, "lambda get-account-settings"),
    ),
    detection=Detection(detect, frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS}), is_possible),
    examples=lambda: (
        QueueExample(
            "a tenth is throttled", _make_example_queue(LEAST_THROTTLED_SHARE), "consumer_throttled"
        ),
        QueueExample("every invocation is", _make_example_queue(1.0), "consumer_throttled"),
        QueueNearMiss("a burst now and then", _make_example_queue(0.099)),
        QueueNearMiss("throttled, and nothing waits", _make_example_queue(0.5, visible_now=0)),
        QueueNearMiss("Lambda counted no invocation", _make_example_queue(None)),
    ),
)
