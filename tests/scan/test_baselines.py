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
from tests.scan.scanning import Scanning, an_hour_on, consumed, denied
from tests.scan.test_scan import measured_queues, slow

FAULTY = slow("faulty", of_configuration=True)
QUIET: list[Symptom] = []


def _queue(scanned: Scanning, name: str = "orders", **attributes: str) -> str:
    """One that stood as it is for a while."""
    queue = scanned.account.queue(name, **attributes)
    scanned.account.later(hours=2)
    return queue


def _of(scanned: Scanning, queue: str) -> tuple[Baseline, ...]:
    return Baselines(scanned.account.clients.dynamodb, "case_store").load(queue)


def _writes(scanned: Scanning) -> list[str]:
    """Fills with the items of baselines that are written."""
    written = list[str]()

    def note(params: Any, **_: Any) -> None:
        key = json.loads(params["body"])["Key"]
        written.extend(each["S"] for each in key.values() if "baselines" in each["S"])

    events = scanned.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.UpdateItem", note)
    return written


def test_a_well_queue_is_put_once_with_tags_and_consumers(scanned: Scanning) -> None:
    queue = _queue(scanned, VisibilityTimeout="90")
    scanned.account.tag(queue, team="")
    consumed(scanned, queue)
    written, at = _writes(scanned), scanned.account.now
    assert scanned.done(QUIET).error_by_target == {}
    (first,) = _of(scanned, queue)
    assert first.at == at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert first.attributes["VisibilityTimeout"] == "90"
    assert first.attributes["tag team"] == '""'
    assert first.attributes["consumer bill"] == "timeout 30 s, batching window 0 s"
    assert not [each for each in first.attributes if "Number" in each or "Timestamp" in each]
    assert len(written) == 2, "the queue's item, and the digest of what it holds"
    for _ in range(3):
        an_hour_on(scanned.account)
        scanned.account.clients.sqs.send_message(
            QueueUrl=scanned.account.url(queue), MessageBody="a"
        )
        scanned.done(QUIET)
    assert len(written) == 2, "nothing is written where nothing has changed"


def test_what_could_not_be_measured_is_not_called_well(scanned: Scanning) -> None:
    """Suspect, and CloudWatch knows nothing; or nobody may look."""
    suspect = scanned.account.queue("orders")
    scanned.account.later(days=2)
    healthy = slow(detect=lambda _: None)
    done = scanned.done([healthy])
    assert (done.suspects, _of(scanned, suspect)) == (1, ())
    an_hour_on(scanned.account)
    denied(scanned, suspect)
    scanned.done(QUIET)
    assert _of(scanned, suspect) == ()


def test_a_queue_that_was_changed_just_now_may_yet_show_what_is_wrong(scanned: Scanning) -> None:
    queue = scanned.account.queue("orders")
    scanned.account.later(minutes=59)
    scanned.done(QUIET)
    assert _of(scanned, queue) == ()
    scanned.account.later(hours=1)
    scanned.done(QUIET)
    assert len(_of(scanned, queue)) == 1


def test_a_fault_that_it_works_with_is_none_but_one_that_came_since_is(scanned: Scanning) -> None:
    """Else a queue without a DLQ would have no history, or its fault be taken for well."""
    old, young = (_queue(scanned, each) for each in ("old", "young"))
    odd = slow(
        "odd",
        of_configuration=True,
        detect=lambda facts: (
            FAULTY.detection.detect(facts)  # type: ignore[union-attr]
            if facts.visibility_seconds == 31 or facts.name == "old"
            else None
        ),
    )
    scanned.done([odd])
    for each in (old, young):
        scanned.account.set_visibility(each, 31)
    scanned.account.later(days=1)
    scanned.done([odd])
    stood = [
        [each.attributes["VisibilityTimeout"] for each in _of(scanned, queue)]
        for queue in (old, young)
    ]
    assert stood == [["31", "30"], ["30"]]


@pytest.mark.parametrize("of_cost", [True, False])
def test_what_is_found_wrong_is_no_baseline_but_what_only_costs_money(
    scanned: Scanning, *, of_cost: bool
) -> None:
    (queue,) = measured_queues(scanned, 1)
    assert scanned.done([slow(is_measured_last=of_cost)]).findings
    assert len(_of(scanned, queue)) == of_cost


@pytest.mark.parametrize("mode", ["heal", "observe"])
def test_neither_an_open_case_nor_one_observed_today_is_a_good_time(
    scanned: Scanning, mode: str
) -> None:
    account = scanned.account
    queue = _queue(scanned, "orders.fifo", tag=mode, VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))
    for _ in range(2):
        scanned.done(QUIET)
        assert _of(scanned, queue) == ()
        account.later(hours=20)
    scanned.done(QUIET)
    assert len(_of(scanned, queue)) == (mode == "observe"), "a day has gone by without a call"


def test_a_case_store_that_fails_is_a_failure_of_the_scan_and_not_its_end(
    scanned: Scanning,
) -> None:
    queue = _queue(scanned)
    client = scanned.account.clients.dynamodb

    def refuse(params: Any, **_: Any) -> None:
        if b"SET baselines" in params["body"]:
            raise EndpointConnectionError(endpoint_url="dynamodb")

    client.meta.events.register_first("before-call.dynamodb.UpdateItem", refuse)
    done = scanned.done([DLQ_MISSING])
    assert list(done.error_by_target) == ["baselines"]
    assert scanned.findings()["failed"] == 1, "an operator sees it"
    client.meta.events.unregister("before-call.dynamodb.UpdateItem", refuse)
    an_hour_on(scanned.account)
    assert scanned.done(QUIET).error_by_target == {}
    assert len(_of(scanned, queue)) == 1, "it is put by the next"
