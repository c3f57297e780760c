"""Symptom `function_errors`: the queue's Lambda function fails, so messages are not finished.

The fault: runs of the function end with an error. Their messages come back after the visibility
timeout, or move to the DLQ after `maxReceiveCount` receives.

How it shows: Lambda's metrics Errors and Invocations of six hours, together with messages that
arrive and are not deleted. How many messages the queue holds does not matter. `failing_runs.py` has
the rules. If Lambda stops the failed runs at the function's timeout, the symptom is
`function_times_out`.

What Mendq does: it names the function on its own queue, with the share of failed runs. It pages if
messages are lost or nothing is finished; otherwise it records a case without a page. It changes
nothing, because no attribute of a queue fixes a function.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
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
from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    make_last_hour,
    queue_with_dlq,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.notifications.commands import function_log_command

_EXPLAINING_SYMPTOMS = frozenset({"function_times_out", "redrive_loop"})


def detect(facts: Facts) -> DetectedFault | None:
    """Find a function whose runs end with an error, so that messages are not finished."""
    runs = find_failed_runs(facts, at_timeout=False)
    if runs is None or facts.measurement is None or _EXPLAINING_SYMPTOMS & facts.open_symptoms:
        return None
    return DetectedFault(
        f"{describe_failed_runs(runs)}: "
        f"{describe_unfinished_messages(facts, facts.measurement, runs)}",
        should_page=must_page(facts, runs),
        evidence_kind=choose_evidence_kind(facts.measurement, runs),
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: a page if messages are lost or none is finished."""
    advice = (
        "Read the errors in the function's log; if they began with a deployment, roll it back. A "
        "longer visibility timeout would only slow the retries."
    )
    reason, command, should_page = make_advice(
        facts, advice, function_log_command, at_timeout=False
    )
    if should_page:
        return Escalate("function_errors", reason, command)
    return Refuse("function_errors", reason, command)


def _make_consumer(**overrides: Any) -> tuple[Any, ...]:
    """Return a function of which 507 of 526 runs failed after a short time, unless overridden."""
    values = {
        "invocations": 526,
        "error_share": 507 / 526,
        "duration_p50_seconds": 0.3,
        "duration_p99_seconds": 0.9,
        "batch_size": 1,
        **overrides,
    }
    return (replace(LAMBDA_FUNCTION, **values),)


def _add_finding(facts: Facts) -> Facts:
    """Return the queue with the sentence of its finding, as heal plans with it."""
    fault = detect(facts)
    return replace(facts, found=fault.because if fault else "")


def _make_example_queue(
    sent: int = 358, deleted: int = 19, backlog_now: int = 0, *, receives: int = 3, **overrides: Any
) -> Facts:
    """Return a queue with a DLQ, whose messages all arrived in the last hour.

    `overrides` has other values of the queue, and other fields of the function as `consumer`.
    """
    consumer_values = overrides.pop("consumer", {})
    traffic_counts = {
        "sent": sent,
        "received": deleted + receives * (sent - deleted),
        "deleted": deleted,
        "backlog_now": backlog_now,
        "recent": make_last_hour(sent, deleted, backlog_now=backlog_now, received=sent),
    }
    queue_values = {**traffic_counts, "lambda_consumers": _make_consumer(**consumer_values)}
    return queue_with_dlq(receives, **{"dlq_sources": (), **queue_values, **overrides})


_FEW_RUNS = {"invocations": 12, "error_share": 1.0}
_FIFTH_OF_RUNS_FAILS = {"invocations": 2_000, "error_share": 0.2}
_MOST_RUNS_FAIL = {"invocations": 1_320, "error_share": 1_080 / 1_320}
_GIVES_BACK = {"invocations": 18_603, "error_share": 0.77}
_TIMES_OUT = {"duration_p50_seconds": 30.0, "duration_p99_seconds": 30.0}
_QUEUE_WITHOUT_DLQ = replace_values(
    _make_example_queue(200, 90, 110, consumer={"invocations": 900, "error_share": 0.9}),
    RedrivePolicy="",
)
_SMALL_QUEUE_WITHOUT_DLQ = replace_values(
    _make_example_queue(90, 60, 30, consumer={"invocations": 150, "error_share": 0.6}),
    RedrivePolicy="",
)
_QUEUE_WITH_FEW_BAD_MESSAGES = standard_queue(
    sent=1_313,
    received=2_166,
    deleted=1_307,
    backlog_now=6,
    recent=make_last_hour(218, 217, 5, 6),
    lambda_consumers=_make_consumer(invocations=361, error_share=0.4),
)

