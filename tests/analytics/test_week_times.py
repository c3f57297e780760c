from __future__ import annotations

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.week_parts import median_of, nearest_rank, spread, times_to_heal
from tests.analytics.week_authored import incident


@pytest.mark.parametrize(
    ("count", "p90"), [(1, None), (4, None), (5, 5), (9, 9), (10, 9), (11, 10), (100, 90)]
)
def test_no_percentile_below_five(count: int, p90: int | None) -> None:
    rows = [incident(seconds_to_heal=float(each)) for each in range(count, 0, -1)]
    (times,) = times_to_heal(rows)
    assert times["p90_seconds"] == p90
    assert times["median_seconds"] == ceil(count / 2)
    assert times["incidents"] == count


def test_symptoms_with_most_come_first_and_only_what_was_healed_counts() -> None:
    rows = [
        incident(symptom="kms_throttled"),
        incident(symptom="b"),
        incident(symptom="b"),
        incident(symptom="a"),
        incident(symptom="a"),
        incident(symptom="never_timed", seconds_to_heal=None),
        incident(symptom="approved", outcome="approved"),
        incident(symptom="a", outcome="applied"),
    ]
    assert [(each["symptom"], each["incidents"]) for each in times_to_heal(rows)] == [
        ("a", 2),
        ("b", 2),
        ("kms_throttled", 1),
    ]


def test_of_none_there_is_no_median() -> None:
    assert median_of([]) is None
    assert times_to_heal([]) == []


RANKED = st.lists(st.integers(0, 1_000), min_size=1, max_size=700).map(sorted)


@given(RANKED, st.integers(1, 100))
def test_a_percentile_was_measured_and_so_many_do_not_exceed_it(
    ranked: list[int], percent: int
) -> None:
    found = nearest_rank(ranked, percent)
    assert found in ranked
    assert 100 * sum(each <= found for each in ranked) >= percent * len(ranked)
    assert 100 * sum(each < found for each in ranked) < percent * len(ranked)


@given(RANKED)
def test_a_sample_keeps_both_ends_and_the_order(ranked: list[int]) -> None:
    sample = spread(ranked, 200)
    assert len(sample) == min(200, len(ranked))
    assert (sample[0], sample[-1]) == (ranked[0], ranked[-1])
    assert sample == sorted(sample)


def test_a_sample_is_evenly_spaced_by_rank() -> None:
    sample = spread(range(1_000), 200)
    gaps = {later - earlier for earlier, later in pairwise(sample)}
    assert gaps == {5, 6}
