"""What docs/cost.md derives: whole tables, and no resource type left out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from bench import cost_page
from cli.cost import bill
from cli.cost.bill import Deployed
from infra.prices import ALARM_METRIC_MONTH, COMPOSITE_MONTH, DASHBOARD_MONTH, EVERY
from tests.bench.markdown import tables_of
from tests.infra.synthesized import template_of

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def stack_cost() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stack_cost", DOCS / "stack_cost.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_line_of_the_bill_is_in_a_table(stack_cost: ModuleType) -> None:
    stack = Deployed(template_of("default").raw)
    idle, watched, failed, prices = tables_of("\n".join(stack_cost.parts(stack)) + "\n")
    assert [row[0] for row in idle[2:-1]] == [each.what for each in bill.lines(stack)]
    assert {len(row) for table in (idle, watched, failed, prices) for row in table} == {3, 4}
    assert len(prices) == 2 + len(EVERY)


def test_what_aws_gives_is_given_to_each_payer(stack_cost: ModuleType) -> None:
    """Not to each account, nor to each stack: an organization's forty share it."""
    parts = "\n".join(stack_cost.parts(Deployed(template_of("default").raw)))
    assert "| given to each payer, a month |" in parts
    assert "given once to each payer" in parts
    assert "given to each account" not in parts


@pytest.mark.parametrize("settings", ["default", "existing trail"])
def test_the_head_says_what_the_stack_costs_with_its_dashboard_and_without(
    stack_cost: ModuleType, settings: str
) -> None:
    """Of either kind of stack: the table's sum is one of both."""
    stack = Deployed(template_of(settings).raw)
    said = stack_cost.idle_words(stack)
    sums = re.search(r"\*\*together\*\* \|  \| (\S+) \|", "\n".join(stack_cost.parts(stack)))
    assert sums
    with_one, without = (float(each) for each in re.findall(r"\*\*\$([\d.]+)\*\*", said))
    assert with_one == pytest.approx(without + DASHBOARD_MONTH.dollars)
    assert sums[1] in said
    assert "at most 3 have theirs for nothing" in said


def test_the_decision_about_composites_names_the_prices() -> None:
    page = (DOCS / "decisions.md").read_text()
    _, _, rest = page.partition("## Most alarms page by themselves")
    decision = " ".join(rest.partition("\n## ")[0].split())
    assert f"an alarm is ${ALARM_METRIC_MONTH.dollars:.2f} a metric" in decision
    assert f"a composite ${COMPOSITE_MONTH.dollars:.2f}" in decision


def test_a_resource_that_nobody_priced_ends_it(stack_cost: ModuleType) -> None:
    unknown = Deployed({"Resources": {"A": {"Type": "AWS::EC2::NatGateway"}}})
    with pytest.raises(ValueError, match="AWS::EC2::NatGateway"):
        list(stack_cost.parts(unknown))


def test_every_price_has_a_page_of_aws() -> None:
    assert {each.page.startswith("https://aws.amazon.com/") for each in EVERY} == {True}


def test_every_part_has_its_marks_once(stack_cost: ModuleType) -> None:
    page = (DOCS / "cost.md").read_text()
    marks = (
        *(stack_cost.IDLE_BEGIN, stack_cost.IDLE_END, stack_cost.BEGIN, stack_cost.END),
        *(cost_page.BEGIN, cost_page.END),
    )
    for mark in marks:
        assert page.count(mark) == 1
