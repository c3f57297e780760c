"""Test how a scan finds functions that Lambda never runs: their reserved concurrency is 0."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.consumers.consumer_throttled import CONSUMER_THROTTLED
from tests.scan.scanner import Scanner, attach_lambda_consumer, start_sums_hour


@pytest.fixture
def concurrency_calls(scanner: Scanner) -> list[str]:
    """The functions whose reserved concurrency was asked for."""
    names = list[str]()

    def note(params: Any, model: Any, **_: Any) -> None:
        if model.name == "GetFunctionConcurrency":
            names.append(params["url_path"].split("/")[-2])

    scanner.account.clients.functions.meta.events.register_first("before-call", note)
    return names


def make_queue(scanner: Scanner, reserved_concurrency: int | None, *, is_settled: bool) -> str:
    """Make a queue that a function reads; unchanged for two hours if `is_settled`."""
    queue_arn = scanner.account.queue("orders")
    attach_lambda_consumer(scanner, queue_arn, reserved_concurrency=reserved_concurrency)
    if is_settled:
        scanner.account.later(hours=2)
        start_sums_hour(scanner)
    return queue_arn


def send_message(scanner: Scanner, queue_arn: str) -> None:
    scanner.account.clients.sqs.send_message(
        QueueUrl=scanner.account.url(queue_arn), MessageBody="waits"
    )


def put_sums(scanner: Scanner, queue_arn: str, **sums: float) -> None:
    at = scanner.account.now - timedelta(minutes=90)
    scanner.put_metrics(queue_arn, at, visible=0, **sums)


def list_symptoms(scanner: Scanner) -> list[str]:
    done = scanner.run_due_scan([CONSUMER_THROTTLED])
    assert done.error_by_target == {}
    return [finding.symptom for finding in done.findings]


def test_function_that_may_not_run_is_found_although_all_its_messages_are_in_the_dlq_by_now(
    scanner: Scanner,
) -> None:
    queue_arn = make_queue(scanner, 0, is_settled=True)
    put_sums(scanner, queue_arn, sent=9, received=27, deleted=0)
    assert list_symptoms(scanner) == ["consumer_throttled"]


def test_function_that_may_not_run_is_found_on_a_queue_that_was_changed_too_lately_to_be_measured(
    scanner: Scanner,
) -> None:
    send_message(scanner, make_queue(scanner, 0, is_settled=False))
    assert list_symptoms(scanner) == ["consumer_throttled"]
    (healed,) = scanner.heal()
    assert healed.error_by_message_id == {}
    (transition,) = scanner.account.transitions()
    assert "Lambda never runs" in str(transition)


def test_function_that_may_not_run_is_found_if_the_metrics_of_the_day_are_spent(
    scanner: Scanner,
) -> None:
    send_message(scanner, make_queue(scanner, 0, is_settled=True))
    metrics_per_day = scanner.settings().limits.scan_metrics_per_day
    scanner.context().scan_store.note_spent_metrics(metrics_per_day, scanner.account.now)
    assert list_symptoms(scanner) == ["consumer_throttled"]


def test_skipped_suspects_are_not_asked_about_if_the_time_of_the_run_is_over(
    scanner: Scanner, concurrency_calls: list[str]
) -> None:
    send_message(scanner, make_queue(scanner, 0, is_settled=True))
    seconds = iter([900.0])
    scanner.remaining_seconds = lambda: next(seconds, 1.0)
    assert list_symptoms(scanner) == []
    assert concurrency_calls == []


@pytest.mark.parametrize("reserved_concurrency", [None, 1])
@pytest.mark.parametrize("is_settled", [True, False])
def test_function_that_may_run_is_not_found(
    scanner: Scanner,
    concurrency_calls: list[str],
    reserved_concurrency: int | None,
    *,
    is_settled: bool,
) -> None:
    send_message(scanner, make_queue(scanner, reserved_concurrency, is_settled=is_settled))
    assert list_symptoms(scanner) == []
    assert concurrency_calls == ["bill"]


@pytest.mark.parametrize("is_settled", [True, False])
def test_reserved_concurrency_is_not_asked_for_if_nothing_makes_the_queue_a_suspect(
    scanner: Scanner, concurrency_calls: list[str], *, is_settled: bool
) -> None:
    """Lambda allows 15 calls per second in an account, for deployments too."""
    make_queue(scanner, 0, is_settled=is_settled)
    done = scanner.run_due_scan(CATALOGUE)
    assert "consumer_throttled" not in {finding.symptom for finding in done.findings}
    assert concurrency_calls == []
