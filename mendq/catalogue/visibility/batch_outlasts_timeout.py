"""Symptom `batch_outlasts_timeout`: a full batch would take longer than the visibility timeout.

The fault: today's batches are small, so the Lambda function finishes them in time. If more messages
arrive, a batch becomes full. If the function works on them one by one, it is still at work when the
visibility timeout ends, and messages are handled twice.

How it shows: Lambda measures the duration of whole batches. The median duration divided by the mean
number of messages per run gives the time for one message. Times the batch size, it is longer than
the visibility timeout. Mendq calculates this only for a single function with at least 30 runs in
the last hour, and not further than ten times the measured batch. Fewer than 1 of 100 runs may
have failed: a run that fails can be shorter than its work, a run that Lambda stops is as long as
the function's timeout, and Lambda's metrics do not tell their durations from those of other runs.

Once full batches come and Lambda stops enough of their runs, `function_times_out` has the name.

What Mendq does: it reports the queue, with a batch size that fits, or with the function timeout and
visibility timeout that a full batch needs. It changes nothing, because nothing has gone wrong yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.catalogue.visibility.needed_timeout import (
    SAFETY_FACTOR,
    add_safety_margin,
    make_need_of_function,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.metrics import RecentCounts
from mendq.model.severity_class import SeverityClass

# Fewer runs than this in the last hour say little about the time for one message.
LEAST_RUNS_PER_HOUR = 30
# A full batch is at most this many times as large as the measured batches. A larger factor would be
# a guess.
MAXIMUM_FULL_BATCH_FACTOR = 10
# Lambda ends every run after 15 minutes.
LONGEST_RUN_SECONDS = 900


def detect(facts: Facts) -> DetectedFault | None:
    """Find a function whose full batch, worked one by one, would outlast the visibility timeout."""
    if facts.measurement is None or not is_possible(facts):
        return None
    consumer = facts.lambda_consumers[0]
    visibility_seconds = facts.visibility_seconds
    function_timeout_seconds = consumer.timeout_seconds
    run_count = consumer.invocations
    median_run_seconds = consumer.duration_p50_seconds or 0
    messages_per_run = facts.measurement.recent.received / max(run_count, 1)
    full_batch_size = consumer.batch_size
    # Less than one message per run means that other consumers or other events have it run too.
    if (
        run_count < LEAST_RUNS_PER_HOUR
        or not consumer.are_durations_of_finished_runs
        or not 1
        <= messages_per_run
        < full_batch_size
        <= MAXIMUM_FULL_BATCH_FACTOR * messages_per_run
    ):
        return None
    seconds_per_message = median_run_seconds / messages_per_run
    full_batch_seconds = full_batch_size * seconds_per_message
    if full_batch_seconds <= visibility_seconds:
        return None
    fitting_batch_size = max(
        1,
        int(
            min(visibility_seconds, function_timeout_seconds)
            / (SAFETY_FACTOR * seconds_per_message)
        ),
    )
    return DetectedFault(
        f"half of the last hour's runs of {consumer.name} ended within {median_run_seconds:.1f} s, "
        f"with {messages_per_run:.1f} messages each. Worked one by one, a full batch of "
        f"{full_batch_size} takes about {full_batch_seconds:,.0f} s: longer than the visibility "
        f"timeout of {visibility_seconds:,} s, and the function may run "
        f"{function_timeout_seconds:,} s. A batch size of {fitting_batch_size} keeps within "
        f"both{_describe_need_of_full_batch(consumer, full_batch_seconds)}"
    )


def _describe_need_of_full_batch(consumer: LambdaConsumer, full_batch_seconds: float) -> str:
    """Return a text with the timeouts for a full batch; empty if Lambda allows no run so long."""
    consumer_with_longer_timeout = replace(
        consumer, timeout_seconds=add_safety_margin(full_batch_seconds)
    )
    if consumer_with_longer_timeout.timeout_seconds > LONGEST_RUN_SECONDS:
        return ""
    return (
        f"; for full batches the function needs {consumer_with_longer_timeout.timeout_seconds:,} "
        "s, and the visibility timeout "
        f"{make_need_of_function(consumer_with_longer_timeout).recommended_seconds:,} s"
    )


def is_possible(facts: Facts) -> bool:
    """Return True if one function reads the queue, with batches that may outlast the timeout.

    False if several functions read the queue, because nobody knows which one received a message.
    """
    if len(facts.lambda_consumers) != 1:
        return False
    consumer = facts.lambda_consumers[0]
    longest_batch_seconds = MAXIMUM_FULL_BATCH_FACTOR * consumer.timeout_seconds
    return consumer.batch_size > 1 and longest_batch_seconds > facts.visibility_seconds


def _make_example_queue(
    received_count: int = 120, visibility_seconds: int = 60, **overrides: Any
) -> Facts:
    """Return a queue whose function handles 1.2 messages in 8 s.

    `overrides` has other fields of the function.
    """
    consumer_values = {
        "batch_size": 10,
        "duration_p50_seconds": 8.0,
        "invocations": 100,
        "error_share": 0.0,
        **overrides,
    }
    queue_values = {"recent": RecentCounts(received_count), "ApproximateNumberOfMessages": 2}
    return standard_queue(
        VisibilityTimeout=visibility_seconds,
        lambda_consumers=(replace(LAMBDA_FUNCTION, **consumer_values),),
        **queue_values,
    )


BATCH_OUTLASTS_TIMEOUT = ReportedSymptom(
    name="batch_outlasts_timeout",
    sentence="A full batch, worked one by one, would take longer than the visibility timeout.",
    plan_in_words="Report it, with the batch size or the visibility timeout that would do.",
    first_step="Receive smaller batches, or raise the visibility timeout.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS}),
        is_possible,
        is_measured_last=True,
        metric_kinds=("receives",),
    ),
    examples=lambda: (
        QueueExample("10 messages of 7 s each", _make_example_queue()),
        QueueExample(
            "the function is stopped first",
            _make_example_queue(visibility_seconds=30, duration_p50_seconds=6.0),
        ),
        QueueExample("one of 200 runs failed", _make_example_queue(error_share=0.005)),
        QueueNearMiss("a full batch fits", _make_example_queue(visibility_seconds=67)),
        QueueNearMiss("batches are full", _make_example_queue(1_000, duration_p50_seconds=70.0)),
        QueueNearMiss("one message a batch", _make_example_queue(100, batch_size=1)),
        QueueNearMiss("far from what was seen", _make_example_queue(batch_size=13)),
        QueueNearMiss("few runs", _make_example_queue(34, invocations=29)),
        QueueNearMiss("others have it run too", _make_example_queue(99)),
        QueueNearMiss(
            "every run ends at the function's timeout",
            _make_example_queue(66, invocations=55, error_share=1.0, duration_p50_seconds=15.0),
        ),
        QueueNearMiss(
            "full batches came, and Lambda stopped one run in eight",
            _make_example_queue(error_share=0.12),
        ),
        QueueNearMiss("one of 100 runs failed", _make_example_queue(error_share=0.01)),
        QueueNearMiss("failed runs were not read", _make_example_queue(error_share=None)),
        QueueNearMiss(
            "it did not run", _make_example_queue(0, invocations=0, duration_p50_seconds=None)
        ),
    ),
)
