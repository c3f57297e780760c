"""The lifetime of each kind of item in the case store. Mendq silently forgets an item that expires.

DynamoDB deletes an item within days of its `expires_at`, in seconds since 1970.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from mendq.cases.aws_health import HealthEvents, read_health
from mendq.cases.pins import Pins
from mendq.cases.seen_moves import SeenMoves
from mendq.cases.transactions import Claim
from mendq.model.evidence import Sighting
from mendq.model.mode import Mode
from mendq.model.policy import Pin, digest_of_policy
from mendq.probe.probe import Probe
from mendq.probe.send import ProbeRecord
from mendq.redrive.store import RedriveStore
from mendq.scan.store import ScanStore
from tests.account.account import ACCOUNT, EXPIRED, REGION, Account, make_settings
from tests.heal.health_events import make_health_event
from tests.heal.operators import fail_calls, load_newest_case, make_context
from tests.scan.scanner import Scanner

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
SYMPTOM = "visibility_timeout_too_short"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# Lifetimes by the kind of partition and the first word of the sort key.
LIFETIMES: Mapping[tuple[str, str], timedelta | None] = {
    # A case's newest transition, Mendq's writes to a queue and the snapshot before them. A person
    # may roll a change back, or ask what happened, as long as the queue exists.
    ("queue", "case"): None,
    ("queue", "attribute"): None,
    ("queue", "snapshot"): None,
    ("queue", "page"): None,
    # Decisions of a person. They are valid until a person changes them.
    ("queue", "pin"): None,
    ("queue", "approved"): None,
    ("account", "freeze"): None,
    # One item each, changed in place.
    ("account", "scan"): None,
    ("account", "probe"): None,
    ("queue", "redrive"): None,
    # Each item holds a sixteenth of the account's queues, without deleted ones.
    ("account", "baselines"): None,
    # History is shown for a year.
    ("case", "transition"): timedelta(days=400),
    ("baselines", "baselines"): timedelta(days=400),
    # Failed calls and the spread of a symptom count for an hour.
    ("queue", "evidence"): 2 * HOUR,
    ("account", "spread"): 2 * HOUR,
    ("queue", "changes"): DAY,
    # Budgets, beyond the minute, hour or day that they count.
    ("account", "writes"): HOUR,
    ("account", "pages"): 2 * HOUR,
    ("account", "metrics"): 2 * DAY,
    ("queue", "measured"): HOUR,
    # A configuration fault is reported again after a month.
    ("account", "said_of_configuration"): 30 * DAY,
    ("account", "moves"): DAY,
    ("account", "aws_health"): 7 * DAY,
}


def find_kind(key: tuple[str, str]) -> tuple[str, str]:
    partition, sort = key
    if partition.startswith("case#"):
        return "case", "transition"
    if partition.startswith("baselines#"):
        return "baselines", "baselines"
    return "account" if partition == "account" else "queue", sort.partition("#")[0]


def find_lifetimes(account: Account) -> dict[tuple[str, str], set[timedelta | None]]:
    """Return the remaining lifetimes of the items in the case store, by kind of item."""
    lifetimes: dict[tuple[str, str], set[timedelta | None]] = {}
    for key, item in account.case_store_items().items():
        lasts = None
        if "expires_at" in item:
            seconds = int(item["expires_at"]["N"])
            lasts = datetime.fromtimestamp(seconds, account.now.tzinfo) - account.now
        lifetimes.setdefault(find_kind(key), set()).add(lasts)
    return lifetimes


def write_fix_items(account: Account) -> None:
    """Let calls of one queue fail until it is fixed, and one call of another queue."""
    account.settings = make_settings(autonomy={SYMPTOM: Mode.PROPOSE})
    fail_calls(account, account.queue(VisibilityTimeout="30"))
    account.settings = make_settings()
    fail_calls(account, account.queue("others.fifo", VisibilityTimeout="30"), "other")
    account.heal(account.late_deletes(account.queue("one.fifo", VisibilityTimeout="30"), "once"))


def write_evidence_items(account: Account) -> None:
    context = make_context(account)
    sighting = Sighting.from_scan(account.now)
    store = context.case_store
    store.store_evidence(
        QUEUE, SYMPTOM, sightings_to_add=[sighting], sightings_to_drop=[], now=account.now
    )
    store.note_spread([QUEUE], SYMPTOM, account.now)
    store.note_change(QUEUE, SYMPTOM, account.now, account.now)


def write_scan_items(account: Account) -> None:
    store = ScanStore(account.clients.dynamodb, account.settings.case_table, "scan-1")
    stretch = store.claim_stretch(account.now)
    assert stretch is not None
    assert store.spend_metrics(3, 10, account.now)
    store.note_spent_metrics(3, account.now - DAY)
    assert store.admit_faults(["a fault of orders"], account.now)
    store.store_baseline_notes("7", {"orders": ["digest"]})
    store.end_stretch(stretch, "orders", is_round_done=True)
    context = make_context(account)
    context.baselines.put(QUEUE, {"VisibilityTimeout": "30"}, account.now)
    context.open_store(SeenMoves).note_destinations([QUEUE], account.now)


def write_items_by_people(account: Account) -> None:
    account.freeze()
    pins = make_context(account).open_store(Pins)
    then = account.now - DAY
    assert pins.put(Pin(QUEUE, "{}", digest_of_policy("{}"), 1, account.now, "ada", then, then))
    pins.approve_source(QUEUE, f"{QUEUE}-source")


def write_other_items(account: Account) -> None:
    context = make_context(account)
    assert context.open_store(RedriveStore).claim(QUEUE, "redrive-1", account.now) is not None
    assert context.open_store(ProbeRecord).store_sent_probe(Probe(account.now, account.now))
    event = read_health(make_health_event(account), ACCOUNT, REGION)
    assert event is not None
    context.open_store(HealthEvents).note_event(event, account.now)


WRITERS: list[Callable[[Account], None]] = [
    write_fix_items,
    write_evidence_items,
    write_scan_items,
    write_items_by_people,
    write_other_items,
]


@pytest.mark.parametrize("write", WRITERS)
def test_case_store_items_of_each_kind_expire_after_their_listed_lifetime(
    account: Account, write: Callable[[Account], None]
) -> None:
    write(account)
    found = find_lifetimes(account)
    found.pop(("account", "metrics"), None)  # two days' items, below
    assert found == {kind: {LIFETIMES[kind]} for kind in found}


def test_daily_metrics_item_expires_two_to_three_days_after_its_day(account: Account) -> None:
    write_scan_items(account)
    table = account.case_store_items()
    days = {sort: item for (_, sort), item in table.items() if sort.startswith("metrics#")}
    assert len(days) == 2
    for sort, item in days.items():
        noted_on = datetime.fromisoformat(sort.partition("#")[2]).replace(tzinfo=account.now.tzinfo)
        assert int(item["expires_at"]["N"]) >= (noted_on + 2 * DAY).timestamp()
        assert int(item["expires_at"]["N"]) <= (noted_on + 3 * DAY).timestamp()


def test_lifetime_tests_write_every_kind_of_case_store_item(account: Account) -> None:
    written = set[tuple[str, str]]()
    for write in WRITERS:
        write(account)
        written.update(find_lifetimes(account))
    assert written | {("queue", "measured")} == LIFETIMES.keys()


def test_measurement_item_of_a_queue_expires_after_an_hour(scanner: Scanner) -> None:
    """Failed extensions make Mendq measure the queue, which is billed. Any caller can make calls
    fail.
    """
    account = scanner.account
    queue = account.queue("orders")
    account.tag(queue, **{"mendq:max-processing-seconds": "40"})
    account.later(hours=7)
    gone = EXPIRED.replace(
        "The receipt handle has expired.",
        "Message does not exist or is not available for visibility timeout change.",
    )
    late = {"eventName": "ChangeMessageVisibility", "errorMessage": gone}
    account.heal(account.late_deletes(queue, "1", "2", "3", **late))
    assert find_lifetimes(account)["queue", "measured"] == {LIFETIMES["queue", "measured"]}


def test_claim_and_release_leave_snapshot_and_attribute_record_without_expiry(
    account: Account,
) -> None:
    """A rollback needs the snapshot and the attribute's record at any later time."""
    fail_calls(account, account.queue(VisibilityTimeout="30"))
    before = find_lifetimes(account)
    assert before["queue", "snapshot"] == before["queue", "attribute"] == {None}
    case = load_newest_case(account)
    context = make_context(account)
    view = context.case_store.look(case.queue_arn, SYMPTOM, ("VisibilityTimeout",))
    claim = Claim(intent=case, owner="another run", view=view)
    assert context.case_store.claim(claim, {}, writes_per_minute=100) is None
    assert find_lifetimes(account) == before
    context.case_store.release(case, "another run", view)
    kept: dict[str, Any] = account.attribute_item(case.queue_arn)
    assert kept
    assert "expires_at" not in kept


def test_repeated_write_restarts_the_lifetime_of_a_case_store_item(account: Account) -> None:
    write_evidence_items(account)
    account.later(minutes=50)
    write_evidence_items(account)
    found = find_lifetimes(account)
    assert found
    assert found == {kind: {LIFETIMES[kind]} for kind in found}
