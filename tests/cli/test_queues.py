from __future__ import annotations

from dataclasses import replace

from mendq.cli.queues import managed_queues
from tests.cli.conftest import Operator


def test_tagged_and_named_once_each_in_order(operator: Operator) -> None:
    for name, tag in (("b-named", None), ("b-both", "heal"), ("a-tagged", "propose")):
        operator.aws.queue(name, tag=tag)
    known = replace(operator.account.known, queues=("b-*", "gone"))
    found = managed_queues(replace(operator.account, known=known))
    assert [(each.name, dict(each.tags)) for each in found] == [
        ("a-tagged", {"mendq": "propose"}),
        ("b-both", {"mendq": "heal"}),
        ("b-named", {}),
    ], "one that is named and does not exist is none"
