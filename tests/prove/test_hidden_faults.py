"""The hidden faults show the traffic that was seen on such queues, and what causes it."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.prove.hidden_faults import FAULTS, TWINS
from tests.prove.measured_account import MeasuredAccount
from tests.prove.simulated_queues import (
    DELETED,
    GAUGES,
    HOUR,
    MINUTE,
    NOW,
    OLDEST,
    RECEIVED,
    SENT,
    SimulatedQueue,
    SimulatedWorld,
)

SEED = 1


def play(scene_name: str) -> tuple[SimulatedWorld, SimulatedQueue]:
    """Play a scene to its end, and return its world and its source queue."""
    world = {**FAULTS, **TWINS}[scene_name].play(scene_name, SEED)
    world.run(world.end)
    source = next(queue for queue in world.queues if "-dlq" not in queue.name)
    return world, source


def count_last_six_hours(queue: SimulatedQueue, metric: str) -> float:
    """Return the sum of a metric over the last six hours."""
    first_minute = (queue.world.end - 6 * HOUR) // MINUTE
    return sum(value for minute, value in queue.counted[metric].items() if minute >= first_minute)


def list_gauge(queue: SimulatedQueue, metric: str) -> list[float]:
    """Return a gauge's values of the last six hours, oldest first."""
    first_minute = (queue.world.end - 6 * HOUR) // MINUTE
    return [
        value for minute, value in sorted(queue.gauged[metric].items()) if minute >= first_minute
    ]


def measure_empty_share(queue: SimulatedQueue) -> float:
    """Return the share of minutes in which no message was visible or in flight."""
    backlogs = [
        visible + in_flight
        for visible, in_flight in zip(
            list_gauge(queue, GAUGES["visible"]),
            list_gauge(queue, GAUGES["in_flight"]),
            strict=True,
        )
    ]
    return backlogs.count(0) / len(backlogs)


@pytest.mark.parametrize(
    ("scene_name", "seen_sent", "seen_receives_per_send", "seen_deletes_per_send"),
    [
        ("fails at once, DLQ takes all", 1_867, 5, 0),
        ("fails in bursts, DLQ takes all", 571, 4, 0),
        ("late deletes, queue often empty", 2_381, 1.83, 1.83),
        ("function fails", 346, 1.55, 0.06),
        ("function fails for two minutes of messages", 17, 4, 0),
        ("function times out for two minutes of messages", 18, 3, 0),
        ("consumer stopped, no Lambda", 4_104, 0, 0),
        ("crash loop", 897, 1.84, 0.99),
        ("six poison messages, no DLQ", 1_319, 1.64, 1),
        ("gives back on purpose, no DLQ", 4_142, 4.5, 1),
    ],
)
def test_hidden_fault_has_sums_of_the_queue_that_was_seen(
    scene_name: str,
    seen_sent: int,
    seen_receives_per_send: float,
    seen_deletes_per_send: float,
) -> None:
    _, queue = play(scene_name)
    sent = count_last_six_hours(queue, SENT)
    assert sent == pytest.approx(seen_sent, rel=0.5)
    receives_per_send = count_last_six_hours(queue, RECEIVED) / sent
    deletes_per_send = count_last_six_hours(queue, DELETED) / sent
    assert receives_per_send == pytest.approx(seen_receives_per_send, rel=0.3)
    assert deletes_per_send == pytest.approx(seen_deletes_per_send, rel=0.3, abs=0.05)


@pytest.mark.parametrize(
    ("scene_name", "least_share"),
    [
        ("fails at once, DLQ takes all", 0.75),
        ("fails in bursts, DLQ takes all", 0.6),
        ("late deletes, queue often empty", 0.2),
        ("function times out for two minutes of messages", 0.95),
    ],
)
def test_hidden_fault_is_empty_in_the_share_of_minutes_that_was_seen(
    scene_name: str, least_share: float
) -> None:
    _, queue = play(scene_name)
    assert measure_empty_share(queue) >= least_share


@pytest.mark.parametrize(
    "scene_name", ["fails at once, DLQ takes all", "fails in bursts, DLQ takes all"]
)
def test_dlq_of_failing_consumer_gains_every_message_that_was_sent(scene_name: str) -> None:
    _, queue = play(scene_name)
    assert queue.dlq is not None
    still_in_source = len(queue.present)
    sent = sum(queue.counted[SENT].values())
    assert len(queue.dlq.present) == sent - still_in_source > 0


