"""Test the hourly scan: its findings, its requests to heal, and its limits per hour and day."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from msgspec import structs

from mendq.aws.errors import FactsUnavailable
from mendq.aws.queue import ManagedQueue, QueueListing
from mendq.cases.finding import MAXIMUM_FINDINGS_PER_CALL, findings_key, start_of_hour
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.symptom import DetectedFault, NotifiedSymptom
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.queue import RedrivePolicy
from mendq.scan.reader import ScanReader
from mendq.scan.selection import MAXIMUM_NEW_FAULTS_PER_DAY
from tests.scan.scanner import (
    Scanner,
    deny_operation,
    deny_queue_attributes,
    make_measured_queues,
    make_short_retention_dlq,
    make_slow_symptom,
    start_next_hour,
)

A_DAY = 86_400


def test_scan_itself_changes_nothing_and_heal_fixes_the_queue_that_it_found(
    scanner: Scanner,
) -> None:
    queue = make_short_retention_dlq(scanner)
    before = scanner.account.attributes(queue)
    done = scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    assert (done.queues_scanned, done.error_by_target) == (1, {}), "its source is not managed"
    assert scanner.account.attributes(queue) == before, "a scan itself changes nothing"
    sort_keys = [sort_key for _, sort_key in scanner.account.case_store_items()]
    assert not [sort_key for sort_key in sort_keys if sort_key.startswith("case#")]
    assert scanner.list_announced_faults() == [(queue, "dlq_retention_too_short")]
    (healed,) = scanner.heal()
    assert healed.error_by_message_id == {}
    assert scanner.account.attributes(queue)["MessageRetentionPeriod"] == str(14 * A_DAY)
    (transition,) = scanner.account.transitions()
    evidence = transition["evidence"]
    assert (evidence["failed_calls"], evidence["principals"]) == (0, [])
    assert transition["to"] == "applied"


def test_second_scan_in_the_same_hour_does_nothing(scanner: Scanner) -> None:
    make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    assert scanner.scan() is not None
    scanner.account.later(seconds=1)
    assert scanner.scan() is None
    start_next_hour(scanner.account)
    assert scanner.scan() is not None


def test_scan_does_not_run_beside_another_scan_but_after_the_claim_of_a_dead_one_expired(
    scanner: Scanner,
) -> None:
    make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    assert scanner.context().scan_store.claim_stretch(scanner.account.now)
    assert scanner.scan() is None
    scanner.account.later(minutes=16)
    assert scanner.scan() is not None


def make_cut_off_scan(scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> list[NotifiedSymptom]:
    """Scan five queues until the Lambda's time is over after the fourth. Return the symptoms."""
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 2)
    for n in range(5):
        scanner.account.queue(f"q-{n}")
    start_next_hour(scanner.account)
    times = iter([900.0, 900.0, 100.0])
    scanner.remaining_seconds = lambda: next(times, 100.0)
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    first = scanner.run_due_scan(symptoms)
    assert (first.queues_scanned, first.last_queue_name) == (4, "q-3")
    scanner.remaining_seconds = lambda: 900.0
    return symptoms


def continue_scan(scanner: Scanner, symptoms: list[NotifiedSymptom]) -> list[str]:
    """Continue the cut-off scan. Return the names of the queues in its findings document."""
    scanner.account.later(minutes=10)
    second = scanner.run_due_scan(symptoms)
    assert (second.queues_scanned, second.last_queue_name) == (1, "q-4")
    document = scanner.read_findings()
    names = [finding["queue_arn"][-3:] for finding in document["findings"]]
    assert document["queues_scanned"] == len(names)
    assert [queue_arn[-3:] for queue_arn in document["managed"]] == [f"q-{n}" for n in range(5)]
    assert document["managed_whole"] is True
    scanner.account.later(minutes=10)
    assert scanner.scan(symptoms) is None
    return names


