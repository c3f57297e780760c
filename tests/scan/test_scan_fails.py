"""Test scans for which AWS denies calls or does not answer."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from functions.scan import count_faults
from mendq.aws.errors import FactsUnavailable, OwnerUnavailable
from mendq.aws.queue import list_managed_queues
from mendq.cases.finding import findings_key
from mendq.model.consent import Consent
from mendq.model.queue import RedrivePolicy
from mendq.scan.store import Stretch
from tests.scan.scanner import (
    Scanner,
    deny_operation,
    deny_queue_attributes,
    make_short_retention_dlq,
    make_slow_symptom,
    start_next_hour,
)

SYMPTOMS = [make_slow_symptom(is_fault_of_configuration=True)]


def read_counts(scanner: Scanner) -> tuple[int, int, int]:
    document = scanner.read_findings()
    return document["queues_scanned"], document["unseen"], document["failed"]


def test_queue_whose_own_policy_denies_mendq_is_counted_as_unseen_and_rings_no_alarm(
    scanner: Scanner,
) -> None:
    """Otherwise anyone who may write a queue policy could keep the alarm ringing."""
    good = scanner.account.queue("good")
    bad = scanner.account.queue("bad")
    deny_queue_attributes(scanner, bad, words="a resource-based policy")
    done = scanner.run_due_scan(SYMPTOMS)
    assert (set(done.error_by_target), done.is_blind, count_faults(done)) == ({bad}, False, 0)
    assert [finding.queue_arn for finding in done.findings] == [good]
    assert read_counts(scanner) == (2, 1, 1), "doctor knows"
    assert scanner.scan(SYMPTOMS) is None


def test_queue_that_a_service_control_policy_denies_to_mendq_counts_as_one_fault_for_the_alarm(
    scanner: Scanner,
) -> None:
    scanner.account.queue("good")
    deny_queue_attributes(scanner, scanner.account.queue("bad"), words="a service control policy")
    assert count_faults(scanner.run_due_scan(SYMPTOMS)) == 1


def test_scan_that_can_read_no_queue_is_repeated_until_a_queue_can_be_read(
    scanner: Scanner,
) -> None:
    queues = {scanner.account.queue("one"), scanner.account.queue("other")}
    start_next_hour(scanner.account)
    let_in = deny_queue_attributes(scanner)
    for _ in range(2):
        done = scanner.run_due_scan(SYMPTOMS)
        assert (set(done.error_by_target), done.is_blind, count_faults(done)) == (queues, True, 2)
        assert read_counts(scanner) == (2, 2, 2), "each try begins the hour anew"
        assert scanner.heal_requests == []
        scanner.account.later(minutes=10)
    let_in()
    done = scanner.run_due_scan(SYMPTOMS)
    assert {finding.queue_arn for finding in done.findings} == queues
    assert read_counts(scanner) == (2, 0, 0)
    assert scanner.scan(SYMPTOMS) is None


def test_continued_scan_that_can_read_none_of_the_left_over_queues_completes_the_hour(
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
    assert read_counts(scanner) == (3, 2, 2)
    assert scanner.scan(SYMPTOMS) is None


@pytest.fixture
def named_scanner(scanner: Scanner) -> Scanner:
    """A scanner whose settings name its queues by the prefix `orders`."""
    scanner.account.settings = structs.replace(
        scanner.account.settings, consent=Consent(queues=("orders*",))
    )
    start_next_hour(scanner.account)
    return scanner


def test_tagged_queues_are_scanned_if_listing_queues_by_prefix_is_denied(
    named_scanner: Scanner,
) -> None:
    queue = make_short_retention_dlq(named_scanner, "tagged")
    deny_operation(named_scanner.account.clients.sqs, "ListQueues")
    done = named_scanner.run_due_scan(SYMPTOMS)
    assert {target: type(error) for target, error in done.error_by_target.items()} == {
        "orders*": FactsUnavailable
    }
    assert queue in {arn for arn, _ in named_scanner.list_announced_faults()}
    document = named_scanner.read_findings()
    assert (document["managed"], document["managed_whole"]) == ([queue], False)


def test_list_managed_queues_raises_if_listing_queues_by_prefix_is_denied(
    named_scanner: Scanner,
) -> None:
    make_short_retention_dlq(named_scanner, "tagged")
    settings = named_scanner.settings()
    assert list_managed_queues(named_scanner.account.clients, settings.account, settings.consent)
    deny_operation(named_scanner.account.clients.sqs, "ListQueues")
    with pytest.raises(FactsUnavailable, match="orders"):
        list_managed_queues(named_scanner.account.clients, settings.account, settings.consent)


@pytest.mark.parametrize("tag", [None, "heal"])
def test_quarantine_queue_is_not_scanned_although_a_prefix_of_the_settings_matches(
    named_scanner: Scanner, tag: str | None
) -> None:
    """Otherwise Mendq would attach a DLQ to its own quarantine, and heal or redrive could write."""
    source = named_scanner.account.queue("orders", tag=tag)
    named_scanner.account.queue("orders-quarantine", tag=tag)
    named_scanner.account.queue("orders-quarantine.fifo", tag=tag, FifoQueue="true")
    assert named_scanner.run_due_scan().queues_scanned == 1
    assert {arn for arn, _ in named_scanner.list_announced_faults()} <= {source}


@pytest.mark.parametrize(("service", "call"), [("sqs", "ListQueues"), ("tagging", "GetResources")])
def test_scan_that_cannot_list_queues_fails_and_is_repeated_by_the_next_run(
    named_scanner: Scanner, service: str, call: str
) -> None:
    make_short_retention_dlq(named_scanner, tag=None)
    let_in = deny_operation(getattr(named_scanner.account.clients, service), call)
    with pytest.raises(FactsUnavailable):
        named_scanner.scan(SYMPTOMS)
    let_in()
    named_scanner.account.later(minutes=10)
    assert named_scanner.run_due_scan(SYMPTOMS).queues_scanned
    named_scanner.account.later(minutes=10)
    assert named_scanner.scan(SYMPTOMS) is None, "the hour's scan is complete"


def test_scan_that_cannot_call_heal_fails_and_reports_the_finding_in_the_next_scan(
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


def test_scan_without_cloudwatch_counts_each_queue_as_failed_and_finds_faults_in_attributes(
    scanner: Scanner,
) -> None:
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


def test_queue_whose_dlq_reports_no_number_of_messages_is_unseen_and_others_are_scanned(
    scanner: Scanner,
) -> None:
    dlq_arn = scanner.account.queue("orders-dlq", tag=None)
    queue_arn = scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dlq_arn, 5).text)
    scanner.account.queue("payments")

    def damage_count(parsed: dict[str, Any], **_: Any) -> None:
        attributes = parsed["Attributes"]
        if attributes["QueueArn"] == dlq_arn:
            attributes["ApproximateNumberOfMessages"] = "x"

    scanner.account.clients.sqs.meta.events.register(
        "after-call.sqs.GetQueueAttributes", damage_count
    )
    done = scanner.run_due_scan([make_slow_symptom()])
    assert (done.queues_scanned, done.unseen) == (2, 1)
    assert list(done.error_by_target) == [queue_arn]


def test_run_replaces_stored_findings_of_the_hour_that_cannot_be_written_again(
    scanner: Scanner,
) -> None:
    for name in ("orders", "payments"):
        scanner.account.queue(name)
    start_next_hour(scanner.account)
    document = b'{"findings": [], "queues_scanned": ' + b"9" * 4_300 + b"}"
    stretch = Stretch(scanner.account.now, after_queue="orders", is_first=False)
    key = findings_key(scanner.account.now)
    scanner.account.clients.s3.put_object(Bucket="cases", Key=key, Body=document)
    scan_store = scanner.context().scan_store
    assert scan_store.claim_stretch(scanner.account.now)
    scan_store.end_stretch(stretch, "orders", is_round_done=False)
    scanner.run_due_scan()
    assert scanner.read_findings()["queues_scanned"] == 1
