from __future__ import annotations

from typing import Any, cast

import pytest

from mendq.cases.items import freeze_key
from mendq.cases.table import CaseStore
from tests.account.faults import come_between
from tests.cli.builders import Operator


def _frozen(operator: Operator) -> str | None:
    arn = "arn:aws:sqs:us-east-1:123456789012:any.fifo"
    return (
        operator.account.open_store(CaseStore)
        .look(arn, "visibility_timeout_too_short", ())
        .freeze_reason
    )


def test_freeze_and_thaw_take_effect_only_with_yes_and_thaw_ends_every_freeze(
    operator: Operator,
) -> None:
    """A second freeze adds its reason and author, and a thaw ends both."""
    assert operator.mendq("freeze", "deploying").exit_code == 2
    assert _frozen(operator) is None
    assert operator.json("thaw") == {"frozen": False, "was": []}
    first = operator.json("freeze", "deploying", "--yes")
    assert (first["frozen"], _frozen(operator)) == (True, "deploying")
    operator.account.__dict__["identity"] = first["by"].replace("moto", "bob")
    second = operator.json("freeze", "a fire", "--yes")
    assert second["by"] != first["by"]
    shown = operator.shown("thaw", code=2)
    for said in (first, second):
        assert f"frozen by {said['by']} at {said['at']}: {said['reason']}" in shown
    assert sorted(str(_frozen(operator)).split("; ")) == ["a fire", "deploying"]
    was = operator.json("thaw", "--yes")["was"]
    assert sorted(each["by"] for each in was) == sorted([first["by"], second["by"]])
    assert _frozen(operator) is None


def test_freeze_stores_its_reason_as_one_escaped_line_of_at_most_500_characters(
    operator: Operator,
) -> None:
    said = operator.json("freeze", "up\nand\x1b[2J down " + "x" * 9_000, "--yes")
    assert said["reason"].startswith("up and\\x1b[2J down xxx")
    assert len(said["reason"]) == 500
    assert _frozen(operator) == said["reason"]
    assert operator.json("freeze", " \n", "--yes")["reason"] == "no reason given"


def _by_hand(operator: Operator, **item: Any) -> None:
    """As README has it for whoever is without `mendq`."""
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
)
def test_freeze_item_put_by_hand_counts_whatever_its_fields_and_has_no_author(
    operator: Operator, item: dict[str, Any], reason: str
) -> None:
    _by_hand(operator, **item)
    assert _frozen(operator) == reason
    assert f"frozen: {reason}" in operator.shown("thaw", code=2)
    assert operator.json("thaw", "--yes")["was"] == [{"reason": reason, "by": "", "at": ""}]
    assert _frozen(operator) is None


@pytest.mark.parametrize("is_by_hand", [True, False])
def test_thaw_keeps_all_freezes_if_another_freeze_came_after_the_question(
    operator: Operator, *, is_by_hand: bool
) -> None:
    if is_by_hand:
        _by_hand(operator, reason={"S": "why"})
    else:
        operator.json("freeze", "why", "--yes")

    def freeze() -> None:
        operator.json("freeze", "a fire", "--yes")

    come_between(cast("Any", operator.account), "dynamodb.DeleteItem", freeze)
    assert "nothing was done" in operator.refused("thaw", "--yes", code=1)
    assert sorted(str(_frozen(operator)).split("; ")) == ["a fire", "why"]
