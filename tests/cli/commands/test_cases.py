from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.cli.exit_codes import Stopped
from tests.cli.conftest import Operator, StandIn
from tests.heal.operators import case_of, move

KEYS = ["case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason", "code"]


def test_cases_come_newest_first_each_by_its_newest_transition(operator: Operator) -> None:
    assert operator.json("cases") == []
    assert operator.shown("cases") == "no case yet"
    older = operator.applied("older.fifo")
    operator.aws.later(minutes=5)
    newer = operator.applied("newer.fifo")
    found = operator.json("cases")
    assert [each["case_id"] for each in found] == [newer, older]
    assert list(found[0]) == KEYS
    assert found[0]["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert found[0]["state"] == "applied"
    assert found[0]["opened_at"] > found[1]["opened_at"]
    move(operator.aws, case_of(operator.aws), "closed")
    assert [each["state"] for each in operator.json("cases")] == ["closed", "applied"]
    assert [each["case_id"] for each in operator.json("cases", "--open")] == [older]


def test_people_get_whole_names_and_the_whole_reason(operator: Operator) -> None:
    queue = f"{'orders-of-the-whole-company-' * 2}eu.fifo"
    case_id = operator.applied(queue)
    shown = operator.mendq("cases").stdout
    assert f" {queue}\n" in shown
    assert "        VisibilityTimeout: 30 s -> 45 s" in shown
    assert max(map(len, shown.splitlines())) <= 80
    for said in (case_id, case_of(operator.aws).reason):
        assert said in operator.shown("cases")


def test_a_proposal_says_until_when_it_can_be_approved_where_settings_can_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.proposed()
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at, shown = case_of(operator.aws).at + hours, operator.shown("cases")
    assert "not made: VisibilityTimeout: 30 s -> 45 s" in shown
    assert f"until {ends_at:%Y-%m-%d %H:%M} UTC" in shown

    def unreadable(_: StandIn) -> None:
        raise Stopped("no settings")

    monkeypatch.setattr(StandIn, "settings", property(unreadable))
    shown = operator.shown("cases")
    assert case_id in shown
    assert "until when is not known" in shown
