"""What the documents derive from the code is whole, and none of it is stale."""

from __future__ import annotations

import json
import re

import pytest

from docs import costs, derive, tables
from mendq.catalogue import CATALOGUE
from mendq.cli.commands import CASE_STORE
from mendq.cli.cost.bill import Deployed
from mendq.cli.cost.calls import NO_RECEIVES, hidden_by
from mendq.cli.permissions import MESSAGES, RIGHTS, look, steer
from mendq.model import lifecycle
from mendq.model.case import FINAL, State
from mendq.model.lifecycle import MANUAL_TRANSITIONS
from mendq.model.limits import Bounds
from mendq.model.prices import ALARM_METRIC_MONTH, COMPOSITE_MONTH, DASHBOARD_MONTH
from mendq.redrive import machine
from mendq.redrive.progress import Stage
from tests.architecture.test_documents import ROOT
from tests.infra.synthesized import template_of
from tests.prove.endings import may_transition

DOCS = ROOT / "docs"
EVERY_PAGE = [ROOT / "README.md", *DOCS.rglob("*.md")]


def _page(name: str) -> str:
    """The page's text on one line."""
    return " ".join((DOCS / name).read_text().split())


def test_no_document_is_stale_and_every_derived_part_stands_on_a_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert derive.main(["--check"]) == 0, capsys.readouterr().err
    text = "".join(each.read_text() for each in EVERY_PAGE)
    assert sorted(each["name"] for each in derive.MARKED.finditer(text)) == sorted(derive.DERIVED)
    assert text.count("(make docs) -->") == len(derive.DERIVED)


@pytest.mark.parametrize("old", ["\nold\n", "\n", "old", ""])
def test_what_stands_between_the_marks_is_replaced_and_nothing_else(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derive, "DERIVED", {"it": lambda: "new"})
    begin, end = "<!-- derived: it (make docs) -->", "<!-- end -->"
    new = "\nnew\n" if old.startswith("\n") else "new"
    assert derive.derived(f"a {begin}{old}{end} b {end}") == f"a {begin}{new}{end} b {end}"
    with pytest.raises(KeyError, match="nothing"):
        derive.derived("<!-- derived: nothing (make docs) --><!-- end -->")


def test_every_row_and_every_state_stands_in_its_table() -> None:
    moves, stages = tables.moves(), tables.stage_rows()
    for row in (*lifecycle.TABLE, *MANUAL_TRANSITIONS):
        assert f"| {row.because} |" in moves, row.because
    assert all(row.when.__doc__ for row in lifecycle.TABLE)
    for stage_row in machine.TABLE:
        assert f"| {stage_row.when.__doc__} | {stage_row.does.__doc__} |" in stages
    assert all(f"`{state}`" in moves for state in State)
    assert all(f"`{stage}`" in stages for stage in Stage)


def test_what_is_in_no_row_may_not_be() -> None:
    ways = {(a, b) for a in (None, *State) for b in State if may_transition(a, b)}
    assert {(None, State.APPLIED), (State.PROPOSED, State.APPROVED)} <= ways
    assert not {(None, State.VERIFIED), (State.PROPOSED, State.APPLIED)} & ways
    left = {each for each in ways if each[0] in FINAL}
    assert left == {(State.CLOSED, State.ROLLED_BACK), (State.CLOSED, State.OVERRIDDEN)}
    assert {into for _, into in ways} == set(State)


def test_the_bounds_in_the_text_of_the_stages_are_the_shipped_ones() -> None:
    page, bounds = _page("redrive-stages.md"), Bounds()
    for said in (
        f"**Canary.** {bounds.canary} messages",
        f"{bounds.growth} times what the one before has proven",
        f"`timing.soakFactor` (at least {bounds.soak_factor}, as shipped)",
        f"{bounds.rate_share:.0%} of what the source's consumers deleted",
        f"in the last {bounds.measuring_seconds // 60} minutes",
        f"{bounds.mover_per_tick:,} a minute at most",
        f"When {bounds.halt_returned} came back, or {bounds.halt_share:.0%} of what was moved",
        f"queue of more than {bounds.census:,} messages",
    ):
        assert said in page
    assert page.count(f"after {bounds.patience_seconds // 60} minutes") == 2


def test_both_policies_can_be_copied_and_each_command_is_there() -> None:
    page, redrive_page = (DOCS / "rights.md").read_text(), (DOCS / "redrive.md").read_text()
    shown = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert [json.loads(each) for each in shown] == [look(), steer()]
    assert all(f"`{each}`" in page for each in RIGHTS)
    for action in frozenset().union(*MESSAGES.values()) - CASE_STORE:
        assert action.partition(":")[2] in redrive_page, action
    assert "## Look\n" in page
    assert redrive_page.count("(rights.md#look)") == 2


def test_leaving_receives_out_names_all_that_it_hides() -> None:
    hidden, said = hidden_by(NO_RECEIVES, tables.QUEUES), tables.hidden_without_receives()
    assert len(hidden.in_part) > 3
    assert all(f"`{name}`" in said for name in (*hidden.wholly, *hidden.in_part))
    assert "a consumer that is refused" in said


def test_queues_of_both_kinds_are_asked_what_a_trail_hides() -> None:
    for symptom in CATALOGUE:
        kinds = [any(each.on(arn) for each in symptom.seen_as) for arn in tables.QUEUES]
        assert any(kinds) or not symptom.seen_as


@pytest.mark.parametrize("settings", ["default", "existing trail"])
def test_the_head_says_what_the_stack_costs_with_its_dashboard_and_without(settings: str) -> None:
    """Of either kind of stack: the table's sum is one of both."""
    stack = Deployed(template_of(settings).raw)
    said = costs.idle_stack(stack)
    sums = re.search(r"\*\*together\*\* \|  \| (\S+) \|", costs.stack_and_prices(stack))
    assert sums
    with_one, without = (float(each) for each in re.findall(r"\*\*\$([\d.]+)\*\*", said))
    assert with_one == pytest.approx(without + DASHBOARD_MONTH.dollars)
    assert sums[1] in said


def test_a_resource_that_nobody_priced_stops_it() -> None:
    unknown = Deployed({"Resources": {"A": {"Type": "AWS::EC2::NatGateway"}}})
    with pytest.raises(ValueError, match="AWS::EC2::NatGateway"):
        costs.stack_and_prices(unknown)


def test_the_decision_about_composites_names_the_prices() -> None:
    rest = _page("decisions.md").partition("## Most alarms page by themselves")[2]
    assert f"an alarm is ${ALARM_METRIC_MONTH.dollars:.2f} a metric" in rest.partition(" ## ")[0]
    assert f"a composite ${COMPOSITE_MONTH.dollars:.2f}" in rest.partition(" ## ")[0]