def test_scan_that_ran_out_of_time_is_continued_after_its_last_queue_by_the_next_run(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    symptoms = make_cut_off_scan(scanner, monkeypatch)
    assert continue_scan(scanner, symptoms) == [f"q-{n}" for n in range(5)]


@pytest.mark.parametrize("overwritten", [b"[", b'{"findings": [5]}', b"[" * 100_000])
def test_continued_scan_whose_stored_findings_are_unreadable_lists_only_its_own_findings(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, overwritten: bytes
) -> None:
    symptoms = make_cut_off_scan(scanner, monkeypatch)
    key = findings_key(start_of_hour(scanner.account.now))
    scanner.account.clients.s3.put_object(Bucket="cases", Key=key, Body=overwritten)
    assert continue_scan(scanner, symptoms) == ["q-4"]


@pytest.mark.parametrize("s3_code", ["NoSuchKey", "AccessDenied"])
def test_scan_continues_with_the_last_queues_after_a_run_failed_to_store_its_findings(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, s3_code: str
) -> None:
    """S3 says AccessDenied to a role that may not list the bucket."""
    symptoms = make_cut_off_scan(scanner, monkeypatch)
    start_next_hour(scanner.account)
    let_in = deny_operation(scanner.account.clients.s3, "PutObject")
    with pytest.raises(ClientError):
        scanner.scan(symptoms)
    let_in()
    if s3_code == "AccessDenied":
        let_in = deny_operation(scanner.account.clients.s3, "GetObject")
    scanner.account.later(minutes=10)
    assert scanner.run_due_scan(symptoms).last_queue_name == "q-4"
    let_in()
    names = [finding["queue_arn"][-3:] for finding in scanner.read_findings()["findings"]]
    assert names == ["q-4"]


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="https://s3"),
        ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "GetObject"),
    ],
)
def test_scan_that_cannot_read_its_stored_findings_fails_and_leaves_them_unchanged(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    symptoms = make_cut_off_scan(scanner, monkeypatch)
    stored_document = scanner.read_findings()
    scanner.account.later(minutes=10)
    let_in = deny_operation(scanner.account.clients.s3, "GetObject", unreachable=error)
    with pytest.raises(type(error)):
        scanner.scan(symptoms)
    let_in()
    assert scanner.read_findings() == stored_document


def test_configuration_faults_of_only_ten_new_queues_a_day_are_passed_to_heal(
    scanner: Scanner,
) -> None:
    # The scan begins in the morning, so that three scans are on one day.
    scanner.account.now = scanner.account.now.replace(hour=6)
    queues = [scanner.account.queue(f"q-{n:02}") for n in range(25)]
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    start_next_hour(scanner.account)
    reported = []
    for _ in range(3):
        scanner.scan(symptoms)
        reported.append({arn for arn, _ in scanner.list_announced_faults()})
        scanner.heal_requests.clear()
        start_next_hour(scanner.account)
    assert [len(arns) for arns in reported] == [MAXIMUM_NEW_FAULTS_PER_DAY] * 3
    assert reported[0] == reported[1] == reported[2] < set(queues)
    scanner.account.later(days=1)
    scanner.scan(symptoms)
    new_arns = {arn for arn, _ in scanner.list_announced_faults()} - reported[0]
    assert len(new_arns) == MAXIMUM_NEW_FAULTS_PER_DAY


def test_findings_document_lists_configuration_faults_beyond_the_ten_passed_to_heal(
    scanner: Scanner,
) -> None:
    for number in range(25):
        scanner.account.queue(f"q-{number:02}")
    start_next_hour(scanner.account)
    scanner.scan([make_slow_symptom(is_fault_of_configuration=True)])
    assert len(scanner.list_announced_faults()) == MAXIMUM_NEW_FAULTS_PER_DAY
    assert len(scanner.read_findings()["findings"]) == 25


def test_symptom_of_many_queues_is_counted_on_all_of_them_and_passed_to_heal_in_part(
    scanner: Scanner,
) -> None:
    queues = make_measured_queues(scanner, MAXIMUM_FINDINGS_PER_CALL + 5)
    symptoms = [make_slow_symptom()]
    done = scanner.run_due_scan(symptoms)
    assert {finding.queue_arn for finding in done.findings} == set(queues)
    assert len(scanner.list_announced_faults()) == MAXIMUM_FINDINGS_PER_CALL
    spread = scanner.account.run().case_store.note_spread([], "slow", scanner.account.now)
    assert len(spread) == len(queues), "heal sees how many there are"


def set_limits(scanner: Scanner, limits: Limits) -> None:
    scanner.account.settings = structs.replace(scanner.account.settings, limits=limits)


def make_hourly_limits(metrics: int) -> Limits:
    """Make limits that allow this number of metrics in the first two hours of a day."""
    return Limits(scan_metrics_per_day=12 * metrics, mass_symptom_share=1)


SUMS_PER_QUEUE = 3
FURTHER_SERIES_PER_QUEUE = 5


def test_scan_measures_only_as_many_queues_as_the_hours_share_of_the_budget_pays(
    scanner: Scanner,
) -> None:
    make_measured_queues(scanner, 25)
    set_limits(scanner, make_hourly_limits(130))
    done = scanner.run_due_scan([make_slow_symptom()])
    assert done.suspects == 25
    assert done.measured == 10
    assert done.metrics == 25 * SUMS_PER_QUEUE + 10 * FURTHER_SERIES_PER_QUEUE
    assert len(done.skipped_arns) == 15
    document = scanner.read_findings()
    assert document["skipped_for_budget"] == 15
    measured_levels = document["queues"].values()
    assert [set(levels) for levels in measured_levels] == [{"backlog", "oldest_age_seconds"}] * 10


def test_metric_budget_counts_what_is_read_and_passes_the_rest_to_the_next_turn(
    scanner: Scanner,
) -> None:
    make_measured_queues(scanner, 25)
    set_limits(scanner, make_hourly_limits(130))
    first_turn = scanner.run_due_scan([make_slow_symptom()])
    scan_store = scanner.context().scan_store
    assert scan_store.read_spent_metrics(scanner.account.now) == first_turn.metrics
    heal_metrics = 70
    scan_store.note_spent_metrics(heal_metrics, scanner.account.now)
    start_next_hour(scanner.account)
    start_next_hour(scanner.account)
    second_turn = scanner.run_due_scan([make_slow_symptom()])
    assert (second_turn.measured, second_turn.metrics) == (0, 0), "heal read as many metrics"
    start_next_hour(scanner.account)
    start_next_hour(scanner.account)
    third_turn = scanner.run_due_scan([make_slow_symptom()])
    assert third_turn.measured == 20


def test_symptom_that_harms_messages_is_measured_before_one_that_only_costs_money(
    scanner: Scanner,
) -> None:
    queues = make_measured_queues(scanner, 25)
    harmed = make_slow_symptom("harmed", is_possible=lambda facts: facts.queue_arn in queues[-10:])
    symptoms = [make_slow_symptom("dear", is_measured_last=True), harmed]
    set_limits(scanner, make_hourly_limits(130))
    done = scanner.run_due_scan(symptoms)
    assert (done.suspects, done.measured, len(done.partly_checked_arns)) == (25, 10, 15)
    assert {finding.queue_arn for finding in done.findings} == set(queues[-10:])
    symptoms_found = {finding.symptom for finding in done.findings}
    assert symptoms_found == {"harmed", "dear"}, "one measurement serves both symptoms"


def test_error_in_one_symptom_on_one_queue_hides_no_other_finding_and_repeats_no_scan(
    scanner: Scanner,
) -> None:
    good = scanner.account.queue("good")
    bad = scanner.account.queue("bad")

    def detect(facts: Facts) -> DetectedFault:
        if facts.queue_arn == bad:
            raise ValueError("a person's text")
        return DetectedFault("found")

    failing = make_slow_symptom("failing", is_fault_of_configuration=True, detect=detect)
    done = scanner.run_due_scan([failing, make_slow_symptom(is_fault_of_configuration=True)])
    assert done.error_by_target.keys() == {bad}
    assert {(finding.queue_arn, finding.symptom) for finding in done.findings} == {
        (good, "failing"),
        (good, "slow"),
        (bad, "slow"),
    }
    assert not done.is_blind, "a blind scan is repeated every ten minutes and costs six times"
    assert scanner.scan([failing]) is None


def test_function_metrics_that_cannot_be_read_leave_out_only_their_queue(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread_queue, other_queue = make_measured_queues(scanner, 2)
    add_function_metrics = ScanReader.with_function_metrics

    def refuse_one(reader: ScanReader, facts: Facts) -> Facts:
        if facts.queue_arn == unread_queue:
            raise FactsUnavailable("metrics of the function")
        return add_function_metrics(reader, facts)

    monkeypatch.setattr(ScanReader, "with_function_metrics", refuse_one)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert done.error_by_target.keys() == {unread_queue}
    assert {finding.queue_arn for finding in done.findings} == {other_queue}


def test_queue_deleted_after_it_was_listed_is_counted_as_gone_and_not_as_an_error(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted_arn = scanner.account.queue("here").replace("here", "gone")
    listing = QueueListing((ManagedQueue(deleted_arn, {"mendq": "heal"}),), {})
    monkeypatch.setattr("mendq.scan.hourly.list_readable_queues", lambda *_: listing)
    done = scanner.run_due_scan()
    assert (done.queues_scanned, done.gone, done.error_by_target) == (1, 1, {})


def make_fault_that_heal_measures() -> NotifiedSymptom:
    """Make a configuration fault, found without metrics. Heal reads metrics before it plans."""
    return replace(
        make_slow_symptom(is_fault_of_configuration=True),
        needs=frozenset({Need.QUEUE, Need.MEASUREMENTS}),
    )


def test_findings_that_heal_must_measure_are_passed_on_only_within_the_metric_budget(
    scanner: Scanner,
) -> None:
    queues = make_measured_queues(scanner, 5)
    set_limits(scanner, make_hourly_limits(20))
    scanner.scan([make_fault_that_heal_measures()])
    assert [arn for arn, _ in scanner.list_announced_faults()] == queues[:2]
    assert len(scanner.read_findings()["findings"]) == 5, "all of them are listed"


def test_findings_that_heal_must_measure_are_not_passed_on_without_a_metric_budget(
    scanner: Scanner,
) -> None:
    make_measured_queues(scanner, 5)
    set_limits(scanner, Limits(scan_metrics_per_day=0))
    scanner.scan([make_fault_that_heal_measures()])
    assert len(scanner.read_findings()["findings"]) == 5
    assert scanner.heal_requests == []


def test_messages_in_a_dlq_are_not_passed_to_heal_if_the_same_scan_finds_their_cause(
    scanner: Scanner,
) -> None:
    dead = scanner.account.queue("orders-dlq", MessageRetentionPeriod=str(14 * A_DAY))
    queue = scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    for queue_arn in (queue, dead):
        url = scanner.account.url(queue_arn)
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="one")
    scanner.account.later(days=1)
    for minutes in (30, 60, 90):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue, at, received=1_000, visible=200, sent=200)
        scanner.put_metrics(dead, at, visible=100 - minutes)
    scanner.scan()
    findings = scanner.read_findings()["findings"]
    faults = {(finding["queue_arn"], finding["symptom"]) for finding in findings}
    assert {(queue, "consumer_failing"), (dead, "dlq_messages_arriving")} <= faults
    assert scanner.list_announced_faults() == [(queue, "consumer_failing")]


def make_queue_with_dead_messages(scanner: Scanner) -> tuple[str, str]:
    """Make an empty source queue from which 100 messages moved to the DLQ. Return both ARNs."""
    dead = scanner.account.queue("orders-dlq", MessageRetentionPeriod=str(14 * A_DAY))
    queue = scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 3).text)
    tags = {"mendq": "heal", MAX_PROCESSING_TAG: "40"}
    sqs = scanner.account.clients.sqs
    sqs.tag_queue(QueueUrl=scanner.account.url(queue), Tags=tags)
    sqs.send_message(QueueUrl=scanner.account.url(dead), MessageBody="one")
    scanner.account.later(days=1)
    for minutes in (90, 60, 30):
        at = scanner.account.now - timedelta(minutes=minutes)
        busy = {"sent": 100.0, "received": 300.0} if minutes == 60 else {}
        scanner.put_metrics(queue, at, visible=0, **busy)
    return queue, dead


