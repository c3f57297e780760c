"""Test which queues a scan measures: CloudWatch bills each metric that it is asked for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mendq.aws.errors import FactsUnavailable
from mendq.catalogue import CATALOGUE
from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumers.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.consumers.mapping_wastes_receives import MAPPING_WASTES_RECEIVES
from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.symptom import DetectedFault
from mendq.model.facts import Facts
from mendq.model.queue import RedrivePolicy
from mendq.model.traffic import hour_number, is_sums_hour
from tests.scan.scanner import (
    Scanner,
    attach_lambda_consumer,
    make_slow_symptom,
    start_next_hour,
    start_sums_hour,
)

SUMS = 3
ALL_SERIES = 7


@pytest.fixture
def billed_names(scanner: Scanner) -> list[str]:
    """The queues and functions that GetMetricData was asked about: what AWS bills."""
    names = list[str]()

    def note(params: Any, **_: Any) -> None:
        for query in params["MetricDataQueries"]:
            (dimension,) = query["MetricStat"]["Metric"]["Dimensions"]
            names.append(dimension["Value"])

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return names


def make_settled_queue(scanner: Scanner, name: str, **attributes: str) -> str:
    """Make a queue with long polling that was unchanged for two hours, at the start of an hour."""
    attributes = {"ReceiveMessageWaitTimeSeconds": "20", **attributes}
    queue_arn = scanner.account.queue(name, **attributes)
    scanner.account.later(hours=2)
    start_sums_hour(scanner)
    return queue_arn


def put_sums(scanner: Scanner, queue_arn: str, sent: int, received: int, deleted: int) -> None:
    """Report these sums of one minute, half an hour ago."""
    at = scanner.account.now - timedelta(minutes=30)
    scanner.put_metrics(queue_arn, at, sent=sent, received=received, deleted=deleted)


def send_messages(scanner: Scanner, queue_arn: str, count: int) -> None:
    url = scanner.account.url(queue_arn)
    for _ in range(count):
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")


def test_scan_asks_three_sums_and_nothing_more_of_queues_that_are_empty_and_unused(
    scanner: Scanner, billed_names: list[str]
) -> None:
    """Most queues are idle. A symptom that suspects them all would make AWS bill for all."""
    make_settled_queue(scanner, "orders")
    make_settled_queue(scanner, "orders.fifo")
    done = scanner.run_due_scan(CATALOGUE)
    assert (done.queues_scanned, done.error_by_target) == (2, {})
    assert done.suspects == 0
    assert Counter(billed_names) == {"orders": SUMS, "orders.fifo": SUMS}
    assert done.metrics == len(billed_names), "the budget counts what is billed"


def test_queue_that_is_empty_now_is_measured_because_its_messages_were_received_and_not_deleted(
    scanner: Scanner, billed_names: list[str]
) -> None:
    queue_arn = make_settled_queue(scanner, "orders")
    put_sums(scanner, queue_arn, sent=400, received=2_000, deleted=0)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert [finding.queue_arn for finding in done.findings] == [queue_arn]
    assert Counter(billed_names) == {"orders": ALL_SERIES}, "the sums are asked for once"
    assert done.metrics == len(billed_names)
    assert "2,000 receives and 0 deletes" in scanner.read_findings()["measured_because"][queue_arn]


def test_queue_whose_messages_are_all_deleted_at_once_is_not_measured(
    scanner: Scanner, billed_names: list[str]
) -> None:
    queue_arn = make_settled_queue(scanner, "orders")
    put_sums(scanner, queue_arn, sent=40_000, received=40_000, deleted=40_000)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert (done.suspects, done.findings, len(billed_names)) == (0, (), SUMS)


def test_scan_between_two_sums_asks_nothing_of_a_queue_without_a_free_sign(
    scanner: Scanner, billed_names: list[str]
) -> None:
    queue_arn = make_settled_queue(scanner, "orders")
    put_sums(scanner, queue_arn, sent=9, received=9, deleted=9)
    scanner.run_due_scan([make_slow_symptom()])
    billed_names.clear()
    start_next_hour(scanner.account)
    put_sums(scanner, queue_arn, sent=400, received=2_000, deleted=0)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert (done.suspects, billed_names) == (0, [])
    assert done.configuration_by_arn == {}, "a queue that was not judged is not healthy"
    start_next_hour(scanner.account)
    assert scanner.run_due_scan([make_slow_symptom()]).findings


def test_scan_between_two_sums_measures_the_source_of_a_dlq_that_gained_a_message(
    scanner: Scanner, billed_names: list[str]
) -> None:
    dlq_arn = scanner.account.queue("orders-dlq", tag=None)
    queue_arn = make_settled_queue(scanner, "orders", RedrivePolicy=RedrivePolicy(dlq_arn, 5).text)
    send_messages(scanner, dlq_arn, 2)
    put_sums(scanner, queue_arn, sent=9, received=9, deleted=9)
    assert scanner.run_due_scan([make_slow_symptom()]).findings, "it holds some: nobody knows since"
    for gained in (0, 1):
        start_next_hour(scanner.account)
        billed_names.clear()
        send_messages(scanner, dlq_arn, gained)
        done = scanner.run_due_scan([make_slow_symptom()])
        assert bool(done.findings) is bool(gained)
        assert bool(billed_names) is bool(gained)
        start_next_hour(scanner.account)
        scanner.run_due_scan([make_slow_symptom()])


def make_queue_whose_dlq_gains_messages(scanner: Scanner, *first_queue_names: str) -> str:
    """Make a queue that was judged with an empty DLQ, which gained three messages since.

    The other queues have the same DLQ. It is then an hour in which no sums are asked for.
    """
    dlq_arn = scanner.account.queue("orders-dlq", tag=None)
    policy = RedrivePolicy(dlq_arn, 5).text
    for name in first_queue_names:
        scanner.account.queue(name, RedrivePolicy=policy)
    queue_arn = make_settled_queue(scanner, "orders", RedrivePolicy=policy)
    put_sums(scanner, queue_arn, sent=9, received=9, deleted=9)
    assert scanner.run_due_scan([make_slow_symptom()]).suspects == 0
    start_next_hour(scanner.account)
    send_messages(scanner, dlq_arn, 3)
    return queue_arn


def test_queue_that_the_budget_skipped_is_measured_for_its_dlqs_messages_on_the_next_day(
    scanner: Scanner,
) -> None:
    queue_arn = make_queue_whose_dlq_gains_messages(scanner)
    metrics_per_day = scanner.settings().limits.scan_metrics_per_day
    scanner.context().scan_store.note_spent_metrics(metrics_per_day, scanner.account.now)
    assert list(scanner.run_due_scan([make_slow_symptom()]).skip_reason_by_arn) == [queue_arn]
    scanner.account.now += timedelta(hours=24 - scanner.account.now.hour)
    start_sums_hour(scanner)
    put_sums(scanner, queue_arn, sent=9, received=9, deleted=9)
    done = scanner.run_due_scan([make_slow_symptom()])
    reason = "its DLQ gained 3 messages since the queue was last checked"
    assert done.measuring_reason_by_arn == {queue_arn: reason}
    assert [finding.queue_arn for finding in done.findings] == [queue_arn]
    start_next_hour(scanner.account)
    assert scanner.run_due_scan([make_slow_symptom()]).suspects == 0, "it was judged once"


def test_queue_with_a_check_that_failed_is_measured_again_for_its_dlqs_messages(
    scanner: Scanner,
) -> None:
    queue_arn = make_queue_whose_dlq_gains_messages(scanner)

    def fail(_facts: Facts) -> DetectedFault | None:
        raise FactsUnavailable("a check")

    failing_symptom = make_slow_symptom("fails", is_fault_of_configuration=True, detect=fail)
    symptoms = [make_slow_symptom(), failing_symptom]
    assert list(scanner.run_due_scan(symptoms).error_by_target) == [queue_arn]
    start_next_hour(scanner.account)
    start_next_hour(scanner.account)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert list(done.measuring_reason_by_arn) == [queue_arn]


def test_queue_is_measured_for_its_dlqs_messages_although_an_earlier_run_scanned_another_source(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of any queue may name this DLQ."""
    queue_arn = make_queue_whose_dlq_gains_messages(scanner, "another")
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    remaining_seconds = iter([900.0])
    scanner.remaining_seconds = lambda: next(remaining_seconds, 299.0)
    assert scanner.run_due_scan([make_slow_symptom()]).last_queue_name == "another"
    scanner.remaining_seconds = lambda: 900.0
    done = scanner.run_due_scan([make_slow_symptom()])
    assert list(done.measuring_reason_by_arn) == [queue_arn]


