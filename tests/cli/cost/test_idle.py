"""What is billed of a template: every resource type has a price, or a reason for none."""

from __future__ import annotations

import pytest

from cli.cost import idle
from cli.cost.billed_by_month import with_and_without_dashboard
from cli.cost.deployed import Deployed
from tests.cli.cost.templates import alarm, stack
from tests.infra.synthesized import SETTINGS, template_of

# Nothing may make the stack dearer unnoticed: whoever raises these says so in the changelog.
MOST_WITHOUT_DASHBOARD, MOST_WITH_DASHBOARD = 10, 13


@pytest.mark.parametrize("name", SETTINGS)
def test_every_resource_type_has_a_price_or_a_reason_for_none(name: str) -> None:
    assert idle.not_priced(Deployed(template_of(name).raw)) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_the_idle_stack_stays_under_what_is_said_with_its_dashboard_and_without(name: str) -> None:
    """At list price; `beyond` is what AWS does not give."""
    lines = idle.lines(Deployed(template_of(name).raw))
    with_one, without = with_and_without_dashboard(lines)
    assert 3 < without < MOST_WITHOUT_DASHBOARD < with_one < MOST_WITH_DASHBOARD
    has_one = SETTINGS[name].get("dashboard", True)
    whole = sum(each.dollars for each in lines)
    assert whole == pytest.approx(with_one if has_one else without)
    assert sum(each.beyond for each in lines) < MOST_WITHOUT_DASHBOARD


def test_both_kinds_of_stack_are_among_the_settings() -> None:
    assert {each.get("dashboard", True) for each in SETTINGS.values()} == {True, False}


def test_what_nobody_priced_is_named_and_not_zero() -> None:
    unknown = stack({"Type": "AWS::EC2::NatGateway"}, alarm())
    assert idle.not_priced(unknown) == ["AWS::EC2::NatGateway"]
    assert "AWS::EC2::NatGateway" not in idle.free(unknown)


def test_nothing_is_both_priced_and_free() -> None:
    assert idle.PRICED.keys() & idle.FREE.keys() == set()


def test_the_dearest_comes_first() -> None:
    found = [each.dollars for each in idle.lines(Deployed(template_of("default").raw))]
    assert found == sorted(found, reverse=True)


def test_no_trail_of_ours_no_line_for_it() -> None:
    existing = idle.lines(Deployed(template_of("existing trail").raw))
    assert "the trail" not in {each.what for each in existing}
