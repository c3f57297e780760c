from __future__ import annotations

import pytest

from mendq.model.prices import (
    DASHBOARD_MONTH,
    DATA_EVENT,
    S3_GET,
)


def test_a_price_is_for_so_many_units() -> None:
    assert DATA_EVENT.of(100_000) == pytest.approx(0.10)
    assert DATA_EVENT.of(2_592_000_000) == pytest.approx(2_592)


def test_what_is_given_is_taken_off_and_never_paid_out() -> None:
    assert [DASHBOARD_MONTH.beyond(each) for each in (0, 3, 4)] == [0, 0, 3]
    assert DATA_EVENT.beyond(100_000) == DATA_EVENT.of(100_000)


def test_prices_below_a_cent_keep_their_digits() -> None:
    assert S3_GET.words == "$0.0004 per 1,000"
    assert DASHBOARD_MONTH.words == "$3.00 each"
    assert "us-east-1" in DATA_EVENT.noted