def test_unused_queue_is_asked_for_its_sums_once_a_day(
    scanner: Scanner, billed_names: list[str]
) -> None:
    make_settled_queue(scanner, "orders")
    hours_with_sums = list[int]()
    for hour in range(26):
        billed_names.clear()
        scanner.run_due_scan([make_slow_symptom()])
        if billed_names:
            hours_with_sums.append(hour)
        start_next_hour(scanner.account)
    assert hours_with_sums == [0, 24]


def test_first_scan_asks_for_sums_in_any_hour(scanner: Scanner, billed_names: list[str]) -> None:
    make_settled_queue(scanner, "orders")
    start_next_hour(scanner.account)
    assert not is_sums_hour(hour_number(scanner.account.now))
    scanner.run_due_scan([make_slow_symptom()])
    assert len(billed_names) == SUMS


def test_timeout_of_cloudwatch_for_one_queue_costs_only_that_queue(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_arns = [make_settled_queue(scanner, f"q-{n}") for n in range(5)]
    for queue_arn in queue_arns:
        put_sums(scanner, queue_arn, sent=9, received=90, deleted=0)

    def refuse(params: Any, **_: Any) -> None:
        for query in params["MetricDataQueries"]:
            if query["MetricStat"]["Metric"]["Dimensions"][0]["Value"] == "q-2":
                raise ReadTimeoutError(endpoint_url="https://monitoring")

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", refuse)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert done.error_by_target.keys() == {queue_arns[2]}
    assert {finding.queue_arn for finding in done.findings} == {*queue_arns} - {queue_arns[2]}


def stop_consumer(scanner: Scanner, queue_arn: str, half_hours: float) -> None:
    """Answer as if the queue's mapping was disabled some half hours ago. Nine messages wait."""
    disabled_at = scanner.account.now - half_hours * timedelta(minutes=30)
    attach_lambda_consumer(scanner, queue_arn, State="Disabled", LastModified=disabled_at)
    send_messages(scanner, queue_arn, 9)


def list_symptoms(scanner: Scanner) -> list[str]:
    """Scan for stopped consumers. Return the symptoms of the findings."""
    done = scanner.run_due_scan([CONSUMER_STOPPED])
    return [finding.symptom for finding in done.findings]


def test_queue_that_was_changed_too_lately_to_be_measured_is_reported_for_its_disabled_mapping(
    scanner: Scanner, billed_names: list[str]
) -> None:
    queue_arn = scanner.account.queue("orders")
    stop_consumer(scanner, queue_arn, half_hours=1)
    assert list_symptoms(scanner) == ["consumer_stopped"]
    assert billed_names == []


def test_heal_opens_a_case_for_an_unmeasured_queue_whose_mapping_is_disabled(
    scanner: Scanner,
) -> None:
    stop_consumer(scanner, scanner.account.queue("orders"), half_hours=1)
    assert list_symptoms(scanner) == ["consumer_stopped"]
    (healed,) = scanner.heal()
    assert healed.error_by_message_id == {}
    (transition,) = scanner.account.transitions()
    assert "9 messages waiting" in str(transition)


def test_queue_whose_mapping_was_just_disabled_is_not_reported_by_facts(scanner: Scanner) -> None:
    stop_consumer(scanner, scanner.account.queue("orders"), half_hours=0.9)
    assert list_symptoms(scanner) == []


def test_queue_that_the_budget_skips_is_reported_for_its_disabled_mapping(
    scanner: Scanner, billed_names: list[str]
) -> None:
    stop_consumer(scanner, make_settled_queue(scanner, "orders"), half_hours=2)
    metrics_per_day = scanner.settings().limits.scan_metrics_per_day
    scanner.context().scan_store.note_spent_metrics(metrics_per_day, scanner.account.now)
    assert list_symptoms(scanner) == ["consumer_stopped"]
    assert billed_names == []


def test_queue_that_cloudwatch_does_not_answer_for_is_reported_for_its_disabled_mapping(
    scanner: Scanner,
) -> None:
    stop_consumer(scanner, make_settled_queue(scanner, "orders"), half_hours=2)

    def refuse(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://monitoring")

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", refuse)
    assert list_symptoms(scanner) == ["consumer_stopped"]


def test_disturbed_cloudwatch_is_asked_only_a_few_times_and_every_queue_is_named(
    scanner: Scanner,
) -> None:
    queue_arns = [make_settled_queue(scanner, f"q-{n}") for n in range(8)]
    calls = list[int]()

    def refuse(params: Any, **_: Any) -> None:
        calls.append(len(params["MetricDataQueries"]))
        raise ReadTimeoutError(endpoint_url="https://monitoring")

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", refuse)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert done.error_by_target.keys() == {*queue_arns}
    assert calls == [8 * SUMS, SUMS, SUMS]


def test_queue_in_use_without_a_sign_is_asked_only_for_the_metrics_of_symptoms_that_cost_money(
    scanner: Scanner, billed_names: list[str]
) -> None:
    queue_arn = make_settled_queue(scanner, "orders", ReceiveMessageWaitTimeSeconds="0")
    put_sums(scanner, queue_arn, sent=9, received=9, deleted=9)
    done = scanner.run_due_scan([EMPTY_RECEIVES, make_slow_symptom()])
    assert (done.suspects, done.measured, done.findings) == (1, 1, ())
    assert len(billed_names) == SUMS + 1, "the empty receives"


@pytest.mark.parametrize(("name", "is_suspect"), [("orders.fifo", False), ("orders", True)])
def test_scan_for_noisy_groups_measures_only_standard_queues(
    scanner: Scanner, billed_names: list[str], name: str, *, is_suspect: bool
) -> None:
    queue_arn = make_settled_queue(scanner, name)
    put_sums(scanner, queue_arn, sent=30, received=9, deleted=9)
    assert scanner.run_due_scan([NOISY_MESSAGE_GROUPS]).suspects == is_suspect
    assert set(billed_names) == ({name} if is_suspect else set())


@pytest.mark.parametrize(
    ("mapping", "is_suspect"),
    [
        ({"BatchSize": 1}, False),
        ({"BatchSize": 10, "FunctionResponseTypes": ["ReportBatchItemFailures"]}, False),
        ({"BatchSize": 10, "State": "Disabled"}, False),
        (None, False),
        ({"BatchSize": 10}, True),
    ],
)
def test_scan_reads_metrics_of_wasted_receives_only_if_whole_batches_may_return(
    scanner: Scanner,
    billed_names: list[str],
    mapping: dict[str, Any] | None,
    *,
    is_suspect: bool,
) -> None:
    queue_arn = make_settled_queue(scanner, "orders", VisibilityTimeout="200")
    put_sums(scanner, queue_arn, sent=30, received=90, deleted=30)
    if mapping is not None:
        attach_lambda_consumer(scanner, queue_arn, **mapping)
    done = scanner.run_due_scan([MAPPING_WASTES_RECEIVES])
    assert (done.suspects, done.error_by_target) == (is_suspect, {})
    measured_names = {name.rpartition(":")[2] for name in billed_names}
    assert measured_names == ({"orders", "bill"} if is_suspect else set())
    assert done.metrics == len(billed_names)
