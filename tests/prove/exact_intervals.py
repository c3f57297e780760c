"""Shares of cases with their exact 95 % intervals (Clopper-Pearson)."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

# The share of cases beyond each end of an exact 95 % interval.
TAIL = 0.025


def describe_share(part: int, whole: int) -> str:
    """Return a share with its exact 95 % interval, such as `0.86 (0.70-0.95)`."""
    low, high = find_exact_interval(part, whole)
    return f"{part / whole:.2f} ({low:.2f}-{high:.2f})"


def find_exact_interval(part: int, whole: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share, which covers the true one 95 times in 100.

    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval
    """
    # The lower bound is the chance at which `part` or more hits of `whole` happen in 2.5 % of all
    # cases; the upper one that at which `part` or fewer do.
    low = find_chance(lambda chance_of_hit: count_tail(part, whole, chance_of_hit) < TAIL)
    high = 1 - find_chance(
        lambda chance_of_miss: count_tail(whole - part, whole, chance_of_miss) < TAIL
    )
    return (low if part else 0.0), (high if part < whole else 1.0)


def count_tail(fewest: int, whole: int, chance_of_hit: float) -> float:
    """Return the probability of at least `fewest` hits in `whole` independent tries."""
    return sum(
        comb(whole, hits) * chance_of_hit**hits * (1 - chance_of_hit) ** (whole - hits)
        for hits in range(fewest, whole + 1)
    )


def find_chance(is_too_low: Callable[[float], bool]) -> float:
    """Return the chance between 0 and 1 up to which `is_too_low` is true, by halving."""
    low = 0.0
    high = 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if is_too_low(middle):
            low = middle
        else:
            high = middle
    return low
