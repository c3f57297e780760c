"""Test the scan while DynamoDB throttles the case store.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.scan import count_faults
from mendq.aws.errors import CaseStoreUnavailable, FactsUnavailable
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.symptom import DetectedFault, Detection, NotifiedSymptom
from mendq.model.facts import Need
from mendq.model.plan import Escalate
from tests.scan.own_changes import ARRIVING, make_queue_with_attached_dlq, move_messages_to_dlq
from tests.scan.scanner import Scanner, deny_operation, make_faulty_dlq, start_next_hour

# A symptom that every queue with metrics shows.
MEASURED = NotifiedSymptom(
    name="measured",
    sentence="It was measured.",
    plan_in_words="Page.",
    first_step="Look at it.",
    aws_page="",
    examples=tuple,
    plan=lambda facts, _limits: Escalate("measured", facts.found),
    detection=Detection(
        lambda facts: DetectedFault("it was measured") if facts.measurement else None,
        frozenset({Need.QUEUE, Need.MEASUREMENTS}),
    ),
)


def throttle(scanner: Scanner, *sort_keys: str) -> Callable[[], None]:
    """Make DynamoDB throttle calls with these sort keys, or all. Call the result to end it."""

    def refuse(params: dict[str, Any], **_: Any) -> None:
        request = str(params)
        if not sort_keys or any(f"'S': '{sort_key}" in request for sort_key in sort_keys):
            busy: Any = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            raise ClientError(busy, "UpdateItem")

    events = scanner.account.clients.dynamodb.meta.events
    events.register_first("before-parameter-build.dynamodb", refuse)
    return lambda: events.unregister("before-parameter-build.dynamodb", refuse)


def read_case_store(scanner: Scanner) -> dict[tuple[str, str], Any]:
    return scanner.account.case_store_items()


def has_findings(scanner: Scanner) -> bool:
    listing = scanner.account.clients.s3.list_objects_v2(Bucket="cases", Prefix="findings/")
    return any(stored["Key"].endswith(".json") for stored in listing.get("Contents", []))


def test_scan_that_cannot_claim_its_hour_fails_before_it_reads_a_queue_or_stores_anything(
    scanner: Scanner,
) -> None:
    dlq_arn = make_faulty_dlq(scanner)
    before = read_case_store(scanner)
    sqs_calls = list[str]()
    scanner.account.clients.sqs.meta.events.register(
        "before-call.sqs", lambda model, **_: sqs_calls.append(model.name)
    )
    available = throttle(scanner)
    with pytest.raises(CaseStoreUnavailable, match="Rate exceeded"):
        scanner.scan([DLQ_RETENTION_TOO_SHORT])
    assert (sqs_calls, scanner.heal_requests, has_findings(scanner)) == ([], [], False)
    available()
    assert read_case_store(scanner) == before
    scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    assert scanner.list_announced_faults() == [(dlq_arn, "dlq_retention_too_short")]


@pytest.mark.parametrize("step", ["said_of_configuration", "spread#", "metrics#"])
def test_scan_that_cannot_count_its_findings_passes_none_on_and_is_repeated(
    scanner: Scanner, step: str
) -> None:
    """A finding that is not counted would escape the limits on notifications and on cost."""
    dlq_arn = make_faulty_dlq(scanner)
    is_measured = step != "said_of_configuration"
    symptoms = [MEASURED if is_measured else DLQ_RETENTION_TOO_SHORT]
    scanner.put_metrics(dlq_arn, scanner.account.now - timedelta(minutes=30), sent=1, received=9)
    billed = list[str]()
    scanner.account.clients.cloudwatch.meta.events.register(
        "before-call.cloudwatch.GetMetricData", lambda model, **_: billed.append(model.name)
    )
    available = throttle(scanner, step)
    with pytest.raises(CaseStoreUnavailable, match="Rate exceeded"):
        scanner.scan(symptoms)
    assert (scanner.heal_requests, has_findings(scanner)) == ([], False)
    if step == "metrics#":
        assert billed == [], "no metric is read before its cost is counted"
    available()
    scanner.account.later(minutes=10)
    done = scanner.run_due_scan(symptoms)
    assert done.queues_scanned == 2, "the next scan begins with the same queues"
    assert done.findings
    assert len(scanner.list_announced_faults()) == 1


@pytest.mark.parametrize("step", ["baselines", "baselines#"])
def test_scan_that_cannot_store_baselines_counts_one_failure_and_reports_all_findings(
    scanner: Scanner, step: str
) -> None:
    dlq_arn = make_faulty_dlq(scanner)
    available = throttle(scanner, step)
    done = scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    assert {name: type(error) for name, error in done.error_by_target.items()} == {
        "baselines": CaseStoreUnavailable
    }
    assert count_faults(done) == 1, "an alarm hears of it"
    assert scanner.read_findings()["failed"] == 1
    assert scanner.list_announced_faults() == [(dlq_arn, "dlq_retention_too_short")]
    assert not [sort for _, sort in read_case_store(scanner) if sort.startswith("baselines#")]
    available()
    start_next_hour(scanner.account)
    assert scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT]).error_by_target == {}
    assert [sort for _, sort in read_case_store(scanner) if sort.startswith("baselines#")], (
        "an hour later"
    )


def test_failed_scan_whose_claim_cannot_be_released_is_repeated_after_the_claim_expired(
    scanner: Scanner,
) -> None:
    """The scan's claim of the hour then expires automatically."""
    dlq_arn = make_faulty_dlq(scanner)
    let_in = deny_operation(scanner.account.clients.tagging, "GetResources")
    undo = list[Callable[[], None]]()

    def begin_to_throttle(**_: Any) -> None:
        undo.append(throttle(scanner))

    events = scanner.account.clients.tagging.meta.events
    events.register_first("before-parameter-build.*.GetResources", begin_to_throttle)
    with pytest.raises(FactsUnavailable):
        scanner.scan([DLQ_RETENTION_TOO_SHORT])
    events.unregister("before-parameter-build.*.GetResources", begin_to_throttle)
    for stop in (let_in, *undo):
        stop()
    scanner.account.later(minutes=10)
    assert scanner.scan([DLQ_RETENTION_TOO_SHORT]) is None, "its claim still runs"
    scanner.account.later(minutes=6)
    scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    assert scanner.list_announced_faults() == [(dlq_arn, "dlq_retention_too_short")]


def test_scan_with_a_busy_case_store_skips_a_dlq_that_mendq_made_and_scans_other_queues(
    scanner: Scanner,
) -> None:
    """Only the case store knows that Mendq made the DLQ, which has no tag of its own."""
    source, dlq, _ = make_queue_with_attached_dlq(scanner, "payments")
    faulty_dlq = make_faulty_dlq(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    available = throttle(scanner, "attribute#DeadLetterQueue")
    done = scanner.run_due_scan()
    orders = faulty_dlq.removesuffix("-dlq")
    assert {arn: type(error) for arn, error in done.error_by_target.items()} == {
        orders: CaseStoreUnavailable,
        source: CaseStoreUnavailable,
    }
    assert count_faults(done) == 2, "an alarm hears of it"
    assert done.queues_scanned == 3, "orders, orders-dlq and payments"
    assert scanner.list_announced_faults() == [(faulty_dlq, "dlq_retention_too_short")]
    available()
    start_next_hour(scanner.account)
    done = scanner.run_due_scan()
    assert done.error_by_target == {}
    assert (dlq, ARRIVING) in scanner.list_announced_faults(), "the next scan finds the messages"
