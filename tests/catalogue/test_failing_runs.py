"""Test when failed runs of a Lambda function are reported, and by which of the two names."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.cases.finding import Finding
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    make_last_hour,
    queue_with_dlq,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import DetectedFault, Symptom
from mendq.model.facts import Facts, FailedStretch, list_read_actions
from mendq.model.metrics import RecentCounts
from mendq.model.plan import Escalate, Plan, Refusal, Refuse
from mendq.scan.severity import sort_worst_first
from tests.catalogue.asking import answer_to, detect_fault, queue_examples_of

ERRORS = SYMPTOM_BY_NAME["function_errors"]
TIMES_OUT = SYMPTOM_BY_NAME["function_times_out"]
FAILING = SYMPTOM_BY_NAME["consumer_failing"]
EXPIRE = SYMPTOM_BY_NAME["messages_expire"]


def make_queue(sent: int = 100, deleted: int = 50, left: int = 0, **consumer: Any) -> Facts:
    """Return a queue with a DLQ that takes a message after 3 receives; half of the runs fail."""
    values = {
        "invocations": 200,
        "error_share": 0.5,
        "duration_p50_seconds": 0.5,
        "duration_p99_seconds": 2.0,
        "batch_size": 1,
        **consumer,
    }
    return queue_with_dlq(
        3,
        dlq_sources=(),
        sent=sent,
        received=deleted + 3 * (sent - deleted),
        deleted=deleted,
        backlog_now=left,
        recent=make_last_hour(sent, deleted, backlog_now=left),
        lambda_consumers=(replace(LAMBDA_FUNCTION, **values),),
    )


@pytest.mark.parametrize(("deleted", "is_found"), [(95, True), (96, False)])
def test_function_errors_needs_more_messages_in_the_dlq_than_three_and_those_of_a_minute(
    deleted: int, is_found: bool
) -> None:
    """100 messages an hour are 1.7 a minute."""
    facts = make_queue(deleted=deleted, error_share=0.2)
    assert bool(detect_fault(ERRORS, facts)) is is_found


@pytest.mark.parametrize(("failed_runs", "is_found"), [(3, True), (2, False)])
def test_function_errors_needs_three_failed_runs(failed_runs: int, is_found: bool) -> None:
    facts = make_queue(4, 0, invocations=failed_runs, error_share=1.0, batch_size=10)
    assert bool(detect_fault(ERRORS, facts)) is is_found


@pytest.mark.parametrize(("failed_runs", "is_found"), [(75, True), (74, False)])
def test_function_errors_needs_failed_runs_that_explain_half_of_the_receives_before_the_dlq(
    failed_runs: int, is_found: bool
) -> None:
    """50 messages moved to the DLQ after 150 receives."""
    facts = make_queue(invocations=1_000, error_share=failed_runs / 1_000)
    assert bool(detect_fault(ERRORS, facts)) is is_found


def test_run_that_fails_with_a_batch_explains_a_receive_of_each_of_its_messages() -> None:
    facts = make_queue(120, 70, invocations=40, error_share=0.7, batch_size=1)
    assert detect_fault(ERRORS, facts) is None
    assert detect_fault(
        ERRORS,
        replace_values(facts, lambda_consumers=(replace(facts.lambda_consumers[0], batch_size=3),)),
    )


@pytest.mark.parametrize("sent_per_minute", [1, 30])
@pytest.mark.parametrize("left", [0, 12])
def test_function_that_gives_messages_back_by_errors_and_finishes_them_is_healthy(
    sent_per_minute: int, left: int
) -> None:
    sent = 60 * sent_per_minute
    facts = make_queue(sent, sent - left, left, invocations=4 * sent, error_share=0.75)
    for symptom in (ERRORS, TIMES_OUT):
        assert detect_fault(symptom, facts) is None


def test_steady_bad_messages_without_a_dlq_are_no_fault_of_the_function() -> None:
    facts = replace_values(
        make_queue(1_313, 1_307, 6, invocations=361, error_share=0.6),
        RedrivePolicy="",
        received=2_166,
        recent=make_last_hour(218, 217, 5, 6),
    )
    assert detect_fault(ERRORS, facts) is None


def test_function_that_cannot_keep_up_because_half_its_runs_fail_is_reported_without_a_dlq() -> (
    None
):
    facts = replace_values(
        make_queue(1_000, 600, 400, error_share=0.6), RedrivePolicy="", received=3_000
    )
    found = detect_fault(ERRORS, facts)
    assert found is not None
    assert "400 messages are left" in found.found


def test_failure_that_began_in_the_last_hour_is_found_although_most_of_six_hours_was_finished() -> (
    None
):
    facts = make_queue(6_000, 5_010, 0, invocations=3_000, error_share=0.99)
    facts = replace_values(facts, recent=make_last_hour(1_000, 10))
    found = detect_fault(ERRORS, facts)
    assert found is not None
    assert "1,000 messages arrived in the last hour, 10 were deleted" in found.found


def test_failures_over_six_hours_are_found_on_a_queue_with_few_messages() -> None:
    facts = replace_values(
        make_queue(6, 0, invocations=3, error_share=1.0), recent=make_last_hour(1, 0)
    )
    found = detect_fault(ERRORS, facts)
    assert found is not None
    assert "6 messages arrived in the last 6 h, 0 were deleted" in found.found


@pytest.mark.parametrize(
    ("error_share", "median", "slowest", "name"),
    [
        (1.0, 30.0, 30.0, "function_times_out"),
        (1.0, 29.4, 30.0, "function_times_out"),
        (1.0, 29.3, 30.0, "function_errors"),
        (0.5, 29.4, 29.4, "function_times_out"),
        (0.4, 0.2, 29.4, "function_times_out"),
        (0.4, 0.2, 29.3, "function_errors"),
        (0.4, None, None, "function_errors"),
    ],
)
def test_exactly_one_of_both_names_fits_failed_runs_by_their_duration(
    error_share: float, median: float | None, slowest: float | None, name: str
) -> None:
    facts = make_queue(
        error_share=error_share, duration_p50_seconds=median, duration_p99_seconds=slowest
    )
    found = [entry.name for entry in (ERRORS, TIMES_OUT) if detect_fault(entry, facts)]
    assert found == [name]


@pytest.mark.parametrize(("error_share", "is_found"), [(0.2, True), (0.19, False)])
def test_stopped_runs_are_reported_although_messages_are_finished_from_one_in_five_on(
    error_share: float, is_found: bool
) -> None:
    facts = make_queue(1_000, 1_000, error_share=error_share, duration_p99_seconds=30.0)
    assert bool(detect_fault(TIMES_OUT, facts)) is is_found


@pytest.mark.parametrize(
    ("received", "deleted", "consumer", "symptoms"),
    [
        pytest.param(
            240,
            240,
            {"error_share": 0.0, "duration_p50_seconds": 8.0, "duration_p99_seconds": 20.0},
            ["batch_outlasts_timeout"],
            id="small batches, all runs succeed",
        ),
        pytest.param(
            2_000,
            0,
            {"error_share": 1.0, "duration_p50_seconds": 30.0, "duration_p99_seconds": 30.0},
            ["function_times_out"],
            id="full batches, Lambda stops all runs",
        ),
        pytest.param(
            600,
            240,
            {"error_share": 0.3, "duration_p50_seconds": 8.0, "duration_p99_seconds": 30.0},
            ["function_times_out"],
            id="some batches are full, and Lambda stops those",
        ),
    ],
)
def test_too_large_batch_is_named_by_its_size_only_until_lambda_stops_runs(
    received: int, deleted: int, consumer: dict[str, Any], symptoms: list[str]
) -> None:
    """200 runs of a function with a batch size of 10, as its queue gets more messages."""
    facts = make_queue(deleted + (received - deleted) // 3, deleted, batch_size=10, **consumer)
    assert facts.measurement
    measured = replace(
        facts.measurement, recent=make_last_hour(facts.measurement.sent, deleted, received=received)
    )
    facts = replace(facts, measurement=measured)
    names = ("batch_outlasts_timeout", "function_times_out")
    assert [name for name in names if find_fault(SYMPTOM_BY_NAME[name], facts)] == symptoms


def test_function_with_the_most_failed_runs_is_named_if_several_read_the_queue() -> None:
    facts = make_queue(200, 0, error_share=1.0)
    worst = replace(
        facts.lambda_consumers[0],
        function_arn="arn:aws:lambda:us-east-1:123456789012:function:ship",
        invocations=400,
    )
    found = detect_fault(
        ERRORS, replace_values(facts, lambda_consumers=(*facts.lambda_consumers, worst))
    )
    assert found is not None
    assert found.found.startswith("400 of 400 runs of ship in the last hour failed (100 %)")


@pytest.mark.parametrize("error_share", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_failing_function_that_loses_no_message_and_finishes_some_pages_nobody(
    error_share: float, seconds: float
) -> None:
    """Its failed runs may have nothing to do with the queue."""
    facts = make_queue(
        90,
        60,
        30,
        error_share=error_share,
        duration_p50_seconds=seconds,
        duration_p99_seconds=seconds,
    )
    assert type(_answer_about_runs(replace_values(facts, RedrivePolicy=""), seconds)) is Refuse


@pytest.mark.parametrize("error_share", [0.2, 0.9, 1.0])
def test_stopped_runs_whose_messages_are_all_finished_page_nobody(error_share: float) -> None:
    facts = make_queue(
        1_000,
        1_000,
        error_share=error_share,
        duration_p50_seconds=30.0,
        duration_p99_seconds=30.0,
    )
    assert type(_answer_about_runs(facts, 30)) is Refuse


def test_stopped_runs_of_a_function_that_also_reads_an_empty_queue_page_nobody_about_it() -> None:
    facts = make_queue(0, 0, duration_p50_seconds=30.0, duration_p99_seconds=30.0)
    assert type(_answer_about_runs(facts, 30)) is Refuse


def _answer_about_runs(facts: Facts, seconds: float) -> Plan | Refusal:
    """Return the answer about runs that fail after this time; 30 s is the function's timeout."""
    entry = TIMES_OUT if seconds == 30 else ERRORS
    found = detect_fault(entry, facts)
    assert found is not None
    answer = answer_to(entry, found)
    assert entry.detection is not None
    fault = entry.detection.detect(facts)
    assert fault is not None
    assert fault.should_page is isinstance(answer, Escalate)
    return answer


