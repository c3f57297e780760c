from __future__ import annotations

import pytest

from functions.healing.tags import deployed_by

STACK = "aws:cloudformation:stack-name"
RESOURCE = "aws:cloudformation:logical-id"


@pytest.mark.parametrize(
    ("tags", "named"),
    [
        ({}, {}),
        ({"stack-name": "a", "mendq": "heal"}, {}),
        ({RESOURCE: "Orders"}, {}),
        ({STACK: ""}, {}),
        ({STACK: "shop"}, {"stack": "shop"}),
        ({STACK: "shop", RESOURCE: "Orders"}, {"stack": "shop", "resource": "Orders"}),
        ({STACK: "s" * 300}, {"stack": "s" * 255}),
    ],
)
def test_a_stack_is_named_by_cloudformations_own_tags(
    tags: dict[str, str], named: dict[str, str]
) -> None:
    assert deployed_by(tags) == named
