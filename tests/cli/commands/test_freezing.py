"""Test `mendq freeze` and `mendq thaw`."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mendq.cases.items import freeze_key
from mendq.cases.table import CaseStore
from tests.account.faults import come_between
from tests.cli.builders import Operator


def _read_freeze_reason(operator: Operator) -> str | None:
    arn = "arn:aws:sqs:us-east-1:123456789012:any.fifo"
    return (
        operator.account.open_store(CaseStore)
        .look(arn, "visibility_timeout_too_short", ())
        .freeze_reason
    )


def test_freeze_takes_effect_only_with_yes(operator: Operator) -> None:
    assert operator.run("freeze", "deploying").exit_code == 2
    assert _read_freeze_reason(operator) is None
    assert operator.run_json("freeze", "deploying", "--yes")["frozen"] is True
    assert _read_freeze_reason(operator) == "deploying"


def test_thaw_without_a_freeze_needs_no_yes_and_says_that_nothing_was_frozen(
    operator: Operator,
) -> None:
    assert operator.run_json("thaw") == {"frozen": False, "was": []}


def freeze_by_two_people(operator: Operator) -> list[dict[str, Any]]:
    """Freeze twice, by two people and for two reasons. Return both answers."""
    first = operator.run_json("freeze", "deploying", "--yes")
    operator.account.__dict__["identity"] = first["by"].replace("moto", "bob")
    second = operator.run_json("freeze", "a fire", "--yes")
    assert second["by"] != first["by"]
    return [first, second]


def test_second_freeze_adds_its_reason_to_the_first(operator: Operator) -> None:
    freeze_by_two_people(operator)
    assert sorted(str(_read_freeze_reason(operator)).split("; ")) == ["a fire", "deploying"]


def test_thaw_without_yes_lists_every_freeze_with_its_author_and_ends_none(
    operator: Operator,
) -> None:
    freezes = freeze_by_two_people(operator)
    output = operator.read_output("thaw", code=2)
    for freeze in freezes:
        assert f"frozen by {freeze['by']} at {freeze['at']}: {freeze['reason']}" in output
    assert sorted(str(_read_freeze_reason(operator)).split("; ")) == ["a fire", "deploying"]


def test_thaw_with_yes_ends_every_freeze(operator: Operator) -> None:
    freezes = freeze_by_two_people(operator)
    ended = operator.run_json("thaw", "--yes")["was"]
    assert {freeze["by"] for freeze in ended} == {freeze["by"] for freeze in freezes}
    assert _read_freeze_reason(operator) is None


def test_freeze_stores_its_reason_as_one_escaped_line_of_at_most_500_characters(
    operator: Operator,
) -> None:
    freeze = operator.run_json("freeze", "up\nand\x1b[2J down " + "x" * 9_000, "--yes")
    assert freeze["reason"].startswith("up and\\x1b[2J down xxx")
    assert len(freeze["reason"]) == 500
    assert _read_freeze_reason(operator) == freeze["reason"]


def test_freeze_with_a_blank_reason_says_that_no_reason_was_given(operator: Operator) -> None:
    assert operator.run_json("freeze", " \n", "--yes")["reason"] == "no reason given"


def _put_freeze_by_hand(operator: Operator, **item: Any) -> None:
    """Put the item that README shows for an operator without `mendq`."""
    dynamodb = operator.aws.clients.dynamodb
    dynamodb.put_item(TableName="case_store", Item={**freeze_key(), **item})


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"reason": {"S": "why"}}, "why"),
        ({}, "no reason given"),
        ({"reason": {"S": ""}}, "no reason given"),
        ({"reason": {"N": "1"}, "by": {"BOOL": True}}, "no reason given"),
        ({"freezes": {"S": "x"}}, "no reason given"),
    ],
    ids=["reason", "no field", "empty reason", "reason is a number", "freezes is a text"],
)
def test_freeze_item_put_by_hand_takes_effect_whatever_its_fields_until_thaw_ends_it(
    operator: Operator, item: dict[str, Any], reason: str
) -> None:
    _put_freeze_by_hand(operator, **item)
    assert _read_freeze_reason(operator) == reason
    assert f"frozen: {reason}" in operator.read_output("thaw", code=2)
    assert operator.run_json("thaw", "--yes")["was"] == [{"reason": reason, "by": "", "at": ""}]
    assert _read_freeze_reason(operator) is None


@pytest.mark.parametrize("is_by_hand", [True, False])
def test_thaw_keeps_all_freezes_if_another_freeze_came_after_the_question(
    operator: Operator, *, is_by_hand: bool
) -> None:
    if is_by_hand:
        _put_freeze_by_hand(operator, reason={"S": "why"})
    else:
        operator.run_json("freeze", "why", "--yes")

    def freeze() -> None:
        operator.run_json("freeze", "a fire", "--yes")

    come_between(cast("Any", operator.account), "dynamodb.DeleteItem", freeze)
    assert "nothing was done" in operator.read_refusal("thaw", "--yes", code=1)
    assert sorted(str(_read_freeze_reason(operator)).split("; ")) == ["a fire", "why"]
