"""Test that a scan stores the configuration of healthy queues as baselines, once per change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from mendq.cases.baselines import Baselines
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.symptom import Symptom
from mendq.notifications.configuration import Baseline
from tests.scan.scanner import (
    Scanner,
    attach_lambda_consumer,
    deny_queue_attributes,
    make_measured_queues,
    make_slow_symptom,
    start_next_hour,
)

FAULTY = make_slow_symptom("faulty", is_fault_of_configuration=True)
QUIET: list[Symptom] = []


def _make_queue(scanner: Scanner, name: str = "orders", **attributes: str) -> str:
    """Make a queue that was unchanged for two hours."""
    queue = scanner.account.queue(name, **attributes)
    scanner.account.later(hours=2)
    return queue


def _load_baselines(scanner: Scanner, queue: str) -> tuple[Baseline, ...]:
    return Baselines(scanner.account.clients.dynamodb, "case_store").load(queue)


def _record_baseline_writes(scanner: Scanner) -> list[str]:
    """Return a list that fills with the sort keys of the baseline items that the scan writes."""
    written = list[str]()

    def note(params: Any, **_: Any) -> None:
        sort_key = json.loads(params["body"])["Key"]["sk"]["S"]
        if "baselines" in sort_key:
            written.append(sort_key)

    events = scanner.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.UpdateItem", note)
    return written


def test_baseline_of_a_healthy_queue_has_its_configuration_tags_and_consumers(
    scanner: Scanner,
) -> None:
    queue = _make_queue(scanner, VisibilityTimeout="90")
    scanner.account.tag(queue, team="")
    attach_lambda_consumer(scanner, queue)
    at = scanner.account.now
    assert scanner.run_due_scan(QUIET).error_by_target == {}
    (baseline,) = _load_baselines(scanner, queue)
    assert baseline.at == at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert baseline.attributes["VisibilityTimeout"] == "90"
    assert baseline.attributes["tag team"] == '""'
    assert baseline.attributes["consumer bill"] == "timeout 30 s, batching window 0 s"


def test_baseline_leaves_out_message_counts_and_timestamps(scanner: Scanner) -> None:
    queue = _make_queue(scanner)
    scanner.run_due_scan(QUIET)
    (baseline,) = _load_baselines(scanner, queue)
    changing = [name for name in baseline.attributes if "Number" in name or "Timestamp" in name]
    assert changing == [], "these change without a change of the configuration"


def test_baseline_is_not_written_again_while_the_configuration_stays_the_same(
    scanner: Scanner,
) -> None:
    queue = _make_queue(scanner)
    written = _record_baseline_writes(scanner)
    scanner.run_due_scan(QUIET)
    assert len(written) == 2, "the queue's item, and the digest of what it holds"
    url = scanner.account.url(queue)
    for _ in range(3):
        start_next_hour(scanner.account)
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="a")
        scanner.run_due_scan(QUIET)
    assert len(written) == 2


def test_baseline_is_not_stored_of_a_suspect_queue_that_was_not_measured(
    scanner: Scanner,
) -> None:
    suspect = scanner.account.queue("orders")
    url = scanner.account.url(suspect)
    scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    scanner.account.later(days=2)
    done = scanner.run_due_scan([make_slow_symptom(detect=lambda _: None)])
    assert done.suspects == 1
    assert _load_baselines(scanner, suspect) == ()


def test_baseline_is_not_stored_of_a_queue_whose_attributes_cannot_be_read(
    scanner: Scanner,
) -> None:
    queue = _make_queue(scanner)
    deny_queue_attributes(scanner, queue)
    scanner.run_due_scan(QUIET)
    assert _load_baselines(scanner, queue) == ()


def test_baseline_is_stored_an_hour_after_the_last_change_and_not_before(scanner: Scanner) -> None:
    queue = scanner.account.queue("orders")
    scanner.account.later(minutes=59)
    scanner.run_due_scan(QUIET)
    assert _load_baselines(scanner, queue) == ()
    scanner.account.later(hours=1)
    scanner.run_due_scan(QUIET)
    assert len(_load_baselines(scanner, queue)) == 1


def test_baseline_is_stored_with_an_old_configuration_fault_but_not_with_a_new_one(
    scanner: Scanner,
) -> None:
    """Otherwise a queue without a DLQ would never have a baseline."""
    old = _make_queue(scanner, "old")
    young = _make_queue(scanner, "young")
    odd = make_slow_symptom(
        "odd",
        is_fault_of_configuration=True,
        detect=lambda facts: (
            FAULTY.detection.detect(facts)  # type: ignore[union-attr]
            if facts.visibility_seconds == 31 or facts.name == "old"
            else None
        ),
    )
    scanner.run_due_scan([odd])
    scanner.account.set_visibility(old, 31)
    scanner.account.set_visibility(young, 31)
    scanner.account.later(days=1)
    scanner.run_due_scan([odd])

    def list_timeouts(queue: str) -> list[str]:
        baselines = _load_baselines(scanner, queue)
        return [baseline.attributes["VisibilityTimeout"] for baseline in baselines]

    assert list_timeouts(old) == ["31", "30"]
    assert list_timeouts(young) == ["30"]


@pytest.mark.parametrize("of_cost", [True, False])
def test_baseline_is_stored_despite_a_cost_finding_but_not_despite_any_other_finding(
    scanner: Scanner, *, of_cost: bool
) -> None:
    (queue,) = make_measured_queues(scanner, 1)
    assert scanner.run_due_scan([make_slow_symptom(is_measured_last=of_cost)]).findings
    assert len(_load_baselines(scanner, queue)) == of_cost


@pytest.mark.parametrize("mode", ["heal", "observe"])
def test_baseline_is_not_stored_while_a_case_is_open_or_was_observed_within_a_day(
    scanner: Scanner, mode: str
) -> None:
    account = scanner.account
    queue = _make_queue(scanner, "orders.fifo", tag=mode, VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))
    for _ in range(2):
        scanner.run_due_scan(QUIET)
        assert _load_baselines(scanner, queue) == ()
        account.later(hours=20)
    scanner.run_due_scan(QUIET)
    assert len(_load_baselines(scanner, queue)) == (mode == "observe"), (
        "a day has gone by without a call"
    )


def test_scan_counts_one_failure_if_baselines_are_refused_and_the_next_scan_stores_them(
    scanner: Scanner,
) -> None:
    queue = _make_queue(scanner)
    client = scanner.account.clients.dynamodb

    def refuse(params: Any, **_: Any) -> None:
        if b"SET baselines" in params["body"]:
            raise EndpointConnectionError(endpoint_url="dynamodb")

    client.meta.events.register_first("before-call.dynamodb.UpdateItem", refuse)
    done = scanner.run_due_scan([DLQ_MISSING])
    assert list(done.error_by_target) == ["baselines"]
    assert scanner.read_findings()["failed"] == 1, "an operator sees it"
    client.meta.events.unregister("before-call.dynamodb.UpdateItem", refuse)
    start_next_hour(scanner.account)
    assert scanner.run_due_scan(QUIET).error_by_target == {}
    assert len(_load_baselines(scanner, queue)) == 1, "it is put by the next"
