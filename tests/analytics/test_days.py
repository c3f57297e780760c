"""Days, and how far a run reads on."""

from __future__ import annotations

from datetime import date

import pytest

from analytics.days import DAY, Days

NIGHT = Days(date(2026, 11, 10), date(2026, 11, 10))


def test_only_a_side_that_falls_short_is_stretched() -> None:
    loaded = NIGHT.widened(1, 1)
    assert loaded.stretched(loaded, NIGHT) == loaded
    assert loaded.stretched(NIGHT.widened(2, 0), NIGHT) == NIGHT.widened(2, 1)
    assert loaded.stretched(NIGHT.widened(0, 9), NIGHT) == NIGHT.widened(1, 9)
    assert NIGHT.widened(4, 4).stretched(NIGHT.widened(5, 5), NIGHT) == NIGHT.widened(8, 8)


@pytest.mark.parametrize(("chain_days", "most_rounds"), [(1, 1), (7, 4), (30, 6), (365, 10)])
def test_a_long_chain_takes_few_rounds(chain_days: int, most_rounds: int) -> None:
    """What is loaded shows one day more of a chain, until all of it is."""
    loaded, rounds = NIGHT.widened(1, 1), 1
    whole = NIGHT.widened(chain_days, 0)
    while whole not in loaded:
        needed = Days(max(whole.first, loaded.first - DAY), loaded.last)
        loaded, rounds = loaded.stretched(needed, NIGHT), rounds + 1
    assert rounds <= most_rounds


def test_days_without_a_width_are_stretched_as_far_as_is_needed() -> None:
    assert NIGHT.stretched(NIGHT.widened(3, 0), NIGHT) == NIGHT.widened(3, 0)
