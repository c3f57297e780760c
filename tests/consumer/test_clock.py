"""Test the clock that counts the time while the machine sleeps."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from mendq.consumer import VisibilityHeartbeat, clock
from mendq.consumer.clock import LargerStepClock, read_sleep_counting_clock
from tests.consumer.fake_sqs import FakeSqs


class TwoClocks:
    """A machine's clocks: one stands still while it sleeps, the other may be set."""

    def __init__(self) -> None:
        self.monotonic = 100.0
        self.wall = 1_000.0

    def make_clock(self) -> LargerStepClock:
        return LargerStepClock(lambda: self.monotonic, lambda: self.wall)

    def pass_time(self, seconds: float, *, is_asleep: bool = False) -> None:
        self.wall += seconds
        if not is_asleep:
            self.monotonic += seconds


def test_larger_step_clock_counts_the_time_of_sleep() -> None:
    clocks = TwoClocks()
    larger_step_clock = clocks.make_clock()
    began_at = larger_step_clock.read()
    clocks.pass_time(5)
    clocks.pass_time(3_600, is_asleep=True)
    assert larger_step_clock.read() - began_at == 3_605


def test_larger_step_clock_counts_on_if_the_wall_clock_is_set_back() -> None:
    clocks = TwoClocks()
    larger_step_clock = clocks.make_clock()
    began_at = larger_step_clock.read()
    clocks.wall -= 3_600
    clocks.pass_time(5)
    assert larger_step_clock.read() - began_at == 5
    clocks.pass_time(60, is_asleep=True)
    assert larger_step_clock.read() - began_at == 65


def _advance_clocks(monkeypatch: pytest.MonkeyPatch, *, boot: float = 0, wall: float = 0) -> None:
    """Let this machine's clocks be ahead by so many seconds; `time.monotonic` stands still."""
    read_time = time.time
    monkeypatch.setattr(time, "time", lambda: read_time() + wall)
    monotonic_now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: monotonic_now)
    if hasattr(time, "clock_gettime"):
        clock_gettime = time.clock_gettime
        monkeypatch.setattr(time, "clock_gettime", lambda clock_id: clock_gettime(clock_id) + boot)


# What the clocks show after 3,600 seconds: the machine slept, a hypervisor paused it, or it slept
# and its wall clock was set back.
AFTER_SLEEP = {"boot": 3_600, "wall": 3_600}
AFTER_PAUSE = {"boot": 0, "wall": 3_600}
AFTER_SLEEP_AND_SET_BACK = {"boot": 3_600, "wall": -7_200}
HAS_BOOT_CLOCK = hasattr(time, "CLOCK_BOOTTIME")


@pytest.mark.parametrize(
    "clocks", [AFTER_SLEEP, AFTER_PAUSE, *([AFTER_SLEEP_AND_SET_BACK] if HAS_BOOT_CLOCK else [])]
)
def test_clock_counts_the_time_of_sleep_and_of_a_paused_virtual_machine(
    monkeypatch: pytest.MonkeyPatch, clocks: dict[str, int]
) -> None:
    began_at = read_sleep_counting_clock()
    _advance_clocks(monkeypatch, **clocks)
    assert 3_600 <= read_sleep_counting_clock() - began_at < 3_900


def test_clock_without_a_boot_clock_counts_the_time_of_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "_BOOT_CLOCK", None)
    read_sleep_counting_clock()
    began_at = read_sleep_counting_clock()
    _advance_clocks(monkeypatch, wall=3_600)
    assert 3_600 <= read_sleep_counting_clock() - began_at < 3_900


@pytest.mark.parametrize("clocks", [AFTER_SLEEP, AFTER_PAUSE])
def test_heartbeat_holds_no_message_whose_timeout_ended_while_the_machine_slept_or_was_paused(
    monkeypatch: pytest.MonkeyPatch, clocks: dict[str, int]
) -> None:
    heartbeat = VisibilityHeartbeat(cast("Any", FakeSqs()), "url", seconds=120)
    heartbeat.add({"MessageId": "m", "ReceiptHandle": "r"}, received_at=read_sleep_counting_clock())
    assert heartbeat.held == {"m"}
    _advance_clocks(monkeypatch, **clocks)
    assert heartbeat.held == set()
    assert heartbeat.lost == {"m"}
