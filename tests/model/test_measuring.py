from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.metrics import (
    CLOUDWATCH_LAG,
    LONGEST,
    Gauges,
    Measured,
    Series,
    Window,
    measured,
    metrics_of,
)

NOW = datetime(2026, 11, 16, 9, 30, 17, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(NOW.replace(second=0) - 2 * HOUR, NOW.replace(second=0))


def _minute(n: int) -> datetime:
    return WINDOW.since + timedelta(minutes=n)


def _measured(**series: list[tuple[int, float]]) -> Measured | None:
    return measured(
        {key: [(_minute(n), v) for n, v in each] for key, each in series.items()}, WINDOW
    )


def test_a_queue_is_measured_for_six_hours_and_never_over_a_change() -> None:
    window, later = (Window.ending(NOW, at, HOUR) for at in (None, NOW - 2 * HOUR))
    assert window is not None
    assert window.until - window.since == LONGEST
    assert NOW - window.until >= CLOUDWATCH_LAG
    assert later is not None
    assert later.since == (NOW - 2 * HOUR).replace(second=0) + timedelta(minutes=1)


@pytest.mark.parametrize("minutes", [-30, 0, 30, 60, 62])
def test_less_than_an_hour_since_a_change_says_nothing(minutes: int) -> None:
    assert Window.ending(NOW, NOW - timedelta(minutes=minutes), HOUR) is None


@given(
    st.none() | st.timedeltas(timedelta(days=-9), timedelta(days=1)),
    st.timedeltas(timedelta(0), LONGEST),
)
def test_a_window_lies_between_the_change_and_what_cloudwatch_has(
    changed: timedelta | None, shortest: timedelta
) -> None:
    settled_at = None if changed is None else NOW + changed
    window = Window.ending(NOW, settled_at, shortest)
    if window is not None:
        assert window.until <= NOW - CLOUDWATCH_LAG
        assert settled_at is None or window.since >= settled_at
        assert shortest <= window.until - window.since <= LONGEST
        assert (window.since.second, window.until.second) == (0, 0)


def test_cloudwatch_that_knows_nothing_measures_nothing() -> None:
    assert _measured() is None
    assert _measured(sent=[], visible=[]) is None
    assert _measured(sent=[(-1, 5), (120, 7)]) is None, "outside of the window"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -1.0, -500.0])
@pytest.mark.parametrize("key", ["sent", "deleted", "visible", "age"])
def test_a_value_that_no_queue_can_have_measures_nothing(key: str, value: float) -> None:
    known: dict[str, list[tuple[int, float]]] = {"sent": [(0, 500)], "deleted": [(9, 500)]}
    assert _measured(**known) is not None
    assert _measured(**{**known, key: [(5, value)]}) is None
    assert _measured(**{**known, key: [*known.get(key, []), (130, value)]}) is not None, "outside"


def test_counts_are_summed_and_minutes_without_any_count_nothing() -> None:
    found = _measured(sent=[(0, 3), (119, 4), (120, 100)], deleted=[(5, 2)], empty=[(6, 9)])
    assert found is not None
    assert (found.sent, found.received, found.deleted, found.empty_receives) == (7, 0, 2, 9)


def test_a_backlog_is_what_is_visible_in_flight_and_delayed_at_both_ends() -> None:
    found = _measured(
        visible=[(60, 1), (0, 4), (119, 6)],
        in_flight=[(0, 10), (119, 20)],
        delayed=[(0, 100), (119, 200)],
        age=[(0, 30), (119, 7_000)],
        groups=[(0, 3), (5, 1)],
    )
    assert found is not None
    assert found.before == Gauges(114, 4, 10, 30, 3)
    assert found.now == Gauges(226, 6, 20, 7_000, 1)
    assert found.least_visible == 1


def test_groups_are_asked_of_fifo_queues_alone() -> None:
    found = _measured(visible=[(0, 1)])
    assert found is not None
    assert found.now.groups_in_flight is None
    fifo, standard = ({each.key for each in metrics_of(fifo=kind)} for kind in (True, False))
    assert fifo - standard == {"groups"}


_POINTS = st.lists(st.tuples(st.integers(-10, 130), st.integers(0, 10**6).map(float)), max_size=8)


@given(st.dictionaries(st.sampled_from([each.key for each in metrics_of(fifo=True)]), _POINTS))
def test_whatever_cloudwatch_says_the_order_of_its_points_says_nothing(
    points: dict[str, list[tuple[int, float]]],
) -> None:
    once = {key: dict(each) for key, each in points.items()}
    series: Series = {
        key: [(_minute(n), value) for n, value in each.items()] for key, each in once.items()
    }
    turned: Series = {key: list(reversed(each)) for key, each in series.items()}
    found = measured(series, WINDOW)
    assert found == measured(turned, WINDOW)
    if found is not None:
        assert found.least_visible <= min(found.before.visible, found.now.visible)
        assert found.now.visible + found.now.in_flight <= found.now.backlog
