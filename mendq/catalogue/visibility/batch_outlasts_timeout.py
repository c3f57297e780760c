"""Symptom `batch_outlasts_timeout`: a full batch would take longer than the visibility timeout.

The fault: today's batches are small, so the Lambda function finishes them in time. If more messages
arrive, a batch becomes full. If the function works on them one by one, it is still at work when the
visibility timeout ends, and messages are handled twice.

How it shows: Lambda measures the duration of whole batches. The median duration divided by the mean
number of messages per run gives the time for one message. Times the batch size, it is longer than
the visibility timeout. Mendq calculates this only for a single function with at least 30 runs in
the last hour, and not further than ten times the measured batch.

What Mendq does: it reports the queue, with a batch size that fits, or with the function timeout and
visibility timeout that a full batch needs. It changes nothing, because nothing has gone wrong yet.
"""

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
from mendq.catalogue.visibility.needed_timeout import ROOM, add_room, need_of_function
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.metrics import Recent

# Fewer runs in the last hour say little about the time for one message.
FEWEST_RUNS = 30
# A full batch is at most this many times as large as the measured batches. A larger factor would be
# a guess.
FURTHEST = 10
# Lambda ends every run after 15 minutes.
LONGEST_RUN_SECONDS = 900


def detect(facts: Facts) -> DetectedFault | None:
    """Find a function whose full batch, worked one by one, would outlast the visibility timeout."""
    if facts.measurement is None or not is_suspect(facts):
        return None
    consumer = facts.lambda_consumers[0]
    current = facts.visibility_seconds
    limit = consumer.timeout_seconds
    runs = consumer.invocations
    p50_seconds = consumer.duration_p50_seconds or 0
    batch = facts.measurement.recent.received / max(runs, 1)
    full = consumer.batch_size
    # Less than one message per run means that other consumers or other events have it run too.
    if runs < FEWEST_RUNS or not 1 <= batch < full <= FURTHEST * batch:
        return None
    message_seconds = p50_seconds / batch
    full_seconds = full * message_seconds
    if full_seconds <= current:
        return None
    fitting = max(1, int(min(current, limit) / (ROOM * message_seconds)))
    return DetectedFault(
        f"half of the last hour's runs of {consumer.name} ended within {p50_seconds:.1f} s, with "
        f"{batch:.1f} messages each. Worked one by one, a full batch of {full} takes about "
        f"{full_seconds:,.0f} s: longer than the visibility timeout of {current:,} s, and "
        f"the function may run {limit:,} s. A batch size of "
        f"{fitting} keeps within both"
        f"{_describe_need_of_full_batch(consumer, full_seconds)}"
    )


def _describe_need_of_full_batch(consumer: LambdaConsumer, full_seconds: float) -> str:
    """Return the timeouts that a full batch needs; empty if Lambda does not allow such a run."""
    longer = replace(consumer, timeout_seconds=add_room(full_seconds))
    if longer.timeout_seconds > LONGEST_RUN_SECONDS:
        return ""
    return (
        f"; for full batches the function needs {longer.timeout_seconds:,} s, and the visibility "
        f"timeout {need_of_function(longer).recommended_seconds:,} s"
    )


def is_suspect(facts: Facts) -> bool:
    """Return True if one function reads the queue, with batches that may outlast the timeout.

    If several functions read it, nobody knows which one received a message.
    """
    if len(facts.lambda_consumers) != 1 or facts.visible + facts.in_flight == 0:
        return False
    consumer = facts.lambda_consumers[0]
    may_take_seconds = FURTHEST * consumer.timeout_seconds
    return consumer.batch_size > 1 and may_take_seconds > facts.visibility_seconds


def _queue(received: int = 120, seconds: int = 60, **over: Any) -> Facts:
    """Return a queue whose function handles 1.2 messages in 8 s. `over` has other fields of it."""
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
