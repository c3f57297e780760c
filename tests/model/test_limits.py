"""How far Mendq may go on a queue, and what tags say."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.tags import TagUnreadable, find_cloudformation_resource, read_seconds_tag
from tests.model.tables import table

OBSERVE = Mode.OBSERVE


@pytest.mark.parametrize(("name", "consent", "tags", "mode"), table("modes"))
def test_settings_name_a_queue_and_a_tag_or_a_quarantine_s_name_takes_it_out(
    name: str, consent: Any, tags: dict[str, str], mode: str | None
) -> None:
    account, raised, queues = consent
    found = Consent([*Mode][account], [*Mode][raised], tuple(queues)).mode_of(name, tags)
    assert (None if found is None else str(found)) == mode


@pytest.mark.parametrize("account", list(Mode))
@pytest.mark.parametrize("raise_to", list(Mode))
@pytest.mark.parametrize("tag", list(Mode))
def test_a_tag_lowers_freely_and_raises_as_far_as_it_may(
    account: Mode, raise_to: Mode, tag: Mode
) -> None:
    """A queue that nobody named has nothing of the account's mode."""
    for queues, begins in ((("orders",), account), ((), None), (("order", "orders-*"), None)):
        consent = Consent(account, raise_to, queues)
        assert consent.mode_of("orders", {}) is begins
        raised = max(begins or OBSERVE, raise_to)
        assert consent.mode_of("orders", {"mendq": str(tag)}) is min(tag, raised)
        assert consent.mode_of("orders", {"mendq": "Heal"}) is OBSERVE


@pytest.mark.parametrize(("tags", "named"), table("stacks"))
def test_a_stack_is_named_by_cloudformations_own_tags(
    tags: dict[str, str], named: dict[str, str]
) -> None:
    assert find_cloudformation_resource(tags) == named


@pytest.mark.parametrize(
    "text", ["", "0", "43201", "1000000", "-1", "1.5", "40 s", " 40", "\N{ARABIC-INDIC DIGIT FOUR}"]
)
def test_a_tag_names_whole_seconds_and_anything_else_is_named(text: str) -> None:
    assert read_seconds_tag({}, "t") is None
    assert [read_seconds_tag({"t": each}, "t") for each in ("1", "040", "43200")] == [1, 40, 43_200]
    with pytest.raises(TagUnreadable, match="the tag t must be a whole number"):
        read_seconds_tag({"t": text}, "t")