@pytest.mark.parametrize("error_share", [0.2, 0.5, 0.82, 0.89])
@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_failing_function_pages_if_the_dlq_takes_many_messages_whatever_share_of_runs_fails(
    error_share: float, seconds: float
) -> None:
    facts = make_queue(
        3_600,
        3_200,
        invocations=9_000,
        error_share=error_share,
        duration_p50_seconds=seconds,
        duration_p99_seconds=seconds,
    )
    assert isinstance(_answer_about_runs(facts, seconds), Escalate)


@pytest.mark.parametrize(("deleted", "kind"), [(4, Escalate), (5, Refuse), (45, Refuse)])
def test_failing_function_without_a_dlq_pages_if_at_most_a_twentieth_is_finished(
    deleted: int, kind: type
) -> None:
    facts = make_queue(90, deleted, 90 - deleted, error_share=0.6)
    assert type(_answer_about_runs(replace_values(facts, RedrivePolicy=""), 1)) is kind


def test_function_that_finished_nothing_in_the_last_hour_pages_although_it_did_before() -> None:
    """90 messages wait and none arrives, so nothing is lost and nothing more comes."""
    facts = make_queue(90, 60, 30, error_share=0.6)
    facts = replace_values(facts, RedrivePolicy="", recent=make_last_hour(0, 0, 30, 30))
    assert type(_answer_about_runs(facts, 1)) is Escalate
    facts = replace_values(facts, recent=make_last_hour(0, 1, 31, 30))
    assert type(_answer_about_runs(facts, 1)) is Refuse


