"""Symptom `concurrency_too_small`: the function's reserved concurrency is too small for the queue.

The fault: Lambda begins with five batches at once on a standard queue, and the function's reserved
concurrency allows fewer. What it cannot run is throttled and goes back to the queue, and that
counts as a receive. So a message that no code has seen can reach the DLQ. AWS advises to reserve at
least five, or to limit the mapping with MaximumConcurrency.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html

How it shows: in the function's reserved concurrency, the mapping and the queue's `maxReceiveCount`.
If the mapping allows more runs than are reserved, a scan reports it as `mapping_wastes_receives`,
with the command that changes the mapping. In a template, `mendq lint` reports both here. A reserved
concurrency of 0 stops the function: that is `consumer_throttled`.

What Mendq does: it reports the queue. It changes nothing, because concurrency is shared by all
functions of the account, and people decide who gets it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    queue_with_dlq,
    standard_queue,
)
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
    LOWEST_MAXIMUM_CONCURRENCY,
    RUNS_OF_FIRST_POLLERS,
    ProvisionedPollers,
)
from mendq.model.severity_class import SeverityClass

# Throttling alone rarely moves a message to the DLQ if maxReceiveCount is at least this.
LEAST_HARMLESS_RECEIVE_COUNT = 11


def detect(facts: Facts) -> DetectedFault | None:
    """Report the first function whose reserved concurrency is below the runs that Lambda starts.

    Functions whose mapping allows more runs than are reserved are left out:
    `mapping_wastes_receives` reports them.
    """
    for consumer in facts.lambda_consumers:
        if not _exceeds_reserve(consumer) and _wastes_receives(consumer, facts):
            return _describe_too_few_runs(consumer, facts)
    return None


def find_fault_in_template(facts: Facts) -> DetectedFault | None:
    """Report the first function whose reserved concurrency is too small, whatever the reason."""
    for consumer in facts.lambda_consumers:
        if _exceeds_reserve(consumer):
            return DetectedFault(
                f"its event source mapping lets {consumer.name} run {consumer.most_runs:,} times "
                f"at once, and its reserved concurrency is {consumer.reserved_concurrency:,}: the "
                "rest is throttled and given back, and each try counts as a receive",
                mapping_id=consumer.mapping_id,
            )
        if _wastes_receives(consumer, facts):
            return _describe_too_few_runs(consumer, facts)
        if _exceeds_reserve_together(consumer):
            runs_of_all = consumer.runs_of_earlier_mappings + (consumer.most_runs or 0)
            return DetectedFault(
                f"the event source mappings of {consumer.name}, this one among them, together "
                f"allow {runs_of_all:,} runs at once, and the function's reserved concurrency is "
                f"{consumer.reserved_concurrency:,}: Lambda throttles the rest, and each throttled "
                "try counts as a receive",
                mapping_id=consumer.mapping_id,
            )
    return None


def _exceeds_reserve_together(consumer: LambdaConsumer) -> bool:
    """Return True if this mapping is the first with which the sum exceeds the reserve.

    AWS advises to reserve at least the sum of MaximumConcurrency of all mappings of a function.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    """
    reserved_concurrency = consumer.reserved_concurrency
    earlier_runs = consumer.runs_of_earlier_mappings
    if not reserved_concurrency or not earlier_runs or consumer.most_runs is None:
        return False
    return earlier_runs <= reserved_concurrency < earlier_runs + consumer.most_runs


def _exceeds_reserve(consumer: LambdaConsumer) -> bool:
    """Return True if the mapping's limit is above the reserve, and a lower limit would help."""
    reserved_concurrency = consumer.reserved_concurrency
    if not reserved_concurrency or consumer.most_runs is None:
        return False
    fitting_concurrency = reserved_concurrency
    if consumer.provisioned_pollers is None:
        fitting_concurrency = max(reserved_concurrency, LOWEST_MAXIMUM_CONCURRENCY)
    return consumer.most_runs > fitting_concurrency


def _wastes_receives(consumer: LambdaConsumer, facts: Facts) -> bool:
    """Return True if throttling can bring good messages into the DLQ.

    A FIFO queue has as many runs at once as it has message groups, and these may be few.
    """
    runs_at_start = min(RUNS_OF_FIRST_POLLERS, consumer.most_runs or RUNS_OF_FIRST_POLLERS)
    reserved_concurrency = consumer.reserved_concurrency
    if facts.is_fifo or not reserved_concurrency or reserved_concurrency >= runs_at_start:
        return False
    max_receive_count = facts.max_receive_count
    return max_receive_count is not None and max_receive_count < LEAST_HARMLESS_RECEIVE_COUNT


def _describe_too_few_runs(consumer: LambdaConsumer, facts: Facts) -> DetectedFault:
    runs_at_start = min(RUNS_OF_FIRST_POLLERS, consumer.most_runs or RUNS_OF_FIRST_POLLERS)
    return DetectedFault(
        f"the reserved concurrency of {consumer.name} is {consumer.reserved_concurrency:,}, and "
        f"Lambda begins with {runs_at_start} runs at once: the rest is throttled and given back, "
        f"and after {facts.max_receive_count:,} receives a message that no code has seen moves to "
        "the DLQ",
        mapping_id=consumer.mapping_id,
    )


def _make_consumers(
    reserved_concurrency: int | None,
    maximum_concurrency: int | None = None,
    pollers: ProvisionedPollers | None = None,
) -> dict[str, Any]:
    consumer = replace(
        LAMBDA_FUNCTION,
        reserved_concurrency=reserved_concurrency,
        maximum_concurrency=maximum_concurrency,
        provisioned_pollers=pollers,
    )
    return {"lambda_consumers": (consumer,)}


CONCURRENCY_TOO_SMALL = ReportedSymptom(
    name="concurrency_too_small",
    sentence="The function's reserved concurrency is lower than the number of runs that Lambda "
    "may start at once.",
    plan_in_words="Report it; concurrency is for the owners of the account's functions to share.",
    first_step="Raise the reserved concurrency, or lower MaximumConcurrency.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    detection=Detection(
        detect,
        frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.RESERVED_CONCURRENCY}),
        is_of_configuration=True,
    ),
    examples=lambda: (
        QueueExample("one run, and three receives", queue_with_dlq(3, **_make_consumers(1))),
        QueueExample("four runs, and ten receives", queue_with_dlq(10, **_make_consumers(4))),
        QueueExample("one run, and a limit of two", queue_with_dlq(5, **_make_consumers(1, 2))),
        QueueNearMiss("as many as Lambda begins with", queue_with_dlq(3, **_make_consumers(5))),
        QueueNearMiss("a limit of as many runs", queue_with_dlq(3, **_make_consumers(2, 2))),
        QueueNearMiss("nothing is reserved", queue_with_dlq(3, **_make_consumers(None))),
        QueueNearMiss("a function that is switched off", queue_with_dlq(3, **_make_consumers(0))),
        QueueNearMiss("many receives", queue_with_dlq(11, **_make_consumers(1))),
        QueueNearMiss("no DLQ", standard_queue(**_make_consumers(1))),
        QueueNearMiss("a FIFO queue", queue_with_dlq(3, queue_arn=QUEUE_ARN, **_make_consumers(1))),
        QueueNearMiss(
            "a limit above the reserve, which mapping_wastes_receives reports",
            queue_with_dlq(3, **_make_consumers(3, 20)),
        ),
        QueueNearMiss(
            "pollers above the reserve, which mapping_wastes_receives reports",
            queue_with_dlq(3, **_make_consumers(3, pollers=ProvisionedPollers(2, 20))),
        ),
    ),
)
