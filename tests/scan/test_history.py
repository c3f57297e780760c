"""Test what the scan remembers about queues, and that this cannot be filled up."""

from __future__ import annotations

from datetime import timedelta
from itertools import count, islice
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.aws.errors import CaseStoreUnavailable
from mendq.model.traffic import QueueRecord, hour_number
from mendq.scan.store import shard_of
from tests.scan.scanner import Scanner, make_slow_symptom, start_next_hour

# With names of 80 characters, an item of 400 KB has room for about 3,300 records.
TOO_MANY = 3_600


def make_long_names(like: str, how_many: int) -> list[str]:
    """Return names of 80 characters that sort before `like` and are stored in its item."""
    names = (f"a{number}".ljust(80, "x") for number in count())
    return list(islice((name for name in names if shard_of(name) == shard_of(like)), how_many))


def test_full_history_keeps_the_records_of_listed_queues(scanner: Scanner) -> None:
    scan_store, now = scanner.context().scan_store, scanner.account.now
    record = QueueRecord(5, hour_number(now) - 1)
    scan_store.store_history({"orders": record}, {"orders"}, now)
    deleted_queues = dict.fromkeys(make_long_names("orders", TOO_MANY), record._replace(messages=0))
    scan_store.store_history(deleted_queues, {"orders"}, now)
    history = scan_store.read_history(now)
    assert history["orders"] == record
    assert 2_000 < len(history) < TOO_MANY


def test_full_history_keeps_the_records_of_the_latest_scans(scanner: Scanner) -> None:
    """Also if all these queues exist: the next scan treats the others as in a first scan.

    All records are stored at once, because moto adds the size of a replaced value to the item's.
    """
    scan_store, now = scanner.context().scan_store, scanner.account.now
    names = make_long_names("orders", TOO_MANY)
    hour = hour_number(now)
    records = dict.fromkeys(names, QueueRecord(0, hour - 2))
    records["orders"] = QueueRecord(5, hour)
    scan_store.store_history(records, None, now)
    assert scan_store.read_history(now)["orders"] == QueueRecord(5, hour)


@pytest.mark.parametrize(
    ("hours", "is_listed", "is_kept"),
    [(24, False, True), (25, False, False), (168, True, True), (169, True, False)],
)
def test_record_is_kept_for_a_week_or_for_a_day_if_the_queue_is_not_listed(
    scanner: Scanner, hours: int, *, is_listed: bool, is_kept: bool
) -> None:
    scan_store, now = scanner.context().scan_store, scanner.account.now
    name, other_name = make_long_names("orders", 2)
    listed_names = {name} if is_listed else set[str]()
    record = QueueRecord(0, hour_number(now))
    scan_store.store_history({name: record}, listed_names, now)
    later = now + timedelta(hours=hours)
    new_record = QueueRecord(0, hour_number(later))
    scan_store.store_history({other_name: new_record}, listed_names, later)
    assert (name in scan_store.read_history(later)) is is_kept


def test_scan_that_cannot_store_its_history_reports_that_and_ends_the_hour(
    scanner: Scanner,
) -> None:
    scanner.account.queue("orders")
    start_next_hour(scanner.account)

    def refuse(params: dict[str, Any], **_: Any) -> None:
        if "'history#" in str(params):
            too_large: Any = {"Error": {"Code": "ValidationException", "Message": "Item size"}}
            raise ClientError(too_large, "UpdateItem")

    events = scanner.account.clients.dynamodb.meta.events
    events.register_first("before-parameter-build.dynamodb.UpdateItem", refuse)
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    done = scanner.run_due_scan(symptoms)
    assert {name: type(error) for name, error in done.error_by_target.items()} == {
        "history": CaseStoreUnavailable
    }
    assert len(scanner.list_announced_faults()) == 1
    assert scanner.scan(symptoms) is None, "no run of this hour calls heal again"