def test_failing_function_pages_if_one_message_in_six_hours_is_not_finished() -> None:
    facts = make_queue(1, 0, 1, error_share=1.0, duration_p50_seconds=30.0)
    assert type(_answer_about_runs(facts, 30)) is Escalate


def test_failing_function_pages_for_messages_that_it_lost_hours_ago_and_still_fails() -> None:
    """6 of 100 messages moved to the DLQ before the last hour, in which it fails again."""
    facts = make_queue(100, 94, error_share=0.3, duration_p99_seconds=30.0)
    facts = replace_values(facts, recent=make_last_hour(10, 10))
    assert type(_answer_about_runs(facts, 30)) is Escalate


def test_failing_function_pages_for_counts_with_which_consumer_failing_would_page() -> None:
    """Failures add to a growing backlog, although consumers finish more than half of it."""
    facts = replace_values(
        make_queue(50_000, 26_918, 23_082, invocations=30_000, error_share=0.6),
        RedrivePolicy="",
        received=33_160,
        usual_in_flight=10,
        recent=RecentCounts(),
        dlq_sources=None,
    )
    assert detect_fault(FAILING, replace(facts, dlq_sources=()))
    assert isinstance(_answer_about_runs(facts, 1), Escalate)


def test_failing_function_pages_if_nothing_was_deleted_although_some_runs_do_not_fail() -> None:
    found = detect_fault(ERRORS, make_queue(100, 0, error_share=0.6))
    assert found is not None
    assert isinstance(answer_to(ERRORS, found), Escalate)