def test_fault_of_an_empty_source_queue_is_passed_to_heal_instead_of_the_messages_in_its_dlq(
    scanner: Scanner,
) -> None:
    queue, dead = make_queue_with_dead_messages(scanner)
    scanner.run_due_scan()
    assert (queue, TOO_SHORT.name) in scanner.list_announced_faults()
    assert (dead, "dlq_messages_arriving") not in scanner.list_announced_faults()


def test_scan_measures_a_source_queue_and_its_dlq_and_reads_the_dlqs_attributes_once(
    scanner: Scanner,
) -> None:
    _, dead = make_queue_with_dead_messages(scanner)
    urls_read = list[str]()
    note = cast(
        "Callable[..., None]",
        lambda params, **_: urls_read.append(json.loads(params["body"])["QueueUrl"]),
    )
    events = scanner.account.clients.sqs.meta.events
    events.register("before-call.sqs.GetQueueAttributes", note)
    done = scanner.run_due_scan()
    assert done.measured == 2
    assert urls_read.count(scanner.account.url(dead)) == 1


def test_findings_of_a_source_queue_are_reported_although_its_dlq_denies_mendq(
    scanner: Scanner,
) -> None:
    queue, dead = make_queue_with_dead_messages(scanner)
    scanner.account.clients.sqs.untag_queue(QueueUrl=scanner.account.url(dead), TagKeys=["mendq"])
    scanner.put_metrics_of_returning_message(queue)
    deny_queue_attributes(scanner, dead, words="a resource-based policy")
    done = scanner.run_due_scan([make_slow_symptom(), TOO_SHORT])
    assert (done.unseen, [*done.error_by_target]) == (0, [queue])
    assert scanner.list_announced_faults() == [(queue, "slow")]


