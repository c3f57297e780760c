"""What is said of the figures, and where nothing is."""

from __future__ import annotations

import pytest

from mendq.cli.cost.calls import EMPTY_RECEIVES, Calls
from mendq.cli.cost.view import LEAST_DOLLARS, advice

ARN = "arn:aws:sqs:us-east-1:111122223333:orders"
# A week's calls that cost a dollar a month: 30 days of them are a million.
DOLLAR = 7_000_000 // 30


def _week(sent: float, received: float, empty: float) -> list[Calls]:
    """Each in dollars a month."""
    counted = {
        "NumberOfMessagesSent": sent,
        "NumberOfMessagesReceived": received,
        EMPTY_RECEIVES: empty,
    }
    return [Calls(ARN, {name: round(each * DOLLAR) for name, each in counted.items()})]


@pytest.mark.parametrize(
    ("sent", "received", "empty"),
    [
        (0, 0, 0),
        (5, 2, 2),
        # Nearly all of the bill, but the bill is cents: 27% of a day's first tries.
        (0.0001, 0.0011, 0.0004),
        (0, 0.4, LEAST_DOLLARS - 0.41),
    ],
)
def test_of_small_sums_and_small_shares_nothing_is_said(
    sent: float, received: float, empty: float
) -> None:
    assert advice(_week(sent, received, empty)) == []


def test_without_figures_nothing_is_said() -> None:
    assert advice([]) == []
    assert advice([Calls(ARN)]) == []


def test_receives_that_found_something_are_said_without_a_remedy() -> None:
    (said,) = advice(_week(1, 3, 1))
    assert said == "Receives are $4.00 of $5.00, and 25% of them found nothing."


def test_receives_in_vain_are_said_with_what_hides_nothing_first() -> None:
    said, longer, remedy = advice(_week(0, 0.4, LEAST_DOLLARS))
    assert longer.startswith("Poll longer")
    assert said == "Receives are $1.40 of $1.40, and 71% of them found nothing."
    assert "ReceiveMessage" in remedy
