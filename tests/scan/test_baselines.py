"""How queues are that a scan finds well: put once, and again only where it is new."""

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

FAULTY = make_slow_symptom("faulty", of_configuration=True)
QUIET: list[Symptom] = []


def _queue(scanner: Scanner, name: str = "orders", **attributes: str) -> str:
    """One that stood as it is for a while."""
    queue = scanner.account.queue(name, **attributes)
    scanner.account.later(hours=2)
    return queue


def _of(scanner: Scanner, queue: str) -> tuple[Baseline, ...]:
    return Baselines(scanner.account.clients.dynamodb, "case_store").load(queue)


def _writes(scanner: Scanner) -> list[str]:
    """Fills with the items of baselines that are written."""
    written = list[str]()

    def note(params: Any, **_: Any) -> None:
        key = json.loads(params["body"])["Key"]
        written.extend(each["S"] for each in key.values() if "baselines" in each["S"])

    events = scanner.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.UpdateItem", note)
    return written


def test_a_well_queue_is_put_once_with_tags_and_consumers(scanner: Scanner) -> None:
    queue = _queue(scanner, VisibilityTimeout="90")
    scanner.account.tag(queue, team="")
    attach_lambda_consumer(scanner, queue)
    written, at = _writes(scanner), scanner.account.now
    assert scanner.run_due_scan(QUIET).error_by_target == {}
    (first,) = _of(scanner, queue)
    assert first.at == at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert first.attributes["VisibilityTimeout"] == "90"
    assert first.attributes["tag team"] == '""'
    assert first.attributes["consumer bill"] == "timeout 30 s, batching window 0 s"
    assert not [each for each in first.attributes if "Number" in each or "Timestamp" in each]
    assert len(written) == 2, "the queue's item, and the digest of what it holds"
    for _ in range(3):
        start_next_hour(scanner.account)
        scanner.account.clients.sqs.send_message(
            QueueUrl=scanner.account.url(queue), MessageBody="a"
        )
        scanner.run_due_scan(QUIET)
    assert len(written) == 2, "nothing is written where nothing has changed"


def test_what_could_not_be_measured_is_not_called_well(scanner: Scanner) -> None:
    """Suspect, and CloudWatch knows nothing; or nobody may look."""
    suspect = scanner.account.queue("orders")
    scanner.account.later(days=2)
    healthy = make_slow_symptom(detect=lambda _: None)
    done = scanner.run_due_scan([healthy])
    assert (done.suspects, _of(scanner, suspect)) == (1, ())
    start_next_hour(scanner.account)
    deny_queue_attributes(scanner, suspect)
    scanner.run_due_scan(QUIET)
    assert _of(scanner, suspect) == ()


def test_a_queue_that_was_changed_just_now_may_yet_show_what_is_wrong(scanner: Scanner) -> None:
    queue = scanner.account.queue("orders")
    scanner.account.later(minutes=59)
    scanner.run_due_scan(QUIET)
    assert _of(scanner, queue) == ()
    scanner.account.later(hours=1)
    scanner.run_due_scan(QUIET)
    assert len(_of(scanner, queue)) == 1


def test_a_fault_that_it_works_with_is_none_but_one_that_came_since_is(scanner: Scanner) -> None:
    """Else a queue without a DLQ would have no history, or its fault be taken for well."""
    old, young = (_queue(scanner, each) for each in ("old", "young"))
    odd = make_slow_symptom(
        "odd",
        of_configuration=True,
        detect=lambda facts: (
            FAULTY.detection.detect(facts)  # type: ignore[union-attr]
            if facts.visibility_seconds == 31 or facts.name == "old"
            else None
        ),
    )
    scanner.run_due_scan([odd])
    for each in (old, young):
        scanner.account.set_visibility(each, 31)
    scanner.account.later(days=1)
    scanner.run_due_scan([odd])
    stood = [
        [each.attributes["VisibilityTimeout"] for each in _of(scanner, queue)]
        for queue in (old, young)
    ]
    assert stood == [["31", "30"], ["30"]]


@pytest.mark.parametrize("of_cost", [True, False])
def test_what_is_found_wrong_is_no_baseline_but_what_only_costs_money(
    scanner: Scanner, *, of_cost: bool
) -> None:
    (queue,) = make_measured_queues(scanner, 1)
    assert scanner.run_due_scan([make_slow_symptom(is_measured_last=of_cost)]).findings
    assert len(_of(scanner, queue)) == of_cost


@pytest.mark.parametrize("mode", ["heal", "observe"])
def test_neither_an_open_case_nor_one_observed_today_is_a_good_time(
    scanner: Scanner, mode: str
) -> None:
    account = scanner.account
    queue = _queue(scanner, "orders.fifo", tag=mode, VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))
    for _ in range(2):
        scanner.run_due_scan(QUIET)
        assert _of(scanner, queue) == ()
        account.later(hours=20)
    scanner.run_due_scan(QUIET)
    assert len(_of(scanner, queue)) == (mode == "observe"), "a day has gone by without a call"


def test_a_case_store_that_fails_is_a_failure_of_the_scan_and_not_its_end(
    scanner: Scanner,
) -> None:
    queue = _queue(scanner)
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
    assert len(_of(scanner, queue)) == 1, "it is put by the next"