FUNCTION_ERRORS = NotifiedSymptom(
    name="function_errors",
    sentence="Runs of the queue's Lambda function end with an error, so messages are not finished.",
    plan_in_words="Name the function, with the share of failed runs and its log; page if "
    "messages are lost or nothing is finished.",
    first_step="Read the function's log, and fix the error.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html",
    evidence_kinds=(NOTHING_FINISHED, SOME_FAIL),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=_EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS, Need.OPEN_CASES}),
        lambda facts: bool(facts.lambda_consumers),
    ),
    examples=lambda: (
        QueueExample(
            "nearly every run fails, and the DLQ takes the messages at once",
            _make_example_queue(),
            "function_errors",
        ),
        QueueExample(
            "a few runs, all of which fail",
            _make_example_queue(4, 0, consumer=_FEW_RUNS),
            "function_errors",
        ),
        RefusalExample(
            "no DLQ, and the backlog grows: some are finished",
            _add_finding(_QUEUE_WITHOUT_DLQ),
            "function_errors",
        ),
        QueueExample(
            "a backlog that it tries and never finishes",
            standard_queue(
                received=2_000,
                backlog_before=60,
                backlog_now=60,
                lambda_consumers=_make_consumer(invocations=300, error_share=1.0),
            ),
            "function_errors",
        ),
        QueueExample(
            "a fifth of the runs fail, and the DLQ takes a twelfth of the messages",
            _make_example_queue(1_600, 1_467, consumer=_FIFTH_OF_RUNS_FAILS),
            "function_errors",
        ),
        QueueExample(
            "a part of the runs succeeds, and the DLQ takes most messages",
            _make_example_queue(600, 240, consumer=_MOST_RUNS_FAIL),
            "function_errors",
        ),
        RefusalExample(
            "most messages of a small queue are finished, and none is lost",
            _add_finding(_SMALL_QUEUE_WITHOUT_DLQ),
            "function_errors",
        ),
        QueueNearMiss(
            "one message of a thousand fails",
            _make_example_queue(
                1_000, 997, consumer={"invocations": 1_006, "error_share": 9 / 1_006}
            ),
        ),
        QueueNearMiss(
            "it gives messages back by an error and finishes all",
            _make_example_queue(4_142, 4_146, consumer=_GIVES_BACK),
        ),
        QueueNearMiss("a few bad messages come back for ever", _QUEUE_WITH_FEW_BAD_MESSAGES),
        QueueNearMiss(
            "two failed runs",
            _make_example_queue(6, 0, consumer={"invocations": 2, "error_share": 1.0}),
        ),
        QueueNearMiss(
            "messages leave, but too few runs fail to explain it",
            _make_example_queue(400, 60, consumer={"invocations": 70, "error_share": 0.1}),
        ),
        QueueNearMiss("Lambda stops the runs", _make_example_queue(consumer=_TIMES_OUT)),
        QueueNearMiss(
            "the errors are not known", _make_example_queue(consumer={"error_share": None})
        ),
        QueueNearMiss(
            "one message blocks its group",
            _make_example_queue(
                100,
                0,
                100,
                receives=1_000,
                queue_arn=QUEUE_ARN,
                groups_in_flight_now=1,
                oldest_age_seconds_now=21_600,
                in_flight_now=1,
            ),
        ),
        QueueNearMiss(
            "a case about its timeout is open",
            _make_example_queue(open_symptoms=_EXPLAINING_SYMPTOMS),
        ),
    ),
)
