"""What is billed of a template: every resource type has a price, or a reason for none."""

from __future__ import annotations

import pytest

from cli.cost import idle
from cli.cost.deployed import Deployed
from tests.cli.cost.templates import alarm, stack
from tests.infra.synthesized import SETTINGS, template_of

# Nothing may make the stack dearer unnoticed: whoever raises this says so in the changelog.
MOST_DOLLARS = 10


@pytest.mark.parametrize("name", SETTINGS)
def test_every_resource_type_has_a_price_or_a_reason_for_none(name: str) -> None:
    assert idle.not_priced(Deployed(template_of(name).raw)) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_the_idle_stack_stays_under_ten_dollars(name: str) -> None:
    """At list price but for the dashboard, of which AWS gives each payer three."""
    lines = idle.lines(Deployed(template_of(name).raw))
    assert 3 < sum(each.dollars for each in lines if each.what != "dashboard") < MOST_DOLLARS
    assert sum(each.beyond for each in lines) < MOST_DOLLARS


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
