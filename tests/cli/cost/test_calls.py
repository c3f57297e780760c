"""What logging which calls costs and shows, and what is advised."""

from __future__ import annotations

import pytest

from infra.settings.deployment import read
from mendq.catalogue import CATALOGUE
from mendq.cli.cost.calls import (
    ALL_CALLS,
    CHOICES,
    EMPTY_RECEIVES,
    NO_RECEIVES,
    SENDS,
    VISIBILITY,
    Calls,
    TrailChoice,
    sort_symptoms_by_visibility,
)
from mendq.model.names import DATA_EVENT_NAMES

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
FIFO = f"{ARN}.fifo"
# A week of it is a dollar a month: 30/7 times so many at ten cents per 100,000.
DOLLAR = 7_000_000 // 30
COLUMNS = (
    "NumberOfMessagesSent",
    "NumberOfMessagesReceived",
    EMPTY_RECEIVES,
    "NumberOfMessagesDeleted",
)


def _queue(sent: float, received: float, empty: float, deleted: float = 0) -> Calls:
    """By dollars a month."""
    dollars = (sent, received, empty, deleted)
    return Calls(ARN, {name: round(of * DOLLAR) for name, of in zip(COLUMNS, dollars, strict=True)})


BUSY = _queue(1, 2, 6, 3)


@pytest.mark.parametrize(
    ("choice", "dollars"), [(ALL_CALLS, 12), (NO_RECEIVES, 4), (VISIBILITY, 3), (SENDS, 1)]
)
def test_each_choice_pays_for_its_calls_and_is_a_setting(
    choice: TrailChoice, dollars: float
) -> None:
    assert choice in CHOICES
    assert choice.dollars([BUSY]) == pytest.approx(dollars, rel=1e-3)
    trail = read({"trail": {"eventNames": choice.setting}}).trail
    assert set(trail.event_names or DATA_EVENT_NAMES) == choice.event_names


def test_what_was_not_counted_is_not_known() -> None:
    assert Calls(ARN).dollars_a_month(DATA_EVENT_NAMES) is None
    assert {"ChangeMessageVisibility", "GetQueueAttributes"} <= set(NO_RECEIVES.uncounted_calls)
    assert SENDS.uncounted_calls == []


def test_every_symptom_that_calls_show_stands_somewhere_as_the_worst_of_all_queues() -> None:
    for choice in CHOICES:
        shown = sort_symptoms_by_visibility(choice, [ARN, FIFO])
        seen = {*shown.wholly, *shown.in_part, *shown.blind}
        assert seen == {each.name for each in CATALOGUE if each.seen_as}
    without = sort_symptoms_by_visibility(NO_RECEIVES, [FIFO])
    assert (sort_symptoms_by_visibility(ALL_CALLS, [FIFO]).blind, without.blind) == (
        [],
        ["in_flight_limit"],
    )
    refused = {"access_denied", "kms_denied", "kms_key_unusable", "kms_throttled"}
    assert refused <= {*without.in_part}, "but neither late deletes nor sends"
    assert {"visibility_timeout_too_short", "message_too_long"} <= {*without.wholly}
    # A late delete passes on a standard queue.
    assert "visibility_timeout_too_short" in sort_symptoms_by_visibility(ALL_CALLS, [FIFO]).wholly
    assert (
        "visibility_timeout_too_short"
        in sort_symptoms_by_visibility(ALL_CALLS, [FIFO, ARN]).in_part
    )
