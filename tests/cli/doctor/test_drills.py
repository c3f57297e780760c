"""A tag that silences is seen."""

from __future__ import annotations

import pytest

from cli.doctor import drills
from cli.doctor.check import Command
from functions.aws.managed_queues import ManagedQueue
from functions.healing.managed import DRILL_TAG
from tests.architecture.aws_commands import mistake_in

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"


def _queues(*marked: str) -> list[ManagedQueue]:
    plain = ManagedQueue(ARN, {"mendq": "heal"})
    return [plain, *(ManagedQueue(f"{ARN}-{each}", {DRILL_TAG: ""}) for each in marked)]


def test_without_the_tag_there_is_nothing_to_say() -> None:
    assert list(drills.look(_queues())) == []


@pytest.mark.parametrize(
    ("marked", "named"),
    [("a", "orders-a"), ("abcde", "orders-a, orders-b, orders-c and 2 more")],
)
def test_the_queues_are_named_whatever_the_tag_holds(marked: str, named: str) -> None:
    (check,) = drills.look(_queues(*marked))
    assert "nobody is paged" in check.says
    assert check.says.endswith(f": {named}")
    assert isinstance(check.cure, Command)
    assert mistake_in(check.cure) == ""
    assert "untag-queue --region us-east-1" in check.cure
