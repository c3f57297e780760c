"""A message that is not where the story says is a fault, and hasty consumers do no harm."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.demo.consumers.hasty import Hasty, NoAddress, Order
from local_account.demo.consumers.once import Busy
from local_account.demo.redrive import (
    LOWERED,
    ORDERS,
    Payments,
    consuming,
    lowered,
    orders,
    seconds_left,
    sentence,
    whereabouts,
    would_halt,
)
from local_account.demo.traffic import Caller
from mendq.model.limits import LOWEST_SOAK_FACTOR, Bounds
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage

POISON = {each["order_id"] for each in ORDERS if each["address"] is None}
GOOD = {each["order_id"] for each in ORDERS} - POISON
ONCE = dict.fromkeys(GOOD, 1)
NOW = datetime(2026, 11, 21, 21, tzinfo=UTC)
BEGUN = RedriveProgress.begun("case-1", RedriveQueues("d", "s"), size=5, now=NOW)


def test_every_message_is_somewhere() -> None:
    counts, faults = whereabouts(GOOD | {"new-001"}, POISON | {"none"}, (), ONCE)
    assert (len(ORDERS), len(POISON), faults) == (200, 20, [])
    expected = {"messages": 200, "processed": 180, "quarantined": 20, "left": 0, "lost": 0}
    assert counts == expected


@pytest.mark.parametrize(
    ("handled", "quarantined", "dead", "charged", "faults"),
    [
        (GOOD - {"order-003"}, POISON, (), ONCE, ["lost", "good and not handled"]),
        (GOOD, POISON - {"order-017"}, (), ONCE, ["lost", "poison and not in quarantine"]),
        (GOOD, POISON | {"order-003"}, (), ONCE, ["handled and in quarantine"]),
        (GOOD, POISON, {"order-017"}, ONCE, ["left in the DLQ"]),
        (GOOD, POISON, (), ONCE | {"order-000": 2}, ["not charged exactly once"]),
        (GOOD, POISON, (), ONCE | {"order-007": 1}, ["not charged exactly once"]),
        (GOOD, POISON, (), {k: 1 for k in GOOD if k[-1] != "0"}, ["not charged exactly once"]),
    ],
)
def test_what_is_elsewhere_is_named(
    handled: set[str], quarantined: set[str], dead: Any, charged: Any, faults: list[str]
) -> None:
    found = whereabouts(handled, quarantined, dead, charged)[1]
    assert [each.split(" messages ")[1].partition(":")[0] for each in found] == faults


def test_nobody_pays_for_an_order_without_an_address() -> None:
    payments = Payments()
    with pytest.raises(NoAddress):
        payments.charge(ORDERS[7])
    assert payments.at_least(1, ORDERS) == 0


def test_each_bound_that_is_lowered_has_a_line() -> None:
    shipped = asdict(Bounds())
    differ = {name for name, value in asdict(LOWERED).items() if value != shipped[name]}
    assert {each.partition(":")[0] for each in lowered()} == {f"redrive.{each}" for each in differ}
    assert "redrive.halt_share: 0.25 instead of 0.05" in lowered()


def test_the_soak_s_length_is_the_queue_s_own() -> None:
    """1.2 times as long as a poison message takes: only the minute below which none ends is."""
    assert LOWERED.soak_factor == LOWEST_SOAK_FACTOR
    soak = LOWERED.soak(receives=2, needed_seconds=3, delay_seconds=0)
    assert soak == timedelta(seconds=7.2)
    assert soak > timedelta(seconds=LOWERED.least_soak_seconds)


def test_a_tenth_that_is_poison_halts_as_shipped_and_passes_here() -> None:
    for moved in (25, 105, 200):
        assert Bounds().halts_at(moved) <= moved // 10 < LOWERED.halts_at(moved)
    said = [would_halt(*each) for each in ((0, 0), (5, 0), (25, 1), (105, 5), (25, 2))]
    assert said[:4] == ["", "", "", ""]
    assert "of 25 that went back 2 came back, and at 2 it stops" in said[4]
    assert "the story lets 25% pass" in said[4]


def _course(stage: Stage, **over: Any) -> RedriveProgress:
    names = {"number", "size", "moved_in_stage", "soak_ends_at"} & over.keys()
    current = {each.replace("moved_in_stage", "moved"): over.pop(each) for each in names}
    return replace(BEGUN, stage=stage, current=replace(BEGUN.current, **current), **over)


@pytest.mark.parametrize(
    ("course", "said"),
    [
        (_course(Stage.CANARY), "canary: up to 5 messages go back"),
        (
            _course(Stage.SOAK, moved=25, moved_in_stage=20, returned=2, number=1),
            "after ramp 1: 20 went back (25 in all, 2 came back); soak",
        ),
        (_course(Stage.RAMP, number=3, size=320), "ramp 3: up to 320 messages go back"),
        (_course(Stage.HALTED, because="the cause is back"), "halted: the cause is back"),
    ],
)
def test_a_stage_is_a_sentence(course: RedriveProgress, said: str) -> None:
    assert sentence(course) == said


def test_only_a_soak_is_waited_for() -> None:
    ends = NOW + timedelta(seconds=4.2)
    assert seconds_left(_course(Stage.SOAK, soak_ends_at=ends), NOW) == 4.2
    assert seconds_left(_course(Stage.SOAK, soak_ends_at=ends), NOW + timedelta(minutes=1)) == 0
    assert seconds_left(_course(Stage.RAMP, soak_ends_at=ends), NOW) == 0
    assert seconds_left(None, NOW) == 0


def test_consumers_go_on_for_as_long_as_the_block() -> None:
    rounds, before = threading.Semaphore(0), threading.active_count()
    with consuming(rounds.release, 3):
        assert all(rounds.acquire(timeout=5) for _ in range(9))
        assert threading.active_count() == before + 3
    assert threading.active_count() == before


LATE = ClientError(
    {"Error": {"Code": "MessageNotInflight", "Message": "The message is not in flight."}},
    "ChangeMessageVisibility",
)


@dataclass
class Sqs:
    """One batch; what became of it."""

    bodies: tuple[Order, ...]
    receives: int = 1
    is_late: bool = False
    asked: int = 0
    deleted: list[str] = field(default_factory=list)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        attributes = {"ApproximateReceiveCount": f"{self.receives}"}
        return {
            "Messages": [
                {"Body": json.dumps(each), "ReceiptHandle": f"{n}", "Attributes": attributes}
                for n, each in enumerate(self.bodies)
            ]
        }

    def change_message_visibility(self, **_: Any) -> None:
        self.asked += 1
        if self.is_late:
            raise LATE

    def delete_message_batch(self, *, Entries: list[dict[str, str]], **_: Any) -> None:  # noqa: N803
        self.deleted += [each["ReceiptHandle"] for each in Entries]


class Memory:
    """Remembers all it was told, but for what somebody else is at."""

    def __init__(self, busy: str = "") -> None:
        self.busy = busy

    def run(self, key: str, work: Callable[[], object]) -> bool:
        if key == self.busy:
            raise Busy(key)
        work()
        return True


UPDATES: tuple[Order, ...] = tuple({"update": n} for n in range(4))
TEN = orders(10, "order", with_poison=True)
IDS = [each["order_id"] for each in TEN]


@pytest.mark.parametrize(
    ("sqs", "busy", "charged", "deleted", "asked"),
    [
        pytest.param(Sqs((*TEN[:3], *UPDATES)), "", IDS[:3], 7, 1, id="in time"),
        pytest.param(Sqs(TEN[:3], is_late=True), "", [], 0, 1, id="too late: lets all go"),
        pytest.param(Sqs(TEN[:3], 2, is_late=True), "", IDS[:3], 3, 0, id="handed out before"),
        pytest.param(Sqs(UPDATES, is_late=True), "", [], 4, 0, id="updates take no time"),
        pytest.param(Sqs(TEN), "", IDS[:7], 0, 1, id="poison takes those behind it along"),
        pytest.param(Sqs(TEN[:3]), "order-001", IDS[:1], 0, 1, id="somebody else is at it"),
    ],
)
def test_a_hasty_consumer_charges_and_deletes_what_it_holds(
    sqs: Sqs, busy: str, charged: list[str], deleted: int, asked: int
) -> None:
    payments, heard = Payments(), list[str | None]()
    fakes: Any = (sqs, Memory(busy))
    Hasty(Caller(fakes[0], "url", heard.append), fakes[1], payments.charge, 0, 0).consume()
    assert sorted(payments.charged) == charged
    assert (len(sqs.deleted), sqs.asked) == (deleted, asked)
    late = "The message is not in flight." if sqs.is_late else None
    assert heard == [late] * asked
