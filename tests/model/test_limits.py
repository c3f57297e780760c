"""Test the mode of a queue from settings and tags, and the reading of tags."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.tags import TagUnreadable, find_cloudformation_resource, read_seconds_tag
from tests.model.tables import table

OBSERVE = Mode.OBSERVE


@pytest.mark.parametrize(("name", "consent", "tags", "mode"), table("modes"))
def test_mode_of_a_queue_follows_settings_tag_and_quarantine_name(
    name: str, consent: Any, tags: dict[str, str], mode: str | None
) -> None:
    account_index, raise_to_index, queues = consent
    modes = list(Mode)
    settings = Consent(modes[account_index], modes[raise_to_index], tuple(queues))
    queue_mode = settings.mode_of(name, tags)
    assert (None if queue_mode is None else str(queue_mode)) == mode


@pytest.mark.parametrize("account", list(Mode))
@pytest.mark.parametrize("raise_to", list(Mode))
@pytest.mark.parametrize("tag", list(Mode))
def test_mode_tag_lowers_any_mode_and_raises_only_to_the_settings_limit(
    account: Mode, raise_to: Mode, tag: Mode
) -> None:
    """The account's mode does not apply to a queue that the settings do not name."""
    named = (("orders",), account)
    not_named = [((), None), (("order", "orders-*"), None)]
    for queues, mode_without_tag in (named, *not_named):
        consent = Consent(account, raise_to, queues)
        assert consent.mode_of("orders", {}) is mode_without_tag
        highest = max(mode_without_tag or OBSERVE, raise_to)
        assert consent.mode_of("orders", {"mendq": str(tag)}) is min(tag, highest)
        assert consent.mode_of("orders", {"mendq": "Heal"}) is OBSERVE


@pytest.mark.parametrize(("tags", "named"), table("stacks"))
def test_cloudformation_stack_is_read_only_from_cloudformations_own_tags(
    tags: dict[str, str], named: dict[str, str]
) -> None:
    assert find_cloudformation_resource(tags) == named


@pytest.mark.parametrize(
    "text", ["", "0", "43201", "1000000", "-1", "1.5", "40 s", " 40", "\N{ARABIC-INDIC DIGIT FOUR}"]
)
def test_seconds_tag_accepts_whole_seconds_up_to_12_hours_and_names_the_tag_otherwise(
    text: str,
) -> None:
    assert read_seconds_tag({}, "t") is None
    accepted = ("1", "040", "43200")
    assert [read_seconds_tag({"t": value}, "t") for value in accepted] == [1, 40, 43_200]
    with pytest.raises(TagUnreadable, match="the tag t must be a whole number"):
        read_seconds_tag({"t": text}, "t")
