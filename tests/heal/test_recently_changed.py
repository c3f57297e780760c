"""How often a day changes may excuse failed calls before people hear of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mendq.cases.view import outdated
from mendq.heal.guardrails import MOST_CHANGES, keeps_changing
from mendq.model.case import State

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _hours_ago(*hours: float) -> list[datetime]:
    return [NOW - timedelta(hours=each) for each in hours]


def test_the_sixth_change_of_a_day_pages() -> None:
    changes = _hours_ago(0, 1, 2, 3, 23, 23.9)
    assert len(changes) == MOST_CHANGES
    refusal = keeps_changing(changes, NOW)
    assert refusal is not None
    assert (refusal.code, refusal.becomes) == ("keeps_changing", State.ESCALATED)
    assert "6 times within 24 hours" in refusal.reason
    assert keeps_changing(changes[1:], NOW) is None


def test_a_change_counts_once_and_for_a_day() -> None:
    assert keeps_changing(_hours_ago(0, 1, 2, 3, 4) * 2, NOW) is None
    assert keeps_changing(_hours_ago(0, 1, 2, 3, 4, 24), NOW) is None
    assert outdated(_hours_ago(0, 23.9, 24, 30), NOW) == _hours_ago(24, 30)
