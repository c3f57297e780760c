"""An event source mapping gives good messages back, and each try counts as a receive; reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import FUNCTION, standard
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.metrics import SURPLUS_SHARE
from mendq.notifications.commands import aws_command

# The least that a mapping takes.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
LEAST_CONCURRENCY = 2


def detect(facts: Facts) -> DetectedFault | None:
    """The first mapping at fault, by how it is set or by what was measured of it."""
    for each in facts.lambda_consumers:
        for because, setting in _faults(each, facts):
            options = f"--uuid {each.mapping_id} {setting}"
            change = aws_command("lambda update-event-source-mapping", facts.queue_arn, options)
            return DetectedFault(f"{because}: {change}")
    return None


def _faults(consumer: LambdaConsumer, facts: Facts) -> Iterator[tuple[str, str]]:
    """Why, and what to set.

    Nobody reserves 0 but to switch a function off; who reserves nothing shares the account's.
    """
    most, reserved = consumer.maximum_concurrency or 0, consumer.reserved_concurrency
    if reserved and most > (fits := max(reserved, LEAST_CONCURRENCY)):
        because = (
            f"its event source mapping lets {consumer.name} run {most:,} times at once, more than "
            f"its reserved concurrency of {reserved:,}: the rest is throttled and given back"
        )
        yield because, f"--scaling-config MaximumConcurrency={fits}"
    window_seconds, seconds = consumer.batching_window_seconds, facts.visibility_seconds
    if window_seconds >= seconds:
        fits = max(0, seconds - 6 * consumer.timeout_seconds)
        because = (
            f"its event source mapping waits up to {window_seconds:,} s for a batch; what waits "
            f"comes again after the visibility timeout of {seconds:,} s"
        )
        yield because, f"--maximum-batching-window-in-seconds {fits}"
    if _returns_whole_batches(consumer, facts):
        because = (
            f"{100 * (consumer.error_share or 0):.0f} % of the runs of {consumer.name} fail, and "
            f"each brings up to {consumer.batch_size:,} messages back, done ones among them, until "
            "its code answers with batchItemFailures and the mapping takes that"
        )
        yield because, "--function-response-types ReportBatchItemFailures"


def _returns_whole_batches(consumer: LambdaConsumer, facts: Facts) -> bool:
    """Runs fail, messages come again, and the mapping takes no answer about single messages.

    A run that is cut off at its timeout answers nothing, so that its batch comes again anyway.
    """
    measured, share = facts.measurement, consumer.error_share or 0
    if measured is None or facts.move_task_running or not _may_return_batches(consumer):
        return False
    few = max(SURPLUS_SHARE * measured.received, measured.counter_tolerance)
    return (
        measured.fruitless_receives > few
        and share >= SURPLUS_SHARE
        and not consumer.is_near_timeout
    )


def _may_return_batches(consumer: LambdaConsumer) -> bool:
    return consumer.batch_size > 1 and not consumer.reports_item_failures


def is_suspect(facts: Facts) -> bool:
    """What fails leaves messages behind, waiting or in flight."""
    waits = facts.visible + facts.in_flight > 0
    return waits and any(map(_may_return_batches, facts.lambda_consumers))


def _queue(received: int = 1_200, **over: Any) -> Facts:
    """One receive in six comes to nothing, and one run in five fails; `over` its consumer."""
    fails = replace(FUNCTION, **{"mapping_id": "91eaeb7e-c976", "error_share": 0.2, **over})
    counted = {"sent": 1_000, "received": received, "deleted": 1_000}
    return standard(ApproximateNumberOfMessages=40, lambda_consumers=(fails,), **counted)


def _limited(most: int, reserved: int | None) -> Facts:
    return _queue(1_000, maximum_concurrency=most, reserved_concurrency=reserved)


MAPPING_WASTES_RECEIVES = ReportedSymptom(
    name="mapping_wastes_receives",
    sentence="A Lambda function's event source mapping gives good messages back.",
    plan_in_words="Report it with the command; the mapping is for its owner to change.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html",
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.RESERVED_CONCURRENCY, Need.MEASUREMENTS})
        | {Need.QUEUE, Need.MOVE_TASKS},
        is_suspect,
        of_configuration=True,
    ),
    examples=lambda: (
        QueueExample("a fifth of the runs fail, and bring ten messages back", _queue()),
        QueueExample("twenty runs where five are reserved", _limited(20, 5)),
        QueueExample(
            "batches wait as long as the timeout", _queue(1_000, batching_window_seconds=30)
        ),
        QueueNearMiss("they wait for less", _queue(1_000, batching_window_seconds=29)),
        QueueNearMiss("the mapping takes answers", _queue(reports_item_failures=True)),
        QueueNearMiss("one message at a time", _queue(batch_size=1)),
        QueueNearMiss("a failure now and then", _queue(error_share=0.04)),
        QueueNearMiss("hardly anything comes again", _queue(1_050)),
        QueueNearMiss("runs are cut off, and answer nothing", _queue(duration_p99_seconds=30.0)),
        QueueNearMiss("as many runs as are reserved", _limited(5, 5)),
        QueueNearMiss("nothing is reserved", _limited(20, None)),
        QueueNearMiss("a function that is switched off", _limited(20, 0)),
        QueueNearMiss("the least that a mapping takes", _limited(LEAST_CONCURRENCY, 1)),
    ),
)
