from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.cli.exit_codes import Stopped
from tests.cli.conftest import Operator, StandIn
from tests.heal.operators import case_of

KEYS = ["case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason", "code"]


def test_no_case_is_an_empty_array(operator: Operator) -> None:
    assert operator.json("cases") == []
    assert "no case yet" in operator.mendq("cases").stdout


def test_cases_come_newest_first_each_by_its_newest_transition(operator: Operator) -> None:
    older = operator.applied("older.fifo")
    operator.aws.later(minutes=5)
    newer = operator.applied("newer.fifo")
    found = operator.json("cases")
    assert [each["case_id"] for each in found] == [newer, older]
    assert list(found[0]) == KEYS
    assert found[0]["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert found[0]["state"] == "applied"
    assert found[0]["opened_at"] > found[1]["opened_at"]


def test_what_has_ended_is_not_open(operator: Operator) -> None:
    arn = operator.aws.queue(tag="observe", VisibilityTimeout="30")
    operator.aws.later(seconds=200)
    operator.aws.heal(operator.aws.late_deletes(arn, "a", "b", "c"))
    assert [each["state"] for each in operator.json("cases")] == ["observed"]
    assert operator.json("cases", "--open") == []


def test_people_get_whole_names_and_the_whole_reason(operator: Operator) -> None:
    queue = f"{'orders-of-the-whole-company-' * 2}eu.fifo"
    case_id = operator.applied(queue)
    shown = operator.mendq("cases").stdout
    assert case_id in shown
    assert queue in shown
    assert "        VisibilityTimeout: 30 s -> 45 s" in shown
    assert case_of(operator.aws).reason in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_a_proposal_says_until_when_it_can_be_approved(operator: Operator) -> None:
    operator.proposed()
    assert "not made: VisibilityTimeout: 30 s -> 45 s" in operator.mendq("cases").stdout
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at = case_of(operator.aws).at + hours
    assert f"until {ends_at:%Y-%m-%d %H:%M} UTC" in operator.mendq("cases").stdout


def test_the_cases_are_listed_where_settings_cannot_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.proposed()

    def unreadable(_: StandIn) -> None:
        raise Stopped("no settings")

    monkeypatch.setattr(StandIn, "settings", property(unreadable))
    result = operator.mendq("cases")
    assert result.exit_code == 0
    assert case_id in result.stdout
    assert "until when is not known" in result.stdout
