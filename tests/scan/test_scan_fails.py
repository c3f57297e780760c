"""Scans that AWS does not let look: at some queue, at any, or at the list of queues."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from functions.scan import count_faults
from mendq.aws.errors import FactsUnavailable, OwnerUnavailable
from mendq.aws.queue import list_managed_queues
from mendq.model.consent import Consent
from tests.scan.scanning import Scanning, an_hour_on, denied, refusing
from tests.scan.test_scan import dlq, slow

SYMPTOMS = [slow(of_configuration=True)]


def counts(scanned: Scanning) -> tuple[int, int, int]:
    document = scanned.findings()
    return document["queues_scanned"], document["unseen"], document["failed"]


def test_of_some_queues_the_round_says_so_and_a_queue_s_own_policy_rings_no_alarm(
    scanned: Scanning,
) -> None:
    """Whoever may write a policy would have it ring for ever."""
    good, bad = scanned.account.queue("good"), scanned.account.queue("bad")
    let_in = denied(scanned, bad, words="a resource-based policy")
    done = scanned.done(SYMPTOMS)
    assert (set(done.error_by_target), done.is_blind, count_faults(done)) == ({bad}, False, 0)
    assert [each.queue_arn for each in done.findings] == [good]
    assert counts(scanned) == (2, 1, 1), "doctor knows"
    assert scanned.scan(SYMPTOMS) is None
    let_in()
    denied(scanned, bad)
    an_hour_on(scanned.account)
    assert count_faults(scanned.done(SYMPTOMS)) == 1


def test_of_none_the_round_is_begun_again_until_one_is_seen(scanned: Scanning) -> None:
    queues = {scanned.account.queue("one"), scanned.account.queue("other")}
    an_hour_on(scanned.account)
    let_in = denied(scanned)
    for _ in range(2):
        done = scanned.done(SYMPTOMS)
        assert (set(done.error_by_target), done.is_blind, count_faults(done)) == (queues, True, 2)
        assert counts(scanned) == (2, 2, 2), "each try is the round's first"
        assert scanned.announced == []
        scanned.account.later(minutes=10)
    let_in()
    assert {each.queue_arn for each in scanned.done(SYMPTOMS).findings} == queues
    assert counts(scanned) == (2, 0, 0)
    assert scanned.scan(SYMPTOMS) is None


def test_a_later_stretch_that_sees_nothing_is_done_with_its_round(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    queues = [scanned.account.queue(f"q-{n}") for n in range(3)]
    an_hour_on(scanned.account)
    denied(scanned, *queues[1:])
    times = iter([900.0])
    scanned.remaining_seconds = lambda: next(times, 100.0)
    assert scanned.done(SYMPTOMS).last_queue_name == "q-0"
    scanned.remaining_seconds = lambda: 900.0
    scanned.account.later(minutes=10)
    assert scanned.done(SYMPTOMS).unseen == 2
    assert counts(scanned) == (3, 2, 2)
    assert scanned.scan(SYMPTOMS) is None


@pytest.fixture
def named(scanned: Scanning) -> Scanning:
    """One whose queues settings name."""
    scanned.account.settings = structs.replace(
        scanned.account.settings, consent=Consent(queues=("orders*",))
    )
    an_hour_on(scanned.account)
    return scanned


def test_tagged_queues_are_scanned_where_a_prefix_cannot_be_listed(named: Scanning) -> None:
    queue, settings = dlq(named, "tagged"), named.settings()
    assert list_managed_queues(named.account.clients, settings.account, settings.consent)
    refusing(named.account.clients.sqs, "ListQueues")
    done = named.done(SYMPTOMS)
    assert {each: type(error) for each, error in done.error_by_target.items()} == {
        "orders*": FactsUnavailable
    }
    assert queue in {arn for arn, _ in named.named()}
    document = named.findings()
    assert (document["managed"], document["managed_whole"]) == ([queue], False)
    with pytest.raises(FactsUnavailable, match="orders"):
        list_managed_queues(named.account.clients, settings.account, settings.consent)


@pytest.mark.parametrize("tag", [None, "heal"])
def test_a_quarantine_is_left_out_although_the_prefix_fits_it(
    named: Scanning, tag: str | None
) -> None:
    """Else it would get a DLQ, and heal and redrive might write to it."""
    source = named.account.queue("orders", tag=tag)
    named.account.queue("orders-quarantine", tag=tag)
    named.account.queue("orders-quarantine.fifo", tag=tag, FifoQueue="true")
    assert named.done().queues_scanned == 1
    assert {arn for arn, _ in named.named()} <= {source}


@pytest.mark.parametrize(("service", "call"), [("sqs", "ListQueues"), ("tagging", "GetResources")])
def test_a_round_that_fails_is_begun_again_by_the_next_scan(
    named: Scanning, service: str, call: str
) -> None:
    dlq(named, tag=None)
    let_in = refusing(getattr(named.account.clients, service), call)
    with pytest.raises(FactsUnavailable):
        named.scan(SYMPTOMS)
    let_in()
    named.account.later(minutes=10)
    assert named.done(SYMPTOMS).queues_scanned
    named.account.later(minutes=10)
    assert named.scan(SYMPTOMS) is None, "the hour's round is done"


def test_scan_that_cannot_call_heal_fails_and_hands_the_finding_over_later(
    scanned: Scanning,
) -> None:
    queue = scanned.account.queue("orders")
    an_hour_on(scanned.account)
    scanned.heal_is_away = True
    with pytest.raises(OwnerUnavailable, match="heal could not be called"):
        scanned.scan(SYMPTOMS)
    assert scanned.announced == []
    scanned.heal_is_away = False
    scanned.account.later(minutes=10)
    scanned.done(SYMPTOMS)
    assert scanned.named() == [(queue, SYMPTOMS[0].name)]


def test_scan_reports_queues_as_unseen_if_cloudwatch_does_not_answer(scanned: Scanning) -> None:
    queues = {scanned.account.queue("one"), scanned.account.queue("other")}
    scanned.account.later(hours=5)
    an_hour_on(scanned.account)
    cloudwatch = scanned.account.clients.cloudwatch
    away = EndpointConnectionError(endpoint_url="cloudwatch")
    let_through = refusing(cloudwatch, "GetMetricData", unreachable=away)
    done = scanned.done()
    assert set(done.error_by_target) == queues
    found_by_attributes = {finding.queue_arn for finding in done.findings}
    assert found_by_attributes == queues, "what needs no metric is still found"
    assert count_faults(done) == 2
    let_through()
    an_hour_on(scanned.account)
    assert scanned.done().error_by_target == {}
