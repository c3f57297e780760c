"""Test `Once`: the work of a key is done once, even if runs crash, are slow or overlap."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.consumer import idempotent
from mendq.consumer.idempotent import REMEMBERED_SECONDS, Busy, ClaimLost, Once
from tests.consumer.orders_table import (
    CLAIM,
    CLAIM_OF_A_NEW_KEY,
    DONE,
    GIVE_BACK,
    RENEWAL,
    TABLE,
    LostAnswers,
    OrdersTable,
    ProcessKilled,
    open_orders_table,
    wait_until,
)

KEY = "order-1"
# Long enough that no renewal comes while a test runs.
CLAIM_SECONDS = 600
HOUR = 3_600.0


@pytest.fixture
def table() -> Iterator[OrdersTable]:
    with open_orders_table() as made:
        yield made


def make_once(table: OrdersTable, claim_seconds: int = CLAIM_SECONDS, **config: Any) -> Once:
    return Once(table.client(**config), TABLE, claim_seconds)


def die() -> None:
    raise ProcessKilled


def fail() -> None:
    raise ZeroDivisionError


def test_once_does_the_work_of_each_key_once(table: OrdersTable) -> None:
    assert make_once(table).run(KEY, table.work())
    assert not make_once(table).run(KEY, table.work())
    assert make_once(table).run("order-2", table.work("order-2"))
    assert table.done == [KEY, "order-2"]


def test_once_remembers_a_done_key_for_its_remembered_seconds(table: OrdersTable) -> None:
    make_once(table).run(KEY, table.work())
    assert int(table.item()["expires_at"]["N"]) == table.now + REMEMBERED_SECONDS


def test_once_raises_the_error_of_failed_work_and_frees_the_key_at_once(table: OrdersTable) -> None:
    with pytest.raises(ZeroDivisionError):
        make_once(table).run(KEY, fail)
    assert "held_by" not in table.item()
    assert make_once(table).run(KEY, table.work())


def test_claim_of_a_crashed_run_blocks_the_key_until_claim_seconds_are_over(
    table: OrdersTable,
) -> None:
    with pytest.raises(ProcessKilled):
        make_once(table).run(KEY, die)
    for seconds in (0, CLAIM_SECONDS):
        table.now += seconds
        with pytest.raises(Busy):
            make_once(table).run(KEY, table.work())
        assert table.done == []
    table.now += 1
    assert make_once(table).run(KEY, table.work())
    assert table.done == [KEY]


def test_claim_is_renewed_while_slow_work_runs(table: OrdersTable) -> None:

    def work_slowly() -> None:
        for _ in range(4):
            table.now += 1
            wait_until(lambda: table.held_until() == table.now + 1)
            with pytest.raises(Busy):
                make_once(table).run(KEY, table.work("another"))
        table.done.append(KEY)

    assert make_once(table, claim_seconds=1).run(KEY, work_slowly)
    assert not make_once(table).run(KEY, table.work("another"))
    assert table.done == [KEY]


@pytest.mark.parametrize("ends", [fail, die])
def test_claim_renewal_thread_ends_with_the_work_even_if_the_work_fails(
    table: OrdersTable, ends: Any
) -> None:
    with pytest.raises((ZeroDivisionError, ProcessKilled)):
        make_once(table, claim_seconds=1).run(KEY, ends)
    assert "claim" not in {thread.name for thread in threading.enumerate()}


def _outlast_claim(table: OrdersTable, another: Any) -> None:
    """Let the claim run out, and then let another run do `another`."""
    table.now += CLAIM_SECONDS + 1
    another()


def test_run_that_lost_its_claim_raises_claim_lost_and_keeps_the_other_runs_record(
    table: OrdersTable,
) -> None:
    def slow() -> None:
        _outlast_claim(table, lambda: make_once(table).run(KEY, table.work("another")))

    with pytest.raises(ClaimLost):
        make_once(table).run(KEY, slow)
    assert not make_once(table).run(KEY, table.work())
    assert table.done == ["another"]


def test_work_that_ends_after_its_claim_was_lost_is_recorded_as_done(table: OrdersTable) -> None:
    """Another run took the claim and crashed. The work is done nevertheless."""

    def another() -> None:
        with pytest.raises(ProcessKilled):
            make_once(table).run(KEY, die)

    def slow() -> None:
        _outlast_claim(table, another)
        table.done.append(KEY)

    with pytest.raises(ClaimLost):
        make_once(table).run(KEY, slow)
    table.now += CLAIM_SECONDS + 1
    assert not make_once(table).run(KEY, table.work())
    assert table.done == [KEY]


def test_work_that_fails_after_its_claim_was_lost_leaves_the_new_claim_alone(
    table: OrdersTable,
) -> None:
    def another() -> None:
        with pytest.raises(ProcessKilled):
            make_once(table).run(KEY, die)

    def slow() -> None:
        _outlast_claim(table, another)
        fail()

    with pytest.raises(ZeroDivisionError):
        make_once(table).run(KEY, slow)
    with pytest.raises(Busy):
        make_once(table).run(KEY, table.work())


def test_work_that_outlasts_its_claim_is_recorded_as_done_if_no_other_run_took_the_claim(
    table: OrdersTable,
) -> None:
    def slow() -> None:
        table.now += 10 * CLAIM_SECONDS
        table.done.append(KEY)

    assert make_once(table).run(KEY, slow)
    assert not make_once(table).run(KEY, table.work())
    assert table.done == [KEY]


def test_lost_claim_is_logged_while_the_work_still_runs(
    table: OrdersTable, caplog: pytest.LogCaptureFixture
) -> None:
    def slow() -> None:
        # A renewal may be in progress. Only a claim that is over can be taken.
        def take() -> bool:
            table.now += 100
            try:
                return make_once(table).run(KEY, table.work("another"))
            except Busy:
                return False

        wait_until(take)
        wait_until(lambda: "lost the claim on order-1" in caplog.text)

    with caplog.at_level(logging.WARNING), pytest.raises(ClaimLost):
        make_once(table, claim_seconds=1).run(KEY, slow)
    assert table.done == ["another"]


def test_claim_renewed_between_another_runs_read_and_write_is_not_taken_over(
    table: OrdersTable,
) -> None:
    with pytest.raises(ProcessKilled):
        make_once(table).run(KEY, die)
    owner = table.item()["held_by"]
    table.now += CLAIM_SECONDS + 1
    taker = make_once(table)

    def renew(**_: Any) -> None:
        taker.dynamodb.meta.events.unregister("before-call.dynamodb.UpdateItem", renew)
        table.client().update_item(
            TableName=TABLE,
            Key={"key": {"S": KEY}},
            UpdateExpression="SET held_until = :until",
            ConditionExpression="held_by = :owner",
            ExpressionAttributeValues={":until": {"N": f"{table.now:.0f}"}, ":owner": owner},
        )

    taker.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", renew)
    with pytest.raises(Busy):
        taker.run(KEY, table.work())
    assert table.done == []
    assert table.item()["held_by"] == owner


def test_two_runs_that_both_read_before_claiming_do_the_work_once(table: OrdersTable) -> None:
    first = make_once(table)
    second = make_once(table)

    def overtake(**_: Any) -> None:
        first.dynamodb.meta.events.unregister("before-call.dynamodb.UpdateItem", overtake)
        assert second.run(KEY, table.work("second"))

    first.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", overtake)
    assert not first.run(KEY, table.work("first")), "it was done by then"
    assert table.done == ["second"]


ONE_ATTEMPT = {"retries": {"total_max_attempts": 1}}


@pytest.mark.parametrize("config", [{}, ONE_ATTEMPT], ids=["SDK retries", "no retries"])
@pytest.mark.parametrize("write", [CLAIM_OF_A_NEW_KEY, DONE])
def test_lost_dynamodb_answer_to_claim_or_done_neither_repeats_nor_refuses_the_work(
    table: OrdersTable, config: dict[str, Any], write: str
) -> None:
    runner = make_once(table, claim_seconds=1, **config)
    faults = LostAnswers(runner.dynamodb, write)
    assert runner.run(KEY, table.work())
    assert faults.lost == 1
    assert not make_once(table).run(KEY, table.work())
    assert table.done == [KEY]


@pytest.mark.parametrize("config", [{}, ONE_ATTEMPT], ids=["SDK retries", "no retries"])
def test_lost_dynamodb_answer_to_a_claim_takeover_does_not_refuse_the_work(
    table: OrdersTable, config: dict[str, Any]
) -> None:
    with pytest.raises(ProcessKilled):
        make_once(table).run(KEY, die)
    table.now += CLAIM_SECONDS + 1
    runner = make_once(table, **config)
    faults = LostAnswers(runner.dynamodb, CLAIM)
    assert runner.run(KEY, table.work())
    assert faults.lost == 1
    assert table.done == [KEY]


@pytest.mark.parametrize("config", [{}, ONE_ATTEMPT], ids=["SDK retries", "no retries"])
def test_lost_dynamodb_answers_to_claim_renewals_do_not_end_the_claim(
    table: OrdersTable, config: dict[str, Any]
) -> None:
    runner = make_once(table, claim_seconds=1, **config)
    faults = LostAnswers(runner.dynamodb, RENEWAL, times=2)

    def slow() -> None:
        wait_until(lambda: faults.lost == 2)
        table.now += 1
        wait_until(lambda: table.held_until() == table.now + 1)
        table.done.append(KEY)

    assert runner.run(KEY, slow)
    assert table.done == [KEY]


@pytest.mark.parametrize("config", [{}, ONE_ATTEMPT], ids=["SDK retries", "no retries"])
def test_lost_dynamodb_answer_to_the_claims_release_does_not_hide_the_error_of_the_work(
    table: OrdersTable, config: dict[str, Any]
) -> None:
    runner = make_once(table, **config)
    faults = LostAnswers(runner.dynamodb, GIVE_BACK)
    with pytest.raises(ZeroDivisionError):
        runner.run(KEY, fail)
    assert faults.lost == 1
    assert make_once(table).run(KEY, table.work())


def test_run_raises_if_the_done_record_cannot_be_written(table: OrdersTable) -> None:
    runner = make_once(table, claim_seconds=1, **ONE_ATTEMPT)

    def refuse(params: Any, **_: Any) -> None:
        if DONE in str(params):
            raise ConnectionRefusedError

    runner.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", refuse)
    with pytest.raises(ConnectionRefusedError):
        runner.run(KEY, table.work())


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("strike_at", range(1, 4))
def test_run_after_one_killed_at_any_dynamodb_call_does_the_work_unless_it_was_recorded_as_done(
    table: OrdersTable, strike_at: int, kind: str
) -> None:
    """The work is done twice only if the process dies between the work and its record."""
    runner = make_once(table)
    calls: list[str] = []

    def strike(event_name: str, **_: Any) -> None:
        calls.append(event_name)
        if len(calls) == strike_at:
            raise ProcessKilled

    event = {"before": "before-call", "after": "after-call"}[kind]
    runner.dynamodb.meta.events.register_last(f"{event}.dynamodb", strike)
    with pytest.raises(ProcessKilled):
        runner.run(KEY, table.work())
    table.now += CLAIM_SECONDS + 1
    is_unrecorded = (strike_at, kind) == (3, "before")
    is_done = strike_at == 3 and not is_unrecorded
    assert make_once(table).run(KEY, table.work()) is not is_done
    assert table.done == [KEY] * (2 if is_unrecorded else 1)


@pytest.mark.parametrize("second_off", [-5 * HOUR, 0, 5 * HOUR])
@pytest.mark.parametrize("first_off", [-5 * HOUR, 0, 5 * HOUR])
def test_claims_do_not_depend_on_the_local_clocks_of_consumers(
    table: OrdersTable, monkeypatch: pytest.MonkeyPatch, first_off: float, second_off: float
) -> None:
    right = time.time

    def set_clock(seconds_off: float) -> None:
        monkeypatch.setattr(time, "time", lambda: right() + seconds_off)

    set_clock(first_off)
    with pytest.raises(ProcessKilled):
        make_once(table).run(KEY, die)
    set_clock(second_off)
    with pytest.raises(Busy):
        make_once(table).run(KEY, table.work())
    table.now += CLAIM_SECONDS + 1
    assert make_once(table).run(KEY, table.work())
    set_clock(first_off)
    assert not make_once(table).run(KEY, table.work())
    assert table.done == [KEY]
    assert int(table.item()["expires_at"]["N"]) == table.now + REMEMBERED_SECONDS


STEPS = st.tuples(
    st.sampled_from([0, 1, CLAIM_SECONDS - 1, CLAIM_SECONDS, CLAIM_SECONDS + 1, HOUR]),
    st.sampled_from(["does", "fails", "dies"]),
    st.integers(1, 3),
)


@settings(max_examples=25)
@given(st.lists(STEPS, max_size=12))
def test_any_sequence_of_runs_does_a_keys_work_at_most_once_and_is_busy_only_while_a_claim_lasts(
    steps: list[Any],
) -> None:
    """A run is refused exactly while the claim of a crashed run lasts."""
    with open_orders_table() as table:
        runner = make_once(table)
        free_at: dict[str, float] = {}
        for seconds, outcome, number in steps:
            table.now += seconds
            key = f"order-{number}"
            work = {"does": table.work(key), "fails": fail, "dies": die}[outcome]
            was_done = key in table.done
            try:
                result = str(runner.run(key, work))
            except (Busy, ProcessKilled, ZeroDivisionError) as raised:
                result = type(raised).__name__
            if was_done:
                expected = "False"
            elif table.now < free_at.get(key, 0):
                expected = "Busy"
            else:
                raised_by = {"does": "True", "fails": "ZeroDivisionError", "dies": "ProcessKilled"}
                expected = raised_by[outcome]
                free_at[key] = table.now + (CLAIM_SECONDS + 1 if outcome == "dies" else 0)
            assert result == expected
        assert len(table.done) == len(set(table.done))


def test_two_runs_that_both_did_the_work_after_a_standstill_report_it_and_no_third_run_does_it(
    table: OrdersTable, caplog: pytest.LogCaptureFixture
) -> None:
    """This case cannot be prevented. Both runs report it, and the work is not done a third time."""
    second_works = Event()
    first_is_done = Event()

    def work_second() -> None:
        second_works.set()
        assert first_is_done.wait(30)
        table.done.append("second")

    results: list[bool] = []
    second = Thread(target=lambda: results.append(make_once(table).run(KEY, work_second)))

    def work_first() -> None:
        table.now += CLAIM_SECONDS + 1
        second.start()
        assert second_works.wait(30)
        table.done.append("first")

    with caplog.at_level(logging.WARNING):
        with pytest.raises(ClaimLost):
            make_once(table).run(KEY, work_first)
        first_is_done.set()
        second.join(30)
    assert results == [True]
    assert "another run has done the work for order-1 as well" in caplog.text
    table.now += 10 * CLAIM_SECONDS
    assert not make_once(table).run(KEY, table.work())
    assert table.done == ["first", "second"]


@pytest.mark.parametrize("claim_seconds", [0, -1, 0.5, 1.5, float("nan"), float("inf")])
def test_once_refuses_claim_seconds_that_are_no_positive_whole_number(
    table: OrdersTable, claim_seconds: Any
) -> None:
    with pytest.raises(ValueError, match=f"claim_seconds is {claim_seconds}"):
        Once(table.client(), TABLE, claim_seconds=claim_seconds)


def test_stored_claim_with_fractional_seconds_is_taken_over_after_its_end(
    table: OrdersTable,
) -> None:
    """An earlier version stored such claims. The order must not fail until it lands in the DLQ."""
    item = {"key": {"S": KEY}, "held_by": {"S": "x"}, "held_until": {"N": f"{table.now + 1.5}"}}
    table.client().put_item(TableName=TABLE, Item=item)
    with pytest.raises(Busy):
        make_once(table).run(KEY, table.work())
    table.now += 2
    assert make_once(table).run(KEY, table.work())
    assert table.done == [KEY]


@pytest.mark.parametrize("late_seconds", [CLAIM_SECONDS + 1, 10 * CLAIM_SECONDS])
@pytest.mark.parametrize("is_answer_lost", [False, True])
def test_claim_that_took_long_to_store_is_renewed_before_the_work(
    table: OrdersTable, late_seconds: int, is_answer_lost: bool
) -> None:
    """A throttled call is sent again for many seconds: the claim must not be over by then."""
    slow = make_once(table, retries={"max_attempts": 0})
    delays = [late_seconds]

    def delay(**_: Any) -> None:
        if delays:
            table.now += delays.pop()

    slow.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", delay)
    if is_answer_lost:
        LostAnswers(slow.dynamodb, CLAIM_OF_A_NEW_KEY)

    def work() -> None:
        with pytest.raises(Busy):
            make_once(table).run(KEY, table.work("another"))
        table.done.append(KEY)

    assert slow.run(KEY, work)
    assert not delays
    assert table.done == [KEY]


def test_work_does_not_start_if_another_run_took_the_claim_while_storing_it_took_long(
    table: OrdersTable,
) -> None:
    slow = make_once(table)
    calls: list[str] = []

    def interfere(**_: Any) -> None:
        calls.append("UpdateItem")
        if len(calls) == 1:
            table.now += CLAIM_SECONDS + 1
        elif len(calls) == 2:
            assert make_once(table).run(KEY, table.work("another"))

    slow.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", interfere)
    with pytest.raises(Busy):
        slow.run(KEY, table.work())
    assert table.done == ["another"]


def test_run_is_busy_does_no_work_and_frees_the_key_if_every_write_of_its_claim_takes_too_long(
    table: OrdersTable,
) -> None:
    slow = make_once(table)

    def delay(**_: Any) -> None:
        table.now += CLAIM_SECONDS

    slow.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", delay)
    with pytest.raises(Busy):
        slow.run(KEY, table.work())
    assert table.done == []
    assert make_once(table).run(KEY, table.work()), "the claim was given back"


def test_renewal_answer_without_a_date_does_not_end_the_claim(table: OrdersTable) -> None:
    slow = make_once(table, claim_seconds=1)
    reads: list[str] = []

    def remove_date_once(parsed: Any, event_name: str, **_: Any) -> None:
        if event_name.endswith("GetItem"):
            reads.append("GetItem")
            if len(reads) == 2:
                del parsed["ResponseMetadata"]["HTTPHeaders"]["date"]

    # A handler of all calls comes after the one of the table, which sets the date.
    slow.dynamodb.meta.events.register_last("after-call.dynamodb", remove_date_once)

    def work_slowly() -> None:
        wait_until(lambda: len(reads) >= 2)
        table.now += 1
        wait_until(lambda: table.held_until() == table.now + 1)
        with pytest.raises(Busy):
            make_once(table).run(KEY, table.work("another"))
        table.done.append(KEY)

    assert slow.run(KEY, work_slowly)
    assert table.done == [KEY]


@pytest.mark.parametrize(
    "date_header", [None, "", "garbage", f"Mon, 30 Nov {'9' * 30} 12:00:00 GMT", "0 0 0"]
)
def test_run_does_no_work_if_dynamodbs_date_header_is_missing_or_no_date(
    table: OrdersTable, date_header: str | None
) -> None:
    runner = make_once(table)

    def replace_date(parsed: Any, **_: Any) -> None:
        headers = parsed["ResponseMetadata"]["HTTPHeaders"]
        del headers["date"]
        if date_header is not None:
            headers["date"] = date_header

    # A handler of all calls comes after the one of the table, which sets the date.
    runner.dynamodb.meta.events.register_last("after-call.dynamodb", replace_date)
    with pytest.raises(RuntimeError, match="Date header"):
        runner.run(KEY, table.work())
    assert table.done == []


def test_date_header_without_a_time_zone_counts_as_utc_on_a_machine_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        metadata: Any = {"HTTPHeaders": {"date": "Mon, 30 Nov 2026 12:00:00 -0000"}}
        assert idempotent._read_answer_time(metadata) == 1_796_040_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_renewal_thread_continues_after_an_error_that_would_end_a_thread(
    table: OrdersTable,
) -> None:
    slow = make_once(table, claim_seconds=1)
    reads: list[str] = []
    is_read_again = Event()

    def cancel_once(**_: Any) -> None:
        reads.append("GetItem")
        if len(reads) == 2:
            raise asyncio.CancelledError
        if len(reads) == 3:
            is_read_again.set()

    slow.dynamodb.meta.events.register("before-call.dynamodb.GetItem", cancel_once)

    def work_slowly() -> None:
        assert is_read_again.wait(20), "the thread has ended"
        table.done.append(KEY)

    assert slow.run(KEY, work_slowly)
    assert table.done == [KEY]


@given(
    claim_seconds=st.integers(1, 1_000),
    visibility_seconds=st.integers(1, 1_000),
    max_receive_count=st.integers(1, 20),
    holds_busy=st.booleans(),
)
def test_claim_longer_than_the_redeliveries_is_refused_with_suggestions_that_work(
    claim_seconds: int, visibility_seconds: int, max_receive_count: int, holds_busy: bool
) -> None:
    def refusal(claim_seconds: int, max_receive_count: int) -> str:
        try:
            Once(None, TABLE, claim_seconds).require_redeliveries(  # type: ignore[arg-type]
                visibility_seconds=visibility_seconds,
                max_receive_count=max_receive_count,
                holds_busy=holds_busy,
            )
        except ValueError as error:
            return str(error)
        return ""

    said = refusal(claim_seconds, max_receive_count)
    redeliveries = max_receive_count - (1 if holds_busy else 2)
    assert bool(said) is (claim_seconds >= visibility_seconds * redeliveries)
    if not said:
        return
    assert f"claim_seconds of {claim_seconds} " in said
    assert f"maxReceiveCount of {max_receive_count} " in said
    receives = re.search(r"set maxReceiveCount to at least (\d+)", said)
    assert receives is not None
    assert not refusal(claim_seconds, int(receives[1]))
    assert refusal(claim_seconds, int(receives[1]) - 1)
    if seconds := re.search(r"set claim_seconds to less than (\d+)", said):
        assert not refusal(int(seconds[1]) - 1, max_receive_count)


def test_default_claim_seconds_fit_a_queue_with_the_default_visibility_timeout() -> None:
    for max_receive_count, holds_busy in ((2, True), (3, False), (5, False)):
        Once(None, TABLE).require_redeliveries(  # type: ignore[arg-type]
            visibility_seconds=30, max_receive_count=max_receive_count, holds_busy=holds_busy
        )
