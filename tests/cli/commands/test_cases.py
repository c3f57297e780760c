from __future__ import annotations

from tests.cli.conftest import Operator

KEYS = ["case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason"]


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


def test_open_ones_are_found_by_the_index(operator: Operator) -> None:
    case_id = operator.applied()
    assert [each["case_id"] for each in operator.json("cases", "--open")] == [case_id]


def test_people_get_a_table_with_the_whole_id(operator: Operator) -> None:
    case_id = operator.applied()
    shown = operator.mendq("cases").stdout
    assert case_id in shown
    assert "orders.fifo" in shown
    assert max(map(len, shown.splitlines())) <= 80
