"""Symptom `function_times_out`: Lambda stops the queue's function at its timeout.

The fault: runs take longer than the function's timeout. Lambda stops them, and their messages come
back after the visibility timeout, or move to the DLQ after `maxReceiveCount` receives. A run that
is stopped has often done part of its work, which is then done again.

How it shows: failed runs in Lambda's metric Errors, which are as long as the function's timeout by
its metric Duration. If fewer than 1 of 5 runs fails, messages must also arrive and not be deleted.
How many messages the queue holds does not matter. `failing_runs.py` has the rules.

If the batches are too large, `batch_outlasts_timeout` says so beforehand, while runs succeed. Once
Lambda stops enough runs, this symptom has the name: then Duration measures the timeout and not the
work, so no batch size can be calculated from it. The advice names the batch size as one possible
cause.

What Mendq does: it names the function on its own queue, with the share of failed runs. It pages if
messages are lost or nothing is finished; otherwise it records a case without a page. It changes
nothing, because only people know whether the function waits for something that is broken or needs
more time. A longer visibility timeout does not help: the function's own timeout ends the run.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.consumers.failing_runs import (
    choose_evidence_kind,
    describe_failed_runs,
    describe_unfinished_messages,
    find_failed_runs,
    make_advice,
    must_page,
)
from mendq.catalogue.dlq.attach import NOTHING_FINISHED, SOME_FAIL
from mendq.catalogue.examples import LAMBDA_FUNCTION, make_last_hour, queue_with_dlq
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import FAILING_CONSUMER_ERROR_SHARE, Facts, LambdaConsumer, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.notifications.commands import timed_out_runs_command


def detect(facts: Facts) -> DetectedFault | None:
    """Find a function that Lambda stops at its timeout, so that messages are not finished."""
    runs = find_failed_runs(facts, at_timeout=True)
    if runs is None or facts.measurement is None:
        return None
    return DetectedFault(
        f"{describe_failed_runs(runs)}, and {_describe_durations(runs.consumer)}: "
        f"{describe_unfinished_messages(facts, facts.measurement, runs)}",
        should_page=must_page(facts, runs),
        evidence_kind=choose_evidence_kind(facts.measurement, runs),
    )


def _describe_durations(consumer: LambdaConsumer) -> str:
    """Return how many runs were as long as the function's timeout, as far as it is known."""
    if (consumer.error_share or 0) >= FAILING_CONSUMER_ERROR_SHARE:
        return (
            f"at least half of all runs ended at the function's timeout of "
            f"{consumer.timeout_seconds:,} s"
        )
    return f"the slowest runs ended at the function's timeout of {consumer.timeout_seconds:,} s"


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: a page if messages are lost or none is finished."""
    advice = (
        "Find out what it waits for: a service that does not answer, or more work than fits. If "
        "the work needs longer, first raise the queue's visibility timeout to six times the "
        "function's new timeout plus the batching window, then the function's timeout; or lower "
        "the batch size. A longer visibility timeout alone does not help."
    )
    reason, command, should_page = make_advice(
        facts, advice, timed_out_runs_command, at_timeout=True
    )
    if should_page:
        return Escalate("function_times_out", reason, command)
    return Refuse("function_times_out", reason, command)


def _add_finding(facts: Facts) -> Facts:
    """Return the queue with the sentence of its finding, as heal plans with it."""
    fault = detect(facts)
    return replace(facts, found=fault.because if fault else "")


def _make_example_queue(
    sent: int = 18, deleted: int = 0, *, receives: int = 3, **consumer_values: Any
) -> Facts:
    """Return a queue with a DLQ that takes all messages; 54 of 54 runs end at 30 s.

    `consumer_values` has other fields of the function.
    """
    values = {
        "invocations": 54,
        "error_share": 1.0,
        "duration_p50_seconds": 30.0,
        "duration_p99_seconds": 30.0,
        "batch_size": 1,
        **consumer_values,
    }
    return queue_with_dlq(
        receives,
        sent=sent,
        received=deleted + receives * (sent - deleted),
        deleted=deleted,
        recent=make_last_hour(sent, deleted),
        lambda_consumers=(replace(LAMBDA_FUNCTION, **values),),
    )


_PART_TIMES_OUT: Any = {"invocations": 1_000, "error_share": 0.12, "duration_p50_seconds": 2.0}

FUNCTION_TIMES_OUT = NotifiedSymptom(
    name="function_times_out",
    sentence="Lambda stops the queue's function at its timeout, so messages are not finished.",
    plan_in_words="Name the function, with the share of failed runs and its timeout; page if "
    "messages are lost or nothing is finished.",
    first_step="Shorten the function's work, or raise its timeout.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html",
    evidence_kinds=(NOTHING_FINISHED, SOME_FAIL),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS}),
        lambda facts: bool(facts.lambda_consumers),
    ),
    examples=lambda: (
        QueueExample(
            "every run is stopped, and the DLQ takes the messages at once",
            _make_example_queue(),
            "function_times_out",
        ),
        QueueExample(
            "the duration is a little below the timeout, as CloudWatch rounds it",
            _make_example_queue(duration_p50_seconds=29.5, duration_p99_seconds=29.9),
            "function_times_out",
        ),
        QueueExample(
            "one run in eight is stopped, and the DLQ takes 40 messages in an hour",
            _make_example_queue(880, 840, **_PART_TIMES_OUT),
            "function_times_out",
        ),
        QueueExample(
            "every run has a full batch of ten, and is stopped",
            _make_example_queue(180, batch_size=10),
            "function_times_out",
        ),
        QueueNearMiss(
            "batches are so large that a full one would be stopped, and none was full yet",
            _make_example_queue(
                880, 880, **{**_PART_TIMES_OUT, "batch_size": 10, "error_share": 0.0}
            ),
        ),
        QueueNearMiss(
            "runs fail before the timeout",
            _make_example_queue(duration_p50_seconds=0.4, duration_p99_seconds=30.0),
        ),
        RefusalExample(
            "a third of the runs is stopped, and the next try finishes the messages",
            _add_finding(_make_example_queue(900, 900, **{**_PART_TIMES_OUT, "error_share": 0.33})),
            "function_times_out",
        ),
        QueueNearMiss(
            "one run in six is stopped, and all messages are finished at the next try",
            _make_example_queue(900, 900, **{**_PART_TIMES_OUT, "error_share": 0.16}),
        ),
        QueueNearMiss("slow runs that do not fail", _make_example_queue(900, 890, error_share=0.0)),
        QueueNearMiss("two runs are stopped", _make_example_queue(invocations=2, receives=1)),
    ),
)
