from __future__ import annotations

import pytest

from mendq.model.limits import TagUnreadable, deployed_by, seconds_tag

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


@pytest.mark.parametrize(
    ("tags", "seconds"), [({}, None), ({"t": "1"}, 1), ({"t": "040"}, 40), ({"t": "43200"}, 43_200)]
)
def test_a_tag_names_whole_seconds(tags: dict[str, str], seconds: int | None) -> None:
    assert seconds_tag(tags, "t") == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "43201", "1000000", "-1", "1.5", "40 s", " 40", "\N{ARABIC-INDIC DIGIT FOUR}"]
)
def test_a_tag_of_anything_else_is_named(text: str) -> None:
    with pytest.raises(TagUnreadable, match="the tag t must be a whole number"):
        seconds_tag({"t": text}, "t")
