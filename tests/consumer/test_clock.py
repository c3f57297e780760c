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


def _sleep(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let this machine sleep: `time.monotonic` stands still, the other clocks advance."""
    clocks = TwoClocks()
    monkeypatch.setattr(clock, "_LARGER_STEP_CLOCK", clocks.make_clock())
    clocks.pass_time(seconds, is_asleep=True)
    if hasattr(time, "clock_gettime"):
        clock_gettime = time.clock_gettime
        monkeypatch.setattr(
            time, "clock_gettime", lambda clock_id: clock_gettime(clock_id) + seconds
        )


def test_clock_without_a_boot_clock_counts_the_time_of_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = TwoClocks()
    monkeypatch.setattr(clock, "_BOOT_CLOCK", None)
    monkeypatch.setattr(clock, "_LARGER_STEP_CLOCK", clocks.make_clock())
    began_at = read_sleep_counting_clock()
    clocks.pass_time(3_600, is_asleep=True)
    assert read_sleep_counting_clock() - began_at == 3_600


def test_heartbeat_holds_no_message_whose_timeout_ended_while_the_machine_slept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heartbeat = VisibilityHeartbeat(cast("Any", FakeSqs()), "url", seconds=120)
    heartbeat.add({"MessageId": "m", "ReceiptHandle": "r"}, received_at=read_sleep_counting_clock())
    assert heartbeat.held == {"m"}
    _sleep(monkeypatch, 121)
    assert heartbeat.held == set()
    assert heartbeat.lost == {"m"}