def test_in_flight_limit_holds_back_messages_that_wait() -> None:
    _, queue = play("in-flight limit")
    assert queue.tally["in_flight"] == 120_000
    assert queue.tally["visible"] > 50_000


@pytest.mark.parametrize(
    ("scene_name", "least_waiting"),
    [
        ("mapping disabled, messages wait", 700),
        ("mapping of a deleted function, messages wait", 20),
    ],
)
def test_messages_wait_for_almost_four_hours_when_no_function_reads(
    scene_name: str, least_waiting: int
) -> None:
    _, queue = play(scene_name)
    assert queue.tally["visible"] >= least_waiting
    assert list_gauge(queue, OLDEST)[-1] == pytest.approx(3.9 * HOUR, rel=0.1)


def test_lambda_answers_that_a_deleted_function_does_not_exist() -> None:
    world, queue = play("mapping of a deleted function, messages wait")
    account = MeasuredAccount([world])
    (mapping,) = account.answer("ListEventSourceMappings", {})["EventSourceMappings"]
    answer = account.answer("GetFunctionConfiguration", {"FunctionName": mapping["FunctionArn"]})
    assert mapping["EventSourceArn"] == queue.arn
    assert mapping["State"] == "Enabled"
    assert answer["Error"]["Code"] == "ResourceNotFoundException"


def test_lambda_lists_a_disabled_mapping_with_the_time_of_the_change() -> None:
    world, _ = play("mapping disabled, messages wait")
    (mapping,) = MeasuredAccount([world]).answer("ListEventSourceMappings", {})[
        "EventSourceMappings"
    ]
    assert mapping["State"] == "Disabled"
    assert mapping["LastModified"] == NOW - timedelta(hours=3.9)


def test_runs_that_time_out_last_as_long_as_the_timeout_of_the_function() -> None:
    _, queue = play("function times out for two minutes of messages")
    (consumer,) = queue.readers
    assert consumer.function is not None
    assert {seconds for _, seconds, _ in consumer.function.runs} == {15}
    assert all(has_failed for _, _, has_failed in consumer.function.runs)


@pytest.mark.parametrize(
    "scene_name",
    [
        "gives back on purpose, no DLQ",
        "half fail at first, all are finished",
        "function fails at times, all are finished",
        "function times out for ten minutes",
        "burst each hour, worked off in time",
        "deployments, timeout of ten minutes",
        "heartbeat outlasts the work",
    ],
)
def test_healthy_twin_deletes_every_message_that_is_not_in_work(scene_name: str) -> None:
    _, queue = play(scene_name)
    sent = sum(queue.counted[SENT].values())
    deleted = sum(queue.counted[DELETED].values())
    assert deleted == sent - len(queue.present) > 0


@pytest.mark.parametrize(
    ("scene_name", "hours_between_drains"),
    [("daily drain", 24), ("drain every four hours", 4), ("hourly drain", 1)],
)
def test_drained_queue_is_read_once_in_each_interval_and_loses_nothing(
    scene_name: str, hours_between_drains: float
) -> None:
    _, queue = play(scene_name)
    minutes_with_deletes = sorted(queue.counted[DELETED])
    pauses = [later - earlier for earlier, later in pairwise(minutes_with_deletes)]
    assert max(pauses) * MINUTE == pytest.approx(hours_between_drains * HOUR, rel=0.15)
    sent = sum(queue.counted[SENT].values())
    assert sum(queue.counted[DELETED].values()) + len(queue.present) == sent


def test_cloudwatch_sums_four_days_of_an_hourly_drain_by_hour() -> None:
    world, queue = play("consumer stopped after four days")
    hours = MeasuredAccount([world]).answer(
        "GetMetricData",
        {
            "StartTime": NOW - timedelta(days=4),
            "EndTime": NOW,
            "MetricDataQueries": [
                {
                    "Id": "deleted",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "AWS/SQS",
                            "MetricName": DELETED,
                            "Dimensions": [{"Name": "QueueName", "Value": queue.name}],
                        },
                        "Period": HOUR,
                        "Stat": "Sum",
                    },
                }
            ],
        },
    )["MetricDataResults"][0]
    sums = dict(zip(hours["Timestamps"], hours["Values"], strict=True))
    assert sum(sums.values()) == pytest.approx(sum(queue.counted[DELETED].values()), abs=2)
    hours_with_deletes = [hour for hour, deletes in sums.items() if deletes]
    assert max(hours_with_deletes) < NOW - timedelta(hours=6)
    assert len(hours_with_deletes) > 80