@pytest.mark.parametrize(
    "words", ["a service control policy", "a resource-based policy"], ids=["silent", "kept out"]
)
def test_findings_of_other_queues_are_reported_if_a_dlqs_move_tasks_cannot_be_listed(
    scanner: Scanner, words: str
) -> None:
    """An unseen move task could explain any queue's counters. It must not hide the findings."""
    queue, _ = make_queue_with_dead_messages(scanner)
    scanner.put_metrics_of_returning_message(queue)
    dark = make_short_retention_dlq(scanner, "bills")
    refused: list[str] = []

    def refuse(params: Any, **_: Any) -> None:
        if json.loads(params["body"])["SourceArn"] == dark:
            refused.append(dark)
            message = f"not authorized with an explicit deny in {words}"
            error: Any = {"Error": {"Code": "AccessDenied", "Message": message}}
            raise ClientError(error, "ListMessageMoveTasks")

    events: Any = scanner.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.ListMessageMoveTasks", refuse)
    done = scanner.run_due_scan([TOO_SHORT, DLQ_RETENTION_TOO_SHORT])
    assert refused
    assert done.error_by_target.keys() <= {dark}
    assert (queue, TOO_SHORT.name) in scanner.list_announced_faults()


def test_scan_lists_faults_that_are_only_reported_and_neither_calls_heal_nor_opens_a_case(
    scanner: Scanner,
) -> None:
    queue = scanner.account.queue("orders", tag="heal", SqsManagedSseEnabled="false")
    policy = RedrivePolicy(queue, 5).text
    scanner.account.clients.sqs.set_queue_attributes(
        QueueUrl=scanner.account.url(queue), Attributes={"RedrivePolicy": policy}
    )
    scanner.scan()
    assert scanner.heal_requests == []
    findings = scanner.read_findings()["findings"]
    names = {finding["symptom"] for finding in findings if finding["queue_arn"] == queue}
    assert names == {"alarm_missing", "not_encrypted", "redrive_cycle", "tls_not_enforced"}
    assert scanner.account.transitions() == []
