"""Days, and how far a run reads on."""

from __future__ import annotations

from datetime import date

import pytest

from analytics.days import DAY, Days

NIGHTLY = Days(date(2026, 11, 10), date(2026, 11, 10))


def test_only_a_side_that_falls_short_is_stretched() -> None:
    loaded = NIGHTLY.widened(1, 1)
    assert loaded.stretched(loaded, NIGHTLY) == loaded
    assert loaded.stretched(NIGHTLY.widened(2, 0), NIGHTLY) == NIGHTLY.widened(2, 1)
    assert loaded.stretched(NIGHTLY.widened(0, 9), NIGHTLY) == NIGHTLY.widened(1, 9)
    assert NIGHTLY.widened(4, 4).stretched(NIGHTLY.widened(5, 5), NIGHTLY) == NIGHTLY.widened(8, 8)


@pytest.mark.parametrize(("chain_days", "most_rounds"), [(1, 1), (7, 4), (30, 6), (365, 10)])
def test_a_long_chain_takes_few_rounds(chain_days: int, most_rounds: int) -> None:
    """What is loaded shows one day more of a chain, until all of it is."""
    loaded, rounds = NIGHTLY.widened(1, 1), 1
    whole = NIGHTLY.widened(chain_days, 0)
    while whole not in loaded:
        needed = Days(max(whole.first, loaded.first - DAY), loaded.last)
        loaded, rounds = loaded.stretched(needed, NIGHTLY), rounds + 1
    assert rounds <= most_rounds


def test_days_without_a_width_are_stretched_as_far_as_is_needed() -> None:
    assert NIGHTLY.stretched(NIGHTLY.widened(3, 0), NIGHTLY) == NIGHTLY.widened(3, 0)
