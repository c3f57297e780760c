"""Texts in the docs that are derived from the code. `make check` finds stale ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from docs import costs, derive
from mendq.cli.cost.bill import BilledStack
from mendq.model.limits import Bounds
from mendq.model.prices import DASHBOARD_MONTH
from mendq.redrive.machine import MOST_TICKS_WITHOUT_RESULT
from tests.infra.synthesized import template_of
from tests.source_files import ROOT

DOCS = ROOT / "docs"
EVERY_PAGE = [ROOT / "README.md", *DOCS.rglob("*.md")]


def _read_page(name: str) -> str:
    """The page's text on one line."""
    return " ".join((DOCS / name).read_text().split())


def test_every_function_for_derived_text_is_used_once_in_the_docs() -> None:
    text = "".join(page.read_text() for page in EVERY_PAGE)
    marks = [mark["name"] for mark in derive.DERIVED_PART_PATTERN.finditer(text)]
    assert text.count("(make docs) -->") == len(marks) == len(set(marks))
    assert {name.partition(" ")[0] for name in marks} == set(_list_derived_functions())


def _list_derived_functions() -> Iterator[str]:
    """The functions that say a piece of a page: they take a name, numbers or the stack alone."""
    for place, module in derive.MODULE_BY_NAME.items():
        for name, function in inspect.getmembers(module, inspect.isfunction):
            asked = inspect.signature(function)
            if (
                asked.return_annotation == "str"
                and function.__module__ == module.__name__
                and name[0] != "_"
                and {*asked.parameters}
                <= {"name", "stack", "stacks", "stack_count_text", "queue_count_text"}
            ):
                yield f"{place}.{name}"


def test_redrive_stages_page_states_the_default_limits_of_the_code() -> None:
    page = _read_page("redrive-stages.md")
    bounds = Bounds()
    for sentence in (
        f"**Canary.** {bounds.canary} messages",
        f"**Second canary.** {bounds.second_canary} messages",
        f"fewer than {bounds.least_judged_messages} have gone",
        (
            f"Until {bounds.least_judged_messages} have gone, the share is computed over "
            f"{bounds.least_judged_messages}, so "
            f"{bounds.halt_threshold(bounds.least_judged_messages)} returned messages halt"
        ),
        f"{bounds.growth} times as many messages as have gone back so far",
        f"`timing.soakFactor` (at least {bounds.soak_factor}, as shipped)",
        f"At most {bounds.rate_share:.0%} of the messages that the source's consumers deleted",
        f"in the last {bounds.measuring_seconds // 60} minutes",
        f"at most {bounds.mover_per_tick:,} a minute",
        (
            f"when {bounds.halt_returned} messages came back, or "
            f"{bounds.halt_share:.0%} of what was moved"
        ),
        f"queue of more than {bounds.census:,} messages",
        (
            f"If {('no', 'one', 'two', 'three')[MOST_TICKS_WITHOUT_RESULT]} ticks in a row moved "
            "nothing"
        ),
    ):
        assert sentence in page
    assert page.count(f"after {bounds.patience_seconds // 60} minutes") == 2


def _make_billed_stacks() -> list[BilledStack]:
    return [BilledStack(template_of(template).raw) for template in ("default", "existing trail")]


def _read_cost(name: str) -> float:
    return float(costs.number(name, _make_billed_stacks()).lstrip("$"))


def test_cost_page_figures_equal_the_bill_of_the_stack_with_and_without_its_dashboard() -> None:
    stacks = _make_billed_stacks()
    stack, _ = stacks
    said = [costs.number(name, stacks) for name in ("with_dashboard", "without_dashboard")]
    sums = re.search(r"\*\*together\*\* \|  \| \*\*(\S+)\*\* \|", costs.stack_bill(stack))
    assert sums
    with_one, without = (float(figure.lstrip("$")) for figure in said)
    assert with_one == pytest.approx(without + DASHBOARD_MONTH.dollars)
    assert sums[1] in said


def test_smallest_stack_costs_less_than_5_dollars_a_month_and_with_essential_alarms_6_50() -> None:
    """What docs/cost.md promises of the essential alarms."""
    assert _read_cost("least") < 5 < _read_cost("watched") < 6.5 < _read_cost("without_dashboard")


def test_stack_bill_with_an_unpriced_resource_type_raises_value_error() -> None:
    unknown = BilledStack({"Resources": {"A": {"Type": "AWS::EC2::NatGateway"}}})
    with pytest.raises(ValueError, match="AWS::EC2::NatGateway"):
        costs.stack_bill(unknown)
