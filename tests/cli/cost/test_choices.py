"""What logging which calls costs, and what it shows."""

from __future__ import annotations

import pytest

from infra.settings.deployment import read
from mendq.catalogue import CATALOGUE
from mendq.cli.cost.calls import (
    ALL_CALLS,
    CHOICES,
    NO_RECEIVES,
    RECEIVES,
    SENDS,
    VISIBILITY,
    Calls,
    Choice,
    Shown,
    dollars_now,
    hidden_by,
    shown_by,
)
from mendq.cli.doctor.visibility import Trail, calls_of
from mendq.model.names import DATA_EVENT_NAMES

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
FIFO = f"{ARN}.fifo"
# A week of it is a dollar a month: 30/7 times so many at ten cents per 100,000.
DOLLAR = 233_333
BUSY = Calls(
    ARN,
    {
        "NumberOfMessagesSent": DOLLAR,
        "NumberOfMessagesReceived": 2 * DOLLAR,
        "NumberOfEmptyReceives": 6 * DOLLAR,
        "NumberOfMessagesDeleted": 3 * DOLLAR,
    },
)


@pytest.mark.parametrize(
    ("choice", "dollars"), [(ALL_CALLS, 12), (NO_RECEIVES, 4), (VISIBILITY, 3), (SENDS, 1)]
)
def test_each_choice_pays_for_its_calls(choice: object, dollars: float) -> None:
    (found,) = (each for each in CHOICES if each is choice)
    assert found.dollars([BUSY]) == pytest.approx(dollars, rel=1e-3)


def test_what_was_not_counted_is_not_known() -> None:
    silent = Calls(ARN)
    assert silent.dollars_a_month(DATA_EVENT_NAMES) is None
    assert silent.document()["empty_share_of_receives"] is None
    assert BUSY.document()["empty_share_of_receives"] == 0.75


def test_heartbeats_and_questions_are_counted_by_no_metric() -> None:
    assert {"ChangeMessageVisibility", "GetQueueAttributes"} <= set(NO_RECEIVES.uncounted)
    assert SENDS.uncounted == []


def test_without_receives_only_the_in_flight_limit_is_blind() -> None:
    assert shown_by(NO_RECEIVES, [ARN, FIFO]).blind == ["in_flight_limit"]
    assert shown_by(ALL_CALLS, [ARN, FIFO]).blind == []


def test_what_hides_nothing_says_so() -> None:
    hidden = hidden_by(ALL_CALLS, [ARN, FIFO])
    assert (hidden.wholly, hidden.in_part) == ((), ())
    assert hidden.words() == "It hides nothing."


def test_without_receives_a_consumer_that_is_refused_is_hidden() -> None:
    """It makes no other call; what only senders meet, and late deletes, are seen all the same."""
    hidden = hidden_by(NO_RECEIVES, [ARN, FIFO])
    assert hidden.wholly == ("in_flight_limit",)
    assert {"access_denied", "kms_denied", "kms_key_unusable", "kms_throttled"} <= {*hidden.in_part}
    assert not {"visibility_timeout_too_short", "message_too_long", "dedup_id_missing"} & {
        *hidden.in_part
    }
    assert "all of in_flight_limit, and part of" in hidden.words()
    assert "kms_denied" in hidden.words()
    assert "a consumer that is refused its receives makes no other call" in hidden.words()


def test_with_receives_nothing_is_said_of_consumers() -> None:
    sends_and_receives = Choice("", SENDS.event_names | RECEIVES)
    assert hidden_by(sends_and_receives, [FIFO]).wholly == ("visibility_timeout_too_short",)
    assert "consumer" not in hidden_by(sends_and_receives, [FIFO]).words()


def test_sends_show_no_late_delete() -> None:
    assert "visibility_timeout_too_short" in hidden_by(SENDS, [ARN, FIFO]).wholly
    assert "visibility_timeout_too_short" in shown_by(VISIBILITY, [FIFO]).wholly


def test_every_symptom_that_calls_show_stands_somewhere() -> None:
    seen_by_calls = {each.name for each in CATALOGUE if calls_of(each)}
    for choice in CHOICES:
        shown = shown_by(choice, [ARN, FIFO])
        assert {*shown.wholly, *shown.in_part, *shown.blind} == seen_by_calls


def test_a_symptom_counts_as_the_worst_of_all_queues() -> None:
    """A late delete passes on a standard queue."""
    assert "visibility_timeout_too_short" in shown_by(ALL_CALLS, [FIFO]).wholly
    assert "visibility_timeout_too_short" in shown_by(ALL_CALLS, [FIFO, ARN]).in_part


def test_nothing_logged_shows_nothing() -> None:
    shown = Shown.by([], [ARN])
    assert (shown.wholly, shown.in_part) == ([], [])


def _trail(*event_names: str) -> Trail:
    fields = [
        {"Field": "eventCategory", "Equals": ["Data"]},
        {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
        {"Field": "resources.ARN", "StartsWith": [ARN]},
        {"Field": "eventName", "Equals": list(event_names)},
    ]
    return Trail("a", ({"FieldSelectors": fields},))


def test_each_trail_pays_for_its_own_copy() -> None:
    sends, deletes = _trail("SendMessage"), _trail("SendMessage", "DeleteMessage")
    assert dollars_now([sends], {ARN: BUSY}) == pytest.approx(1, rel=1e-3)
    assert dollars_now([sends, deletes], {ARN: BUSY}) == pytest.approx(5, rel=1e-3)
    assert dollars_now([sends], {"arn:aws:sqs:us-east-1:123456789012:other": BUSY}) == 0


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_is_a_setting(choice: object) -> None:
    (found,) = (each for each in CHOICES if each is choice)
    settings = read({"trail": {"eventNames": found.setting}})
    assert set(settings.trail.event_names or DATA_EVENT_NAMES) == found.event_names
