"""Lambda may not run the queue's function as often as there are messages for it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from shlex import quote
from typing import Any

from mendq.catalogue.examples import FUNCTION, standard
from mendq.catalogue.symptom import (
    Advice,
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    QuotaSection,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import aws_command
from mendq.notifications.text import format_count

# Lambda tries again by itself; a tenth of all tries is more than a burst.
THROTTLED_SHARE = 0.1


def detect(facts: Facts) -> DetectedFault | None:
    """A tenth of the invocations and more were throttled while messages waited."""
    measured, throttled = facts.measurement, _most_throttled(facts)
    if measured is None or not measured.now.visible:
        return None
    if throttled is None or (share := throttled.throttled_share or 0) < THROTTLED_SHARE:
        return None
    return DetectedFault(
        f"{100 * share:.0f} % of the invocations of {throttled.name} were throttled, and "
        f"{format_count(measured.now.visible, 'message')} waiting, the oldest for "
        f"{measured.now.oldest_age_seconds:,} s"
    )


def _most_throttled(facts: Facts) -> LambdaConsumer | None:
    consumers = facts.lambda_consumers
    return max(consumers, key=lambda consumer: consumer.throttled_share or 0, default=None)


def is_suspect(facts: Facts) -> bool:
    return bool(facts.lambda_consumers) and facts.visible > 0


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: how often a function may run is the account's to share out."""
    tries = facts.max_receive_count
    lost = (
        f"each throttled try counts as a receive, and after {tries} of them a message that no "
        "code has seen goes to the DLQ"
        if tries
        else "messages wait until Lambda has room"
    )
    reason = (
        f"{facts.found}. Its reserved concurrency or the account's is too small for what comes, "
        f"or the mapping lets in more than that: {lost}"
    )
    return Escalate("consumer_throttled", reason, _concurrency(facts))


def _concurrency(facts: Facts) -> str:
    """The command whose empty answer says that the function keeps to the account's limit."""
    throttled = _most_throttled(facts)
    if throttled is None:
        return ""
    options = f"--function-name {quote(throttled.name)}"
    return aws_command("lambda get-function-concurrency", facts.queue_arn, options)


def _queue(throttled_share: float | None, **over: Any) -> Facts:
    waiting = {"visible_now": 900, "oldest_age_seconds_now": 1_800, **over}
    consumers = (replace(FUNCTION, throttled_share=throttled_share),)
    return standard(ApproximateNumberOfMessages=900, lambda_consumers=consumers, **waiting)


CONSUMER_THROTTLED = NotifiedSymptom(
    name="consumer_throttled",
    sentence="Lambda may not run the queue's function as often as there are messages for it.",
    plan_in_words="Page with the share of throttled invocations and how to see the concurrency.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    extra_sections=QuotaSection("concurrent executions", "1,000", "lambda", "L-B99A9384"),
    advice_if_many=Advice(
        "The account's concurrency in this region is used up: look for the function that "
        "takes it, reserve what others need, or ask AWS for more.",
        partial(aws_command, "lambda get-account-settings"),
    ),
    detection=Detection(detect, frozenset({Need.MEASUREMENTS}), is_suspect),
    examples=lambda: (
        QueueExample("a tenth is throttled", _queue(THROTTLED_SHARE), "consumer_throttled"),
        QueueExample("every invocation is", _queue(1.0), "consumer_throttled"),
        QueueNearMiss("a burst now and then", _queue(0.099)),
        QueueNearMiss("throttled, and nothing waits", _queue(0.5, visible_now=0)),
        QueueNearMiss("Lambda counted no invocation", _queue(None)),
    ),
)
