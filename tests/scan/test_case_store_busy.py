"""A scan while the case store is throttled: what it says, and what it leaves undone.

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
from tests.scan.own_changes import ARRIVING, arrive, attached
from tests.scan.scanning import Scanning, an_hour_on, faulty_queue, refusing

# Seen on every queue of which CloudWatch knows something.
MEASURED = NotifiedSymptom(
    name="measured",
    sentence="It was measured.",
    plan_in_words="Page.",
    aws_page="",
    examples=tuple,
    plan=lambda facts, _limits: Escalate("measured", facts.found),
    detection=Detection(
        lambda facts: DetectedFault("it was measured") if facts.measurement else None,
        frozenset({Need.QUEUE, Need.MEASUREMENTS}),
    ),
)


def throttle(scanned: Scanning, *sort_keys: str) -> Callable[[], None]:
    """Have DynamoDB throttle what is about such a sort key, or everything; the answer ends it."""

    def refuse(params: dict[str, Any], **_: Any) -> None:
        asked = str(params)
        if not sort_keys or any(f"'S': '{each}" in asked for each in sort_keys):
            busy: Any = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            raise ClientError(busy, "UpdateItem")

    events = scanned.account.clients.dynamodb.meta.events
    events.register_first("before-parameter-build.dynamodb", refuse)
    return lambda: events.unregister("before-parameter-build.dynamodb", refuse)


def items(scanned: Scanning) -> dict[tuple[str, str], Any]:
    return scanned.account.case_store_items()


def has_findings(scanned: Scanning) -> bool:
    found = scanned.account.clients.s3.list_objects_v2(Bucket="cases", Prefix="findings/")
    return any(each["Key"].endswith(".json") for each in found.get("Contents", []))


def test_scan_that_cannot_claim_its_hour_looks_at_nothing(scanned: Scanning) -> None:
    dlq_arn = faulty_queue(scanned)
    before, looked = items(scanned), list[str]()
    scanned.account.clients.sqs.meta.events.register(
        "before-call.sqs", lambda model, **_: looked.append(model.name)
    )
    available = throttle(scanned)
    with pytest.raises(CaseStoreUnavailable, match="Rate exceeded"):
        scanned.scan([DLQ_RETENTION_TOO_SHORT])
    assert (looked, scanned.announced, has_findings(scanned)) == ([], [], False)
    available()
    assert items(scanned) == before
    scanned.done([DLQ_RETENTION_TOO_SHORT])
    assert scanned.named() == [(dlq_arn, "dlq_retention_too_short")]


@pytest.mark.parametrize("step", ["said_of_configuration", "spread#", "metrics#"])
def test_scan_that_cannot_note_what_it_found_tells_nobody_and_begins_again(
    scanned: Scanning, step: str
) -> None:
    """Else a finding that nobody counts escapes the limits on what people are told, and on cost."""
    dlq_arn = faulty_queue(scanned)
    is_measured = step != "said_of_configuration"
    symptoms = [MEASURED if is_measured else DLQ_RETENTION_TOO_SHORT]
    scanned.count(dlq_arn, scanned.account.now - timedelta(minutes=30), sent=1)
    billed = list[str]()
    scanned.account.clients.cloudwatch.meta.events.register(
        "before-call.cloudwatch.GetMetricData", lambda model, **_: billed.append(model.name)
    )
    available = throttle(scanned, step)
    with pytest.raises(CaseStoreUnavailable, match="Rate exceeded"):
        scanned.scan(symptoms)
    assert (scanned.announced, has_findings(scanned)) == ([], False)
    if step == "metrics#":
        assert billed == [], "what is not counted is not asked"
    available()
    scanned.account.later(minutes=10)
    done = scanned.done(symptoms)
    assert done.queues_scanned == 2, "the next scan begins with the same queues"
    assert done.findings
    assert len(scanned.named()) == 1


@pytest.mark.parametrize("step", ["baselines", "baselines#"])
def test_scan_that_cannot_keep_baselines_counts_one_failure_and_tells_all_it_found(
    scanned: Scanning, step: str
) -> None:
    dlq_arn = faulty_queue(scanned)
    available = throttle(scanned, step)
    done = scanned.done([DLQ_RETENTION_TOO_SHORT])
    assert {name: type(error) for name, error in done.error_by_target.items()} == {
        "baselines": CaseStoreUnavailable
    }
    assert count_faults(done) == 1, "an alarm hears of it"
    assert scanned.findings()["failed"] == 1
    assert scanned.named() == [(dlq_arn, "dlq_retention_too_short")]
    assert not [sort for _, sort in items(scanned) if sort.startswith("baselines#")]
    available()
    an_hour_on(scanned.account)
    assert scanned.done([DLQ_RETENTION_TOO_SHORT]).error_by_target == {}
    assert [sort for _, sort in items(scanned) if sort.startswith("baselines#")], "an hour later"


def test_scan_reports_why_it_failed_although_the_case_store_is_busy_at_its_end(
    scanned: Scanning,
) -> None:
    """Its claim then runs out by itself."""
    dlq_arn = faulty_queue(scanned)
    let_in = refusing(scanned.account.clients.tagging, "GetResources")
    undo = list[Callable[[], None]]()

    def begin_to_throttle(**_: Any) -> None:
        undo.append(throttle(scanned))

    events = scanned.account.clients.tagging.meta.events
    events.register_first("before-parameter-build.*.GetResources", begin_to_throttle)
    with pytest.raises(FactsUnavailable):
        scanned.scan([DLQ_RETENTION_TOO_SHORT])
    events.unregister("before-parameter-build.*.GetResources", begin_to_throttle)
    for each in (let_in, *undo):
        each()
    scanned.account.later(minutes=10)
    assert scanned.scan([DLQ_RETENTION_TOO_SHORT]) is None, "its claim still runs"
    scanned.account.later(minutes=6)
    scanned.done([DLQ_RETENTION_TOO_SHORT])
    assert scanned.named() == [(dlq_arn, "dlq_retention_too_short")]


def test_scan_leaves_out_made_dlq_and_scans_the_others_if_the_case_store_is_busy(
    scanned: Scanning,
) -> None:
    """Only the case store knows that Mendq made the DLQ, which has no tag of its own."""
    source, dlq, _ = attached(scanned, "payments")
    faulty_dlq = faulty_queue(scanned)
    arrive(scanned, dlq, 3)
    available = throttle(scanned, "attribute#DeadLetterQueue")
    done = scanned.done()
    orders = faulty_dlq.removesuffix("-dlq")
    assert {arn: type(error) for arn, error in done.error_by_target.items()} == {
        orders: CaseStoreUnavailable,
        source: CaseStoreUnavailable,
    }
    assert count_faults(done) == 2, "an alarm hears of it"
    assert done.queues_scanned == 3, "orders, orders-dlq and payments"
    assert scanned.named() == [(faulty_dlq, "dlq_retention_too_short")]
    available()
    an_hour_on(scanned.account)
    done = scanned.done()
    assert done.error_by_target == {}
    assert (dlq, ARRIVING) in scanned.named(), "the next scan finds the messages"
