"""How far Mendq may go on a queue, and what tags say."""

from __future__ import annotations

import pytest

from mendq.model.limits import Consent, Mode, TagUnreadable, deployed_by, seconds_tag

OBSERVE, PROPOSE, HEAL = Mode.OBSERVE, Mode.PROPOSE, Mode.HEAL
STACK = "aws:cloudformation:stack-name"
RESOURCE = "aws:cloudformation:logical-id"


@pytest.mark.parametrize(
    "pattern", ["Orders", "order", "orders.fif", "rders*", "*x", "*", "orders*.fifo"]
)
def test_another_name_is_not_managed(pattern: str) -> None:
    assert Consent(HEAL, HEAL, (pattern,)).mode_of("orders.fifo", {}) is None


def test_empty_settings_manage_nothing() -> None:
    assert Consent(HEAL, HEAL).mode_of("orders", {}) is None


@pytest.mark.parametrize("pattern", ["orders", "ord*"])
def test_a_named_queue_has_the_accounts_mode_and_off_wins(pattern: str) -> None:
    assert Consent(PROPOSE, OBSERVE, (pattern,)).mode_of("orders", {}) is PROPOSE
    assert Consent(HEAL, HEAL, (pattern,)).mode_of("orders", {"mendq": "off"}) is None


@pytest.mark.parametrize("name", ["orders-quarantine", "orders-quarantine.fifo"])
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}, {"mendq": "observe"}, {"mendq": "?"}])
def test_a_quarantine_is_never_managed_whatever_names_or_tags_it(
    name: str, tags: dict[str, str]
) -> None:
    """A prefix that is meant for its source fits it as well."""
    for queues in ((), ("orders*",), (name,)):
        assert Consent(HEAL, HEAL, queues).mode_of(name, tags) is None


@pytest.mark.parametrize("name", ["orders-quarantine-2", "quarantine", "orders-quarantined"])
def test_a_name_that_is_only_like_a_quarantine_s_may_be_managed(name: str) -> None:
    assert Consent(HEAL, HEAL, (name,)).mode_of(name, {}) is HEAL


@pytest.mark.parametrize("tag", ["", "on", "Heal", "heal,propose", "true"])
def test_a_tag_that_cannot_be_read_only_observes(tag: str) -> None:
    assert Consent(HEAL, HEAL).mode_of("orders", {"mendq": tag}) is OBSERVE


@pytest.mark.parametrize("account", list(Mode))
@pytest.mark.parametrize("raise_to", list(Mode))
@pytest.mark.parametrize("tag", list(Mode))
def test_a_tag_lowers_freely_and_raises_as_far_as_it_may(
    account: Mode, raise_to: Mode, tag: Mode
) -> None:
    got = Consent(account, raise_to).mode_of("orders", {"mendq": str(tag)})
    assert got is min(tag, max(account, raise_to))


@pytest.mark.parametrize(
    ("tags", "named"),
    [
        ({"stack-name": "a", "mendq": "heal"}, {}),
        ({RESOURCE: "Orders"}, {}),
        ({STACK: ""}, {}),
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
