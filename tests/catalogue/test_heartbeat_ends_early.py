"""When messages that are handled twice show a heartbeat that ends early, or a short timeout."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import EXAMPLE_TIME, LAMBDA_FUNCTION, queue, standard_queue
from mendq.catalogue.symptom import DetectedFault
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.metrics import Window, summarize_series
from mendq.model.plan import Escalate, Refuse

HEARTBEAT = "heartbeat_ends_early"
TOO_SHORT = "visibility_timeout_too_short"
MINUTES_OF_SIX_HOURS = 360


def make_queue(
    visibility_seconds: int = 60, *, mean_in_flight: float = 4.0, **overrides: Any
) -> Facts:
    """Return a queue whose 720 receives keep their messages for 120 seconds each.

    720 receives in 21,600 seconds are one in 30 seconds, and 4 messages are in flight.
    """
    counts = {
        "sent": 500,
        "received": 720,
        "deleted": 720,
        "in_flight_seconds": mean_in_flight * 60 * MINUTES_OF_SIX_HOURS,
    }
    return standard_queue(**{"VisibilityTimeout": visibility_seconds, **counts, **overrides})


def find(symptom: str, facts: Facts) -> DetectedFault | None:
    detection = SYMPTOM_BY_NAME[symptom].detection
    assert detection
    return detection.detect(facts)


@pytest.mark.parametrize(
    ("visibility_seconds", "mean_in_flight", "symptom"),
    [
        pytest.param(60, 2.6, HEARTBEAT, id="1.3 timeouts"),
        pytest.param(60, 2.59, TOO_SHORT, id="less than 1.3 timeouts"),
        pytest.param(6, 2.59, TOO_SHORT, id="a short timeout counts as a minute"),
        pytest.param(61, 4.0, TOO_SHORT, id="a timeout is rounded up to whole minutes"),
        pytest.param(61, 5.2, HEARTBEAT, id="1.3 times the rounded timeout"),
    ],
)
def test_messages_handled_twice_show_a_heartbeat_if_receives_outlast_the_timeout(
    visibility_seconds: int, mean_in_flight: float, symptom: str
) -> None:
    facts = make_queue(visibility_seconds, mean_in_flight=mean_in_flight)
    found_symptoms = [name for name in (HEARTBEAT, TOO_SHORT) if find(name, facts)]
    assert found_symptoms == [symptom]


@pytest.mark.parametrize(
    ("counts", "is_found"),
    [
        pytest.param({"deleted": 510}, True, id="ten"),
        pytest.param({"deleted": 509}, False, id="nine, as inexact counters may show"),
        pytest.param({"sent": 1_000, "deleted": 1_019, "received": 1_019}, False, id="below 2 %"),
        pytest.param({"sent": 1_000, "deleted": 1_020, "received": 1_020}, True, id="2 %"),
        pytest.param({"received": 719}, False, id="one receive was deleted twice"),
        pytest.param(
            {"received": 719, "in_flight_before": 1, "backlog_before": 1, "mean_in_flight": 12.0},
            True,
            id="a delete of a message that was in flight before",
        ),
        pytest.param({"deleted": 0, "backlog_now": 720}, False, id="a backlog without sends"),
    ],
)
def test_heartbeat_needs_messages_that_were_handled_twice(
    counts: dict[str, Any], is_found: bool
) -> None:
    facts = make_queue(**{"mean_in_flight": 12.0, **counts})
    assert (find(HEARTBEAT, facts) is not None) is is_found


def test_heartbeat_of_a_fifo_queue_is_left_to_its_failed_calls() -> None:
    counts: dict[str, Any] = {
        "sent": 500,
        "received": 720,
        "deleted": 720,
        "in_flight_seconds": 259_200.0,
    }
    assert find(HEARTBEAT, queue(VisibilityTimeout=60, dlq_sources=(), **counts)) is None


def test_lambda_consumer_has_no_heartbeat() -> None:
    assert find(HEARTBEAT, make_queue(lambda_consumers=(LAMBDA_FUNCTION,))) is None


def test_heartbeat_is_reported_without_a_page_and_without_a_change() -> None:
    facts = make_queue()
    fault = find(HEARTBEAT, facts)
    symptom = SYMPTOM_BY_NAME[HEARTBEAT]
    assert fault
    assert symptom.plan
    answer = symptom.plan(facts, Limits())
    assert isinstance(answer, Refuse)
    assert not isinstance(answer, Escalate)
    assert fault.should_page is False


def test_minute_without_a_report_counts_as_none_in_flight() -> None:
    """A gap shortens the time in flight, so it never makes a heartbeat."""
    since = EXAMPLE_TIME - timedelta(minutes=MINUTES_OF_SIX_HOURS)
    minutes = [since + timedelta(minutes=number) for number in range(MINUTES_OF_SIX_HOURS)]
    measurement = summarize_series(
        {
            "received": [(minute, 1.0) for minute in minutes],
            "in_flight": [(minute, 2.0) for minute in minutes[::2]],
        },
        Window(since, EXAMPLE_TIME),
    )
    assert measurement
    assert measurement.seconds_in_flight_per_receive == pytest.approx(60, abs=1)


def test_text_names_both_ways_in_which_consumers_set_their_timeout() -> None:
    facts = make_queue()
    fault = find(HEARTBEAT, facts)
    symptom = SYMPTOM_BY_NAME[HEARTBEAT]
    assert fault
    assert symptom.plan
    answer = symptom.plan(replace(facts, found=fault.because), Limits())
    assert isinstance(answer, Refuse)
    assert "they extend it or set their own, and it ends before the work does" in answer.reason
    assert "raise the limit of the heartbeat" in answer.reason
    assert "If they set VisibilityTimeout with each receive, raise it" in answer.reason


def test_queue_without_receives_has_no_time_in_flight() -> None:
    facts = make_queue(received=0, deleted=0, mean_in_flight=0.0)
    assert facts.measurement
    assert facts.measurement.seconds_in_flight_per_receive is None
