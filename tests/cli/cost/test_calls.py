"""Test what each choice of logged calls costs and which symptoms it shows."""

from __future__ import annotations

import pytest

from infra.settings.deployment import read_deployment_settings
from mendq.catalogue import CATALOGUE
from mendq.cli.cost.calls import (
    ALL_CALLS_CHOICE,
    DELETES_AND_TIMEOUTS_CHOICE,
    EMPTY_RECEIVES_METRIC,
    NO_RECEIVES_CHOICE,
    SENDS_CHOICE,
    TRAIL_CHOICES,
    QueueCalls,
    TrailChoice,
    sort_symptoms_by_visibility,
)
from mendq.model.names import DATA_EVENT_NAMES

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
FIFO = f"{ARN}.fifo"
# Calls a week that cost a dollar a month: 30/7 times as many at ten cents per 100,000.
DOLLAR = 7_000_000 // 30
COLUMNS = (
    "NumberOfMessagesSent",
    "NumberOfMessagesReceived",
    EMPTY_RECEIVES_METRIC,
    "NumberOfMessagesDeleted",
)


def _make_queue_calls(sent: float, received: float, empty: float, deleted: float = 0) -> QueueCalls:
    """Make a queue whose calls would cost these dollars a month."""
    dollars = (sent, received, empty, deleted)
    return QueueCalls(
        ARN,
        {
            name: round(dollar_amount * DOLLAR)
            for name, dollar_amount in zip(COLUMNS, dollars, strict=True)
        },
    )


BUSY = _make_queue_calls(1, 2, 6, 3)


@pytest.mark.parametrize(
    ("choice", "dollars"),
    [
        (ALL_CALLS_CHOICE, 12),
        (NO_RECEIVES_CHOICE, 4),
        (DELETES_AND_TIMEOUTS_CHOICE, 3),
        (SENDS_CHOICE, 1),
    ],
    ids=["all calls", "no receives", "deletes and timeouts", "sends"],
)
def test_trail_choice_costs_the_calls_that_it_logs_and_is_a_valid_setting(
    choice: TrailChoice, dollars: float
) -> None:
    assert choice in TRAIL_CHOICES
    assert choice.estimate_monthly_dollars([BUSY]) == pytest.approx(dollars, rel=1e-3)
    trail = read_deployment_settings({"trail": {"eventNames": choice.event_names_setting}}).trail
    assert set(trail.event_names or DATA_EVENT_NAMES) == choice.event_names


@pytest.mark.parametrize(
    ("queue_arn", "dollars"), [(ARN, 0.40), (FIFO, 0.50)], ids=["standard", "FIFO"]
)
def test_sqs_bills_a_million_calls_a_month_by_the_kind_of_the_queue(
    queue_arn: str, dollars: float
) -> None:
    quarter_million_a_month = 250_000 * 7 // 30
    calls = QueueCalls(queue_arn, dict.fromkeys(COLUMNS, quarter_million_a_month))
    assert calls.estimate_monthly_sqs_dollars() == pytest.approx(dollars, rel=1e-4)


def test_sqs_bill_is_unknown_if_cloudwatch_counted_no_calls() -> None:
    assert QueueCalls(FIFO).estimate_monthly_sqs_dollars() is None


def test_trail_cost_is_unknown_if_cloudwatch_counted_no_calls() -> None:
    assert QueueCalls(ARN).estimate_monthly_dollars(DATA_EVENT_NAMES) is None


def test_trail_choice_lists_the_calls_that_it_logs_and_cloudwatch_does_not_count() -> None:
    uncounted = {"ChangeMessageVisibility", "GetQueueAttributes"}
    assert uncounted <= set(NO_RECEIVES_CHOICE.uncounted_calls)
    assert SENDS_CHOICE.uncounted_calls == []


@pytest.mark.parametrize("choice", TRAIL_CHOICES, ids=lambda choice: choice.event_names_setting)
def test_trail_choice_lists_every_symptom_of_failed_calls_as_seen_in_part_or_not_seen(
    choice: TrailChoice,
) -> None:
    shown = sort_symptoms_by_visibility(choice, [ARN, FIFO])
    listed = {*shown.wholly, *shown.in_part, *shown.blind}
    shown_by_calls = {symptom.name for symptom in CATALOGUE if symptom.seen_as}
    assert listed == shown_by_calls - {"mapping_refused"}, "a call to Lambda shows that one"


def test_trail_choice_without_receives_misses_the_in_flight_limit_and_parts_of_denials() -> None:
    assert sort_symptoms_by_visibility(ALL_CALLS_CHOICE, [FIFO]).blind == []
    without_receives = sort_symptoms_by_visibility(NO_RECEIVES_CHOICE, [FIFO])
    assert without_receives.blind == ["in_flight_limit"]
    refused = {"access_denied", "kms_denied", "kms_key_unusable", "kms_throttled"}
    assert refused <= {*without_receives.in_part}
    assert {"visibility_timeout_too_short", "message_too_long"} <= {*without_receives.wholly}


def test_trail_choice_lists_a_symptom_by_its_worst_visibility_over_all_queues() -> None:
    """A late delete passes on a standard queue."""
    symptom = "visibility_timeout_too_short"
    assert symptom in sort_symptoms_by_visibility(ALL_CALLS_CHOICE, [FIFO]).wholly
    assert symptom in sort_symptoms_by_visibility(ALL_CALLS_CHOICE, [FIFO, ARN]).in_part
