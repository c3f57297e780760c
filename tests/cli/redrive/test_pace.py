from __future__ import annotations

from typing import Any

import pytest

from mendq.cli.exit_codes import Stopped
from mendq.cli.redrive.passes import FULL_BATCH, Pace, rate_of


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "0/s", "-1", "1/m", "1e3", "nan", "9" * 9, "1 /s"]
)
def test_no_rate(text: str) -> None:
    with pytest.raises(Stopped, match="no rate"):
        rate_of(text)


@pytest.mark.parametrize(("text", "rate"), [("10/s", 10.0), ("0.5/s", 0.5), ("7", 7.0)])
def test_a_rate(text: str, rate: float) -> None:
    assert rate_of(text) == rate


def test_without_a_rate_nothing_waits() -> None:
    waited: list[float] = []
    pace = Pace(None, waited.append)
    for _ in range(3):
        pace.before(10)
    assert (pace.batch, waited) == (FULL_BATCH, [])


@pytest.mark.parametrize(("rate", "batch"), [(0.5, 1), (3.0, 3), (500.0, FULL_BATCH)])
def test_never_more_than_the_rate(rate: float, batch: int) -> None:
    """Over any while that begins with a batch, at most the rate, and one batch more."""
    now, sent = 0.0, list[float]()

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace = Pace(rate, wait, clock=lambda: now)
    assert pace.batch == batch
    for _ in range(50):
        pace.before(batch)
        sent += [now] * batch
    for begin in range(0, len(sent), batch):
        for end in range(begin, len(sent), batch):
            messages = end + batch - begin
            assert messages <= rate * (sent[end] - sent[begin]) + batch + 1e-6
    assert now == pytest.approx((50 - 1) * batch / rate)


def test_what_took_long_is_not_made_up_for() -> None:
    now, waited = 0.0, list[float]()
    pace = Pace(1.0, waited.append, clock=lambda: now)
    pace.before(1)
    now = 100.0
    pace.before(1)
    pace.before(1)
    assert waited == [1.0]


def test_nothing_takes_no_turn() -> None:
    waits: list[Any] = []
    pace = Pace(1.0, waits.append, clock=lambda: 0.0)
    for _ in range(5):
        pace.before(0)
    assert waits == []
