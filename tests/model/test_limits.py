"""Test the mode of a queue from settings and tags, and the reading of tags."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.tags import TagUnreadable, find_cloudformation_resource, read_seconds_tag
from tests.model.builders import make_consent
from tests.model.tables import table

OBSERVE = Mode.OBSERVE


@pytest.mark.parametrize(("name", "consent", "tags", "mode"), table("modes"))
def test_mode_of_a_queue_follows_settings_tag_and_quarantine_name(
    name: str, consent: dict[str, Any], tags: dict[str, str], mode: str | None
) -> None:
    """In the table, `consent` is the account's mode, the highest mode by tag, and the queues."""
    queue_mode = make_consent(consent).mode_of(name, tags)
    expected = None if mode is None else Mode(mode)
    assert queue_mode is expected


QUEUES_THAT_DO_NOT_NAME_ORDERS = [(), ("order", "orders-*")]
ANY_ACCOUNT_MODE = pytest.mark.parametrize("account", list(Mode))
ANY_HIGHEST_MODE = pytest.mark.parametrize("raise_to", list(Mode))


@ANY_ACCOUNT_MODE
@ANY_HIGHEST_MODE
@pytest.mark.parametrize("tag", list(Mode))
def test_mode_tag_lowers_the_settings_mode_and_raises_it_only_to_the_settings_limit(
    account: Mode, raise_to: Mode, tag: Mode
) -> None:
    consent = Consent(account, raise_to, ("orders",))
    assert consent.mode_of("orders", {}) is account
    assert consent.mode_of("orders", {"mendq": str(tag)}) is min(tag, max(account, raise_to))


@ANY_ACCOUNT_MODE
@ANY_HIGHEST_MODE
@pytest.mark.parametrize("tag", list(Mode))
@pytest.mark.parametrize("queues", QUEUES_THAT_DO_NOT_NAME_ORDERS)
def test_queue_that_settings_do_not_name_has_a_mode_only_by_its_tag_up_to_the_limit(
    account: Mode, raise_to: Mode, tag: Mode, queues: tuple[str, ...]
) -> None:
    consent = Consent(account, raise_to, queues)
    assert consent.mode_of("orders", {}) is None
    assert consent.mode_of("orders", {"mendq": str(tag)}) is min(tag, raise_to)


@ANY_ACCOUNT_MODE
@ANY_HIGHEST_MODE
@pytest.mark.parametrize("queues", [("orders",), *QUEUES_THAT_DO_NOT_NAME_ORDERS])
def test_misspelled_mode_tag_means_observe(
    account: Mode, raise_to: Mode, queues: tuple[str, ...]
) -> None:
    consent = Consent(account, raise_to, queues)
    assert consent.mode_of("orders", {"mendq": "Heal"}) is OBSERVE


@pytest.mark.parametrize(("tags", "named"), table("stacks"))
def test_cloudformation_stack_is_read_only_from_cloudformations_own_tags(
    tags: dict[str, str], named: dict[str, str]
) -> None:
    assert find_cloudformation_resource(tags) == named


@pytest.mark.parametrize(("text", "seconds"), [("1", 1), ("040", 40), ("43200", 43_200)])
def test_seconds_tag_is_read_as_whole_seconds_up_to_12_hours(text: str, seconds: int) -> None:
    assert read_seconds_tag({"t": text}, "t") == seconds


def test_seconds_tag_that_the_queue_does_not_have_is_none() -> None:
    assert read_seconds_tag({}, "t") is None


@pytest.mark.parametrize(
    "text", ["", "0", "43201", "1000000", "-1", "1.5", "40 s", " 40", "\N{ARABIC-INDIC DIGIT FOUR}"]
)
def test_seconds_tag_that_is_no_whole_number_from_1_to_43200_raises_and_names_the_tag(
    text: str,
) -> None:
    with pytest.raises(TagUnreadable, match="the tag t must be a whole number"):
        read_seconds_tag({"t": text}, "t")