@pytest.mark.parametrize("entry", [ERRORS, TIMES_OUT], ids=lambda entry: entry.name)
def test_failing_function_is_named_before_consumer_failing(entry: Any) -> None:
    names = [entry.name, "consumer_failing"]
    findings = [Finding("arn:q", name, "") for name in reversed(names)]
    assert [finding.symptom for finding in sort_worst_first(findings)] == names
    assert entry.name in FAILING.gives_way_to
    assert CATALOGUE.index(entry) < CATALOGUE.index(FAILING)


@pytest.mark.parametrize("entry", [ERRORS, TIMES_OUT], ids=lambda entry: entry.name)
def test_failing_function_is_possible_on_a_queue_without_messages_now(entry: Any) -> None:
    assert entry.detection is not None
    empty = standard_queue(ApproximateNumberOfMessages=0, lambda_consumers=(LAMBDA_FUNCTION,))
    assert entry.detection.is_possible(empty)
    assert not entry.detection.is_possible(replace_values(empty, lambda_consumers=()))


@pytest.mark.parametrize("entry", [ERRORS, TIMES_OUT], ids=lambda entry: entry.name)
def test_failing_function_is_not_reported_without_a_measurement(entry: Any) -> None:
    facts = queue_examples_of(entry)[0].facts
    assert detect_fault(entry, replace(facts, measurement=None)) is None


def test_no_symptom_asks_lambda_for_a_functions_code() -> None:
    """GetFunction hands out the code, and auditors' roles lack it."""
    needs = {need for entry in CATALOGUE for need in entry.all_needs}
    actions = {action.iam_action for action in list_read_actions(needs)}
    assert "lambda:GetFunctionConfiguration" in actions
    assert "lambda:GetFunction" not in actions
    assert not any("*" in action for action in actions)


@pytest.mark.parametrize("entry", [ERRORS, TIMES_OUT, FAILING], ids=lambda entry: entry.name)
def test_log_command_starts_an_hour_before_the_end_of_the_measurement(entry: Symptom) -> None:
    """Without a start, CloudWatch Logs would return the oldest lines of the log group."""
    commands = [
        (answer.next_command, facts.measurement.until)
        for facts in (example.facts for example in queue_examples_of(entry))
        if isinstance(answer := answer_to(entry, facts), Refusal)
        and "filter-log-events" in answer.next_command
        and facts.measurement is not None
    ]
    assert commands
    for command, until in commands:
        options = shlex.split(command)
        start = int(options[options.index("--start-time") + 1])
        assert datetime.fromtimestamp(start / 1000, UTC) == until - timedelta(hours=1)


TWO_MINUTES = FailedStretch(
    begins_at=datetime(2026, 11, 16, 8, 10, tzinfo=UTC),
    ends_at=datetime(2026, 11, 16, 8, 15, tzinfo=UTC),
    invocations=54,
    failed_runs=54,
    failed_run_seconds=0.4,
    invocations_of_all_hours=54,
)
WORKS_NOW: dict[str, Any] = {"invocations": 300, "error_share": 0.0}
NO_RUNS_NOW: dict[str, Any] = {"invocations": 0, "error_share": None}


def make_queue_after_stretch(
    sent: int = 18, deleted: int = 0, *, stretch: FailedStretch = TWO_MINUTES, **consumer: Any
) -> Facts:
    """Return a queue with a DLQ whose function failed two hours ago, and has had no run since."""
    facts = make_queue(sent, deleted, failed_stretch=stretch, **{**NO_RUNS_NOW, **consumer})
    return replace_values(facts, recent=RecentCounts())


def find_fault(symptom: Symptom, facts: Facts) -> DetectedFault | None:
    assert symptom.detection is not None
    return symptom.detection.detect(facts)


