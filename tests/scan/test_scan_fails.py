"""Scans that AWS does not let look: at some queue, at any, or at the list of queues."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from functions.scan import count_faults
from mendq.aws.errors import FactsUnavailable, OwnerUnavailable
from mendq.aws.queue import list_managed_queues
from mendq.model.consent import Consent
from tests.scan.scanner import (
    Scanner,
    deny_operation,
    deny_queue_attributes,
    make_short_retention_dlq,
    make_slow_symptom,
    start_next_hour,
)

SYMPTOMS = [make_slow_symptom(of_configuration=True)]


def counts(scanner: Scanner) -> tuple[int, int, int]:
    document = scanner.read_findings()
    return document["queues_scanned"], document["unseen"], document["failed"]


def test_of_some_queues_the_round_says_so_and_a_queue_s_own_policy_rings_no_alarm(
    scanner: Scanner,
) -> None:
    """Whoever may write a policy would have it ring for ever."""
    good, bad = scanner.account.queue("good"), scanner.account.queue("bad")
    let_in = deny_queue_attributes(scanner, bad, words="a resource-based policy")
    done = scanner.run_due_scan(SYMPTOMS)
    assert (set(done.error_by_target), done.is_blind, count_faults(done)) == ({bad}, False, 0)
    assert [each.queue_arn for each in done.findings] == [good]
    assert counts(scanner) == (2, 1, 1), "doctor knows"
    assert scanner.scan(SYMPTOMS) is None
    let_in()
    deny_queue_attributes(scanner, bad)
    start_next_hour(scanner.account)
    assert count_faults(scanner.run_due_scan(SYMPTOMS)) == 1


def test_of_none_the_round_is_begun_again_until_one_is_seen(scanner: Scanner) -> None:
    queues = {scanner.account.queue("one"), scanner.account.queue("other")}
    start_next_hour(scanner.account)
    let_in = deny_queue_attributes(scanner)
    for _ in range(2):
        done = scanner.run_due_scan(SYMPTOMS)
        assert (set(done.error_by_target), done.is_blind, count_faults(done)) == (queues, True, 2)
        assert counts(scanner) == (2, 2, 2), "each try is the round's first"
        assert scanner.heal_requests == []
        scanner.account.later(minutes=10)
    let_in()
    assert {each.queue_arn for each in scanner.run_due_scan(SYMPTOMS).findings} == queues
    assert counts(scanner) == (2, 0, 0)
    assert scanner.scan(SYMPTOMS) is None


def test_a_later_stretch_that_sees_nothing_is_done_with_its_round(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    queues = [scanner.account.queue(f"q-{n}") for n in range(3)]
    start_next_hour(scanner.account)
    deny_queue_attributes(scanner, *queues[1:])
    times = iter([900.0])
    scanner.remaining_seconds = lambda: next(times, 100.0)
    assert scanner.run_due_scan(SYMPTOMS).last_queue_name == "q-0"
    scanner.remaining_seconds = lambda: 900.0
    scanner.account.later(minutes=10)
    assert scanner.run_due_scan(SYMPTOMS).unseen == 2
    assert counts(scanner) == (3, 2, 2)
    assert scanner.scan(SYMPTOMS) is None


@pytest.fixture
def named(scanner: Scanner) -> Scanner:
    """One whose queues settings name."""
    scanner.account.settings = structs.replace(
        scanner.account.settings, consent=Consent(queues=("orders*",))
    )
    start_next_hour(scanner.account)
    return scanner


def test_tagged_queues_are_scanned_where_a_prefix_cannot_be_listed(named: Scanner) -> None:
    queue, settings = make_short_retention_dlq(named, "tagged"), named.settings()
    assert list_managed_queues(named.account.clients, settings.account, settings.consent)
    deny_operation(named.account.clients.sqs, "ListQueues")
    done = named.run_due_scan(SYMPTOMS)
    assert {each: type(error) for each, error in done.error_by_target.items()} == {
        "orders*": FactsUnavailable
    }
    assert queue in {arn for arn, _ in named.list_announced_faults()}
    document = named.read_findings()
    assert (document["managed"], document["managed_whole"]) == ([queue], False)
    with pytest.raises(FactsUnavailable, match="orders"):
        list_managed_queues(named.account.clients, settings.account, settings.consent)


@pytest.mark.parametrize("tag", [None, "heal"])
def test_a_quarantine_is_left_out_although_the_prefix_fits_it(
    named: Scanner, tag: str | None
) -> None:
    """Else it would get a DLQ, and heal and redrive might write to it."""
    source = named.account.queue("orders", tag=tag)
    named.account.queue("orders-quarantine", tag=tag)
    named.account.queue("orders-quarantine.fifo", tag=tag, FifoQueue="true")
    assert named.run_due_scan().queues_scanned == 1
    assert {arn for arn, _ in named.list_announced_faults()} <= {source}


@pytest.mark.parametrize(("service", "call"), [("sqs", "ListQueues"), ("tagging", "GetResources")])
def test_a_round_that_fails_is_begun_again_by_the_next_scan(
    named: Scanner, service: str, call: str
) -> None:
    make_short_retention_dlq(named, tag=None)
    let_in = deny_operation(getattr(named.account.clients, service), call)
    with pytest.raises(FactsUnavailable):
        named.scan(SYMPTOMS)
    let_in()
    named.account.later(minutes=10)
    assert named.run_due_scan(SYMPTOMS).queues_scanned
    named.account.later(minutes=10)
    assert named.scan(SYMPTOMS) is None, "the hour's round is done"


def test_scan_that_cannot_call_heal_fails_and_hands_the_finding_over_later(
    scanner: Scanner,
) -> None:
    queue = scanner.account.queue("orders")
    start_next_hour(scanner.account)
    scanner.is_heal_unreachable = True
    with pytest.raises(OwnerUnavailable, match="heal could not be called"):
        scanner.scan(SYMPTOMS)
    assert scanner.heal_requests == []
    scanner.is_heal_unreachable = False
    scanner.account.later(minutes=10)
    scanner.run_due_scan(SYMPTOMS)
    assert scanner.list_announced_faults() == [(queue, SYMPTOMS[0].name)]


def test_scan_reports_queues_as_unseen_if_cloudwatch_does_not_answer(scanner: Scanner) -> None:
    queues = {scanner.account.queue("one"), scanner.account.queue("other")}
    scanner.account.later(hours=5)
    start_next_hour(scanner.account)
    cloudwatch = scanner.account.clients.cloudwatch
    away = EndpointConnectionError(endpoint_url="cloudwatch")
    let_through = deny_operation(cloudwatch, "GetMetricData", unreachable=away)
    done = scanner.run_due_scan()
    assert set(done.error_by_target) == queues
    found_by_attributes = {finding.queue_arn for finding in done.findings}
    assert found_by_attributes == queues, "what needs no metric is still found"
    assert count_faults(done) == 2
    let_through()
    start_next_hour(scanner.account)
    assert scanner.run_due_scan().error_by_target == {}
