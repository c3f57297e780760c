"""Symptom `mapping_wastes_receives`: an event source mapping gives good messages back.

The fault: a Lambda event source mapping is set up so that messages return to the queue although
nothing is wrong with them. Each try counts as a receive, so good messages may reach the DLQ. There
are three ways:

1. The mapping's MaximumConcurrency is above the function's reserved concurrency, or its pollers in
   provisioned mode are: 10 runs at once for each. Lambda throttles the rest of the invocations.
2. The batching window is as long as the visibility timeout, or longer. Messages that wait for their
   batch become visible again meanwhile.
3. Runs fail, and the mapping does not use ReportBatchItemFailures. One bad message brings the whole
   batch back.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

How it shows: the first two are in the configuration of mapping, function and queue. The third also
needs metrics: runs fail, and messages are received without being deleted.

What Mendq does: it reports the mapping with the command that changes it. It changes nothing,
because a mapping belongs to the function's owner, and the third change needs new code in the
function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mendq.catalogue.consumers.mapping_change import MappingChange, describe_mapping_change
from mendq.catalogue.examples import LAMBDA_FUNCTION, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.mapping import (
    FEWEST_POLLERS,
    LARGEST_BATCH_WITHOUT_WINDOW,
    LOWEST_MAXIMUM_CONCURRENCY,
    RUNS_PER_POLLER,
    ProvisionedPollers,
)
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import make_aws_command

# Receives that come to nothing cost money in proportion to all receives, so both limits are shares.
# A batch that fails now and then is normal, and each message is finished later: below these shares
# a change of the mapping saves next to nothing.
TOLERATED_WASTED_SHARE_OF_RECEIVES = 0.05
LEAST_FAILING_SHARE_OF_RUNS = 0.05


def detect(facts: Facts) -> DetectedFault | None:
    """Report the first fault of the first faulty mapping, by configuration or by metrics."""
    for consumer in facts.lambda_consumers:
        for fault_sentence in _list_faults(consumer, facts):
            return DetectedFault(fault_sentence)
    return None


def _list_faults(consumer: LambdaConsumer, facts: Facts) -> Iterator[str]:
    """Yield each fault of a mapping, as a sentence that ends in a command."""
    if consumer.provisioned_pollers is None:
        yield from _list_concurrency_faults(consumer, facts)
    else:
        yield from _list_poller_faults(consumer, consumer.provisioned_pollers, facts)
    batching_window_seconds = consumer.batching_window_seconds
    visibility_seconds = facts.visibility_seconds
    if batching_window_seconds and batching_window_seconds >= visibility_seconds:
        fault_sentence = (
            f"its event source mapping waits up to {batching_window_seconds:,} s for a batch; what "
            f"waits comes again after the visibility timeout of {visibility_seconds:,} s"
        )
        change = MappingChange(facts, consumer, _shorten_window(consumer, visibility_seconds))
        yield f"{fault_sentence}: {describe_mapping_change(change)}"
    if _returns_whole_batches(consumer, facts):
        fault_sentence = (
            f"{100 * (consumer.error_share or 0):.0f} % of the runs of {consumer.name} fail, and "
            f"each brings up to {consumer.batch_size:,} messages back, also finished ones, until "
            "its code returns batchItemFailures and the mapping has ReportBatchItemFailures"
        )
        change = MappingChange(facts, consumer, replace(consumer, reports_item_failures=True))
        yield f"{fault_sentence}: {describe_mapping_change(change)}"


def _list_concurrency_faults(consumer: LambdaConsumer, facts: Facts) -> Iterator[str]:
    """Yield the fault of a MaximumConcurrency above the function's reserved concurrency.

    A reserved concurrency of 0 is left out: `consumer_throttled` reports it. A function without
    reserved concurrency shares the account's concurrency.
    """
    reserved_concurrency = consumer.reserved_concurrency
    if not reserved_concurrency:
        return
    fitting_concurrency = max(reserved_concurrency, LOWEST_MAXIMUM_CONCURRENCY)
    if (consumer.maximum_concurrency or 0) <= fitting_concurrency:
        return
    changed_consumer = replace(consumer, maximum_concurrency=fitting_concurrency)
    change = MappingChange(facts, consumer, changed_consumer)
    yield f"{_describe_excess_runs(consumer)}: {describe_mapping_change(change)}"


def _list_poller_faults(
    consumer: LambdaConsumer, pollers: ProvisionedPollers, facts: Facts
) -> Iterator[str]:
    """Yield the fault of more pollers than the function's reserved concurrency has runs for.

    Even the fewest pollers may be too many. Then no change of their number helps: people reserve
    more, or leave provisioned mode.
    """
    reserved_concurrency = consumer.reserved_concurrency
    if not reserved_concurrency or pollers.most_runs <= reserved_concurrency:
        return
    fault_sentence = _describe_excess_runs(
        consumer, f" ({pollers.maximum:,} pollers, {RUNS_PER_POLLER} runs each)"
    )
    fitting_pollers = reserved_concurrency // RUNS_PER_POLLER
    if fitting_pollers >= FEWEST_POLLERS:
        changed_pollers = ProvisionedPollers(
            minimum=min(pollers.minimum, fitting_pollers), maximum=fitting_pollers
        )
        changed_consumer = replace(consumer, provisioned_pollers=changed_pollers)
        change = MappingChange(facts, consumer, changed_consumer)
        yield f"{fault_sentence}: {describe_mapping_change(change)}"
        return
    needed_concurrency = FEWEST_POLLERS * RUNS_PER_POLLER
    account_command = make_aws_command("lambda get-account-settings", facts.queue_arn)
    yield (
        f"{fault_sentence}. Provisioned mode has at least {FEWEST_POLLERS} pollers, so reserve "
        f"{needed_concurrency} for the function, or leave provisioned mode. What the account "
        f"still has: {account_command}"
    )


def _describe_excess_runs(consumer: LambdaConsumer, pollers_text: str = "") -> str:
    return (
        f"its event source mapping lets {consumer.name} run {consumer.most_runs:,} times at "
        f"once{pollers_text}, more than "
        f"its reserved concurrency of {consumer.reserved_concurrency:,}: the rest is throttled and "
        "given back"
    )


def _shorten_window(consumer: LambdaConsumer, visibility_seconds: int) -> LambdaConsumer:
    """Return the consumer with a batching window that leaves its function time.

    AWS advises a visibility timeout of six times the function's timeout plus the window. A batch of
    more than 10 messages needs a window of at least 1 s, so without room for one it becomes 10.
    """
    window_seconds = max(0, visibility_seconds - 6 * consumer.timeout_seconds)
    if window_seconds or consumer.batch_size <= LARGEST_BATCH_WITHOUT_WINDOW:
        return replace(consumer, batching_window_seconds=window_seconds)
    if visibility_seconds > 1:
        return replace(consumer, batching_window_seconds=1)
    return replace(consumer, batching_window_seconds=0, batch_size=LARGEST_BATCH_WITHOUT_WINDOW)


def _returns_whole_batches(consumer: LambdaConsumer, facts: Facts) -> bool:
    """Return True if runs fail, messages are received again, and the mapping returns whole batches.

    A function that runs into its timeout cannot report single messages, so for such a function
    ReportBatchItemFailures would not help.
    """
    measurement = facts.measurement
    if measurement is None or facts.move_task_running or not _may_return_batches(consumer):
        return False
    tolerated_fruitless_receives = max(
        TOLERATED_WASTED_SHARE_OF_RECEIVES * measurement.received, measurement.counter_tolerance
    )
    has_failing_runs = (consumer.error_share or 0) >= LEAST_FAILING_SHARE_OF_RUNS
    return (
        measurement.fruitless_receives > tolerated_fruitless_receives
        and has_failing_runs
        and not consumer.is_near_timeout
    )


def _may_return_batches(consumer: LambdaConsumer) -> bool:
    """Return True if one message that fails can bring its whole batch back to the queue.

    That is so if the batch size is above 1 and the mapping does not use ReportBatchItemFailures.
    """
    return consumer.batch_size > 1 and not consumer.reports_item_failures


def is_possible(facts: Facts) -> bool:
    """Return True if a failed run would bring a batch back."""
    return any(map(_may_return_batches, facts.lambda_consumers))


def _make_example_queue(received_count: int = 1_200, **overrides: Any) -> Facts:
    """Return a queue whose function fails one run in five.

    By default one receive in six leads to no delete. `overrides` has other fields of the function.
    """
    consumer = replace(
        LAMBDA_FUNCTION, **{"mapping_id": "91eaeb7e-c976", "error_share": 0.2, **overrides}
    )
    traffic_counts = {"sent": 1_000, "received": received_count, "deleted": 1_000}
    return standard_queue(
        ApproximateNumberOfMessages=40, lambda_consumers=(consumer,), **traffic_counts
    )


def _make_queue_with_concurrency(
    maximum_concurrency: int, reserved_concurrency: int | None
) -> Facts:
    """Return a queue whose mapping has this MaximumConcurrency and reserved concurrency."""
    return _make_example_queue(
        1_000, maximum_concurrency=maximum_concurrency, reserved_concurrency=reserved_concurrency
    )


def _make_queue_with_pollers(
    maximum_pollers: int, reserved_concurrency: int | None, minimum_pollers: int = 2
) -> Facts:
    """Return a queue whose mapping is in provisioned mode, with this reserved concurrency."""
    return _make_example_queue(
        1_000,
        provisioned_pollers=ProvisionedPollers(minimum_pollers, maximum_pollers),
        reserved_concurrency=reserved_concurrency,
    )


MAPPING_WASTES_RECEIVES = ReportedSymptom(
    name="mapping_wastes_receives",
    sentence="A Lambda function's event source mapping gives good messages back.",
    plan_in_words="Report it with the command; the mapping is for its owner to change.",
    first_step="Set the mapping's MaximumConcurrency to the reserved concurrency.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.RESERVED_CONCURRENCY, Need.MEASUREMENTS})
        | {Need.QUEUE, Need.MOVE_TASKS},
        is_possible,
        is_of_configuration=True,
    ),
    examples=lambda: (
        QueueExample(
            "a fifth of the runs fail, and bring ten messages back", _make_example_queue()
        ),
        QueueExample("twenty runs where five are reserved", _make_queue_with_concurrency(20, 5)),
        QueueExample(
            "batches wait as long as the timeout",
            _make_example_queue(1_000, batching_window_seconds=30),
        ),
        QueueExample("more pollers than are reserved for", _make_queue_with_pollers(200, 100, 20)),
        QueueExample("even the fewest pollers are too many", _make_queue_with_pollers(2, 19)),
        QueueNearMiss("they wait for less", _make_example_queue(1_000, batching_window_seconds=29)),
        QueueNearMiss(
            "the mapping has ReportBatchItemFailures",
            _make_example_queue(reports_item_failures=True),
        ),
        QueueNearMiss("one message at a time", _make_example_queue(batch_size=1)),
        QueueNearMiss("a failure now and then", _make_example_queue(error_share=0.04)),
        QueueNearMiss("hardly anything comes again", _make_example_queue(1_050)),
        QueueNearMiss(
            "runs are cut off, and answer nothing", _make_example_queue(duration_p99_seconds=30.0)
        ),
        QueueNearMiss("as many runs as are reserved", _make_queue_with_concurrency(5, 5)),
        QueueNearMiss("as many pollers as are reserved for", _make_queue_with_pollers(10, 100)),
        QueueNearMiss(
            "pollers of a function without a reserve", _make_queue_with_pollers(200, None)
        ),
        QueueNearMiss("pollers of a function that is off", _make_queue_with_pollers(200, 0)),
        QueueNearMiss("nothing is reserved", _make_queue_with_concurrency(20, None)),
        QueueNearMiss("a function that is switched off", _make_queue_with_concurrency(20, 0)),
        QueueNearMiss(
            "the least that a mapping takes",
            _make_queue_with_concurrency(LOWEST_MAXIMUM_CONCURRENCY, 1),
        ),
    ),
)