def test_function_that_failed_for_minutes_hours_ago_and_lost_messages_is_named_with_the_time() -> (
    None
):
    fault = find_fault(ERRORS, make_queue_after_stretch())
    assert fault is not None
    assert fault.because.startswith(
        "54 of 54 runs of bill between 08:10 and 08:15 UTC failed (100 %): 18 messages arrived"
    )
    assert fault.should_page


def test_function_that_was_stopped_at_its_timeout_hours_ago_is_function_times_out() -> None:
    facts = make_queue_after_stretch(stretch=replace(TWO_MINUTES, failed_run_seconds=29.9))
    assert find_fault(TIMES_OUT, facts) is not None
    assert find_fault(ERRORS, facts) is None


def test_function_that_failed_hours_ago_and_finished_the_messages_later_is_not_named() -> None:
    facts = make_queue_after_stretch(900, 900, **WORKS_NOW)
    assert find_fault(ERRORS, facts) is None
    stopped = replace(TWO_MINUTES, failed_run_seconds=30.0)
    facts = make_queue_after_stretch(900, 900, stretch=stopped, **WORKS_NOW)
    assert find_fault(TIMES_OUT, facts) is None


@pytest.mark.parametrize(("error_share", "should_page"), [(0.04, False), (0.05, True)])
def test_function_that_works_again_is_named_without_a_page(
    error_share: float, should_page: bool
) -> None:
    """18 of 1,000 messages were lost."""
    facts = make_queue_after_stretch(
        1_000, 982, invocations=300, error_share=error_share, duration_p50_seconds=0.2
    )
    fault = find_fault(ERRORS, facts)
    assert fault is not None
    assert fault.should_page is should_page
    plan = answer_to(ERRORS, replace(facts, found=fault.because))
    assert isinstance(plan, Escalate) is should_page


@pytest.mark.parametrize(
    ("retention_seconds", "should_page"), [(3_600, True), (3_599, False)], ids=["lost", "hygiene"]
)
def test_recovered_function_pages_only_if_symptom_messages_expire_would_page(
    retention_seconds: int, should_page: bool
) -> None:
    """`messages_expire` waits for the finding about the function."""
    consumer = replace(LAMBDA_FUNCTION, failed_stretch=TWO_MINUTES, **WORKS_NOW)
    facts = standard_queue(
        MessageRetentionPeriod=retention_seconds,
        sent=1_000,
        received=820,
        deleted=800,
        backlog_now=100,
        highest_oldest_age_seconds=3_566,
        lambda_consumers=(consumer,),
    )
    assert detect_fault(EXPIRE, facts)
    assert detect_fault(FAILING, facts) is None
    fault = find_fault(ERRORS, facts)
    assert fault is not None
    assert fault.should_page is should_page


def test_two_failed_runs_hours_ago_are_not_named() -> None:
    stretch = replace(TWO_MINUTES, invocations=2, failed_runs=2, invocations_of_all_hours=2)
    assert find_fault(ERRORS, make_queue_after_stretch(stretch=stretch)) is None


def test_too_few_failed_runs_hours_ago_for_the_lost_messages_are_not_named() -> None:
    """Each of 150 lost messages was received 3 times; 54 runs with one message are too few."""
    stretch = replace(TWO_MINUTES, invocations=200, invocations_of_all_hours=1_300)
    facts = make_queue_after_stretch(1_000, 850, stretch=stretch, **WORKS_NOW)
    assert find_fault(ERRORS, facts) is None


def test_runs_that_fail_in_the_last_hour_come_before_an_earlier_stretch() -> None:
    stretch = replace(TWO_MINUTES, failed_run_seconds=30.0)
    facts = make_queue(deleted=50, failed_stretch=stretch)
    fault = find_fault(ERRORS, facts)
    assert fault is not None
    assert "in the last hour" in fault.because
    assert find_fault(TIMES_OUT, facts) is None


def test_log_command_of_an_earlier_stretch_begins_with_it() -> None:
    facts = make_queue_after_stretch()
    fault = find_fault(ERRORS, facts)
    assert fault is not None
    plan = answer_to(ERRORS, replace(facts, found=fault.because))
    assert isinstance(plan, Escalate)
    start_ms = int(TWO_MINUTES.begins_at.timestamp() * 1000)
    assert f"--start-time {start_ms}" in str(plan)
