"""CloudWatch lacks datapoints: a gap never makes a healthy queue look faulty."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.prove.hidden_faults import FAULTS, TWINS
from tests.prove.measured_account import LosePoints, Points, lose_nothing, scan_worlds
from tests.prove.simulated_queues import (
    DELETED,
    GAUGES,
    MINUTE,
    OLDEST,
    RECEIVED,
    SENT,
    SimulatedWorld,
    chance,
)

HEALTHY_SCENES = (
    "work ends just before the timeout",
    "gives back by chance, no DLQ",
    "deployments, timeout of ten minutes",
    "burst each hour, worked off in time",
    "function fails at times, all are finished",
    "heartbeat outlasts the work",
)
FAULTY_SCENES = (
    "fails at once, DLQ takes all",
    "consumer stopped, no Lambda",
    "late deletes, queue often empty",
    "crash loop",
)
COUNTS = (SENT, RECEIVED, DELETED)


@cache
def play(scene_names: Sequence[str]) -> tuple[SimulatedWorld, ...]:
    scenes = {**FAULTS, **TWINS}
    return tuple(scenes[name].play(name, 7) for name in scene_names)


def list_findings(scene_names: Sequence[str], lose_points: LosePoints) -> set[tuple[str, str]]:
    done = scan_worlds(play(scene_names), 0, lose_points=lose_points)
    return {(finding.queue_arn, finding.symptom) for finding in done.findings}


def lose_at_random(seed: int, share: float) -> LosePoints:
    def lose_points(queue_name: str, metric: str, points: Points) -> Points:
        random: Random = chance(f"{queue_name} {metric} {seed}")
        return [point for point in points if random.random() >= share]

    return lose_points


def lose_minutes_of(lost_metric: str, minutes: int, minutes_ago: int) -> LosePoints:
    """Lose a stretch of one metric that ended so many minutes ago."""

    def lose_points(_queue_name: str, metric: str, points: Points) -> Points:
        if metric != lost_metric or not points:
            return points
        last_minute = points[-1][0]
        kept: Points = []
        for minute, value in points:
            age_minutes = (last_minute - minute).total_seconds() / MINUTE
            if not minutes_ago <= age_minutes < minutes_ago + minutes:
                kept.append((minute, value))
        return kept

    return lose_points


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.001, 0.003, 0.01, 0.1, 0.5, 0.95]))
def test_healthy_queues_stay_healthy_if_any_datapoints_are_lost_at_random(
    seed: int, share: float
) -> None:
    assert list_findings(HEALTHY_SCENES, lose_at_random(seed, share)) <= list_findings(
        HEALTHY_SCENES, lose_nothing
    )


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([*COUNTS, OLDEST, *GAUGES.values()]),
    st.integers(1, 400),
    st.integers(0, 300),
)
def test_healthy_queues_stay_healthy_if_minutes_of_one_metric_are_lost(
    metric: str, minutes: int, minutes_ago: int
) -> None:
    lose_points = lose_minutes_of(metric, minutes, minutes_ago)
    assert list_findings(HEALTHY_SCENES, lose_points) <= list_findings(HEALTHY_SCENES, lose_nothing)


def test_faulty_queues_keep_their_names_if_one_minute_of_hours_ago_is_lost() -> None:
    lose_points = lose_minutes_of(DELETED, 1, 150)
    found = list_findings(FAULTY_SCENES, lose_points)
    assert found >= list_findings(FAULTY_SCENES, lose_nothing)
    assert len(found) >= len(FAULTY_SCENES)


def test_queue_whose_deletes_cloudwatch_lacks_is_named_as_not_judged_with_the_metric() -> None:
    worlds = play(FAULTY_SCENES[:1])
    done = scan_worlds(worlds, 0, lose_points=lose_minutes_of(DELETED, 1_000, 0))
    (source_arn,) = (queue.arn for queue in worlds[0].queues if "-dlq" not in queue.name)
    assert f"no datapoint of {DELETED}" in done.gap_reason_by_arn[source_arn]
    assert source_arn not in {finding.queue_arn for finding in done.findings}
