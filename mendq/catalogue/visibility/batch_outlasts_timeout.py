"""A full batch, worked one by one, would take longer than the visibility timeout; reported."""

from __future__ import annotations

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
from mendq.catalogue.visibility.needed_timeout import ROOM, asked_for, with_room
from mendq.model.facts import Facts, Need
from mendq.model.metrics import Recent

# Fewer runs say little of how long one message takes; and further than that nothing is projected.
FEWEST_RUNS, FURTHEST = 30, 10
# Lambda ends every run after 15 minutes.
LONGEST_RUN_SECONDS = 900


def detect(facts: Facts) -> DetectedFault | None:
    """Lambda times whole batches: what one message takes is known where few are in one."""
    if facts.measurement is None or not is_suspect(facts):
        return None
    (consumer,), current = facts.lambda_consumers, facts.visibility_seconds
    limit = consumer.timeout_seconds
    runs, p50_seconds = consumer.invocations, consumer.duration_p50_seconds or 0
    batch, full = facts.measurement.recent.received / max(runs, 1), consumer.batch_size
    if runs < FEWEST_RUNS or not 1 <= batch < full <= FURTHEST * batch:
        return None
    each_seconds = p50_seconds / batch
    if full * each_seconds <= current:
        return None
    longer = replace(consumer, timeout_seconds=with_room(full * each_seconds))
    for_full = (
        f"; for full batches the function needs {longer.timeout_seconds:,} s, and the visibility "
        f"timeout {asked_for(longer).recommended_seconds:,} s"
    )
    return DetectedFault(
        f"half of the last hour's runs of {consumer.name} ended within {p50_seconds:.1f} s, with "
        f"{batch:.1f} messages each. Worked one by one, a full batch of {full} takes about "
        f"{full * each_seconds:,.0f} s: longer than the visibility timeout of {current:,} s, and "
        f"the function may run {limit:,} s. A batch size of "
        f"{max(1, int(min(current, limit) / (ROOM * each_seconds)))} keeps within both"
        f"{for_full if longer.timeout_seconds <= LONGEST_RUN_SECONDS else ''}"
    )


def is_suspect(facts: Facts) -> bool:
    """One function, of several nobody knows who received what, that may run long enough."""
    if len(facts.lambda_consumers) != 1 or facts.visible + facts.in_flight == 0:
        return False
    consumer = facts.lambda_consumers[0]
    may_take_seconds = FURTHEST * consumer.timeout_seconds
    return consumer.batch_size > 1 and may_take_seconds > facts.visibility_seconds


def _queue(received: int = 120, seconds: int = 60, **over: Any) -> Facts:
    """A function that works 1.2 messages in 8 s; `over` that."""
    ran = {"batch_size": 10, "duration_p50_seconds": 8.0, "invocations": 100, **over}
    counts = {"recent": Recent(received), "ApproximateNumberOfMessages": 2}
    return standard(
        VisibilityTimeout=seconds, lambda_consumers=(replace(FUNCTION, **ran),), **counts
    )


BATCH_OUTLASTS_TIMEOUT = ReportedSymptom(
    name="batch_outlasts_timeout",
    sentence="A full batch, worked one by one, would take longer than the visibility timeout.",
    plan_in_words="Report it, with the batch size or the visibility timeout that would do.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html",
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS}),
        is_suspect,
        measured_last=True,
        reads=("receives",),
    ),
    examples=lambda: (
        QueueExample("10 messages of 7 s each", _queue()),
        QueueExample("the function is stopped first", _queue(seconds=30, duration_p50_seconds=6.0)),
        QueueNearMiss("a full batch fits", _queue(seconds=67)),
        QueueNearMiss("batches are full", _queue(1_000, duration_p50_seconds=70.0)),
        QueueNearMiss("one message a batch", _queue(100, batch_size=1)),
        QueueNearMiss("far from what was seen", _queue(batch_size=13)),
        QueueNearMiss("few runs", _queue(34, invocations=29)),
        QueueNearMiss("others have it run too", _queue(99)),
        QueueNearMiss("it did not run", _queue(0, invocations=0, duration_p50_seconds=None)),
    ),
)
