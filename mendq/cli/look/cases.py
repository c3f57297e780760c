"""`mendq cases`: every case that the case store keeps, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from mendq.cases.table import OpenCases
from mendq.cli.commands import EVERY_CASE, Kind, command
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import (
    NOT_MADE,
    STYLES,
    held_up,
    held_up_line,
    opened_at,
    step_lines,
    summary,
    timing_of,
    until,
)
from mendq.cli.output import age
from mendq.cli.undo.answers import histories_of
from mendq.model.case import Case
from mendq.model.queue import parts_of
from mendq.notifications.text import plain

WIDEST_AGE = len("59 min")
UNDER = WIDEST_AGE + 2


@command(2, Kind.LOOKING, EVERY_CASE)
def cases(
    call: Invocation,
    only_open: Annotated[bool, typer.Option("--open", help="Only those not ended.")] = False,
) -> None:
    """The cases, newest first."""
    source = call.account.stored(OpenCases)
    with call.out.waiting("reading the case store"):
        found = _open(source) if only_open else _newest(source)
    ordered = sorted(found, key=lambda each: (opened_at(each), each.case_id), reverse=True)
    call.out.document([summary(each) for each in ordered])
    if call.as_json:
        return
    if not ordered:
        call.out.say("no open case" if only_open else "no case yet")
        return
    _show(call, ordered)


def _newest(source: OpenCases) -> list[Case]:
    """The newest transition of every case."""
    return [each[-1] for each in histories_of(source.all_transitions()).values()]


def _open(source: OpenCases) -> list[Case]:
    """By the index, so that the whole table is not read; it may lag, the transitions decide."""
    found = (source.transitions(each.case_id) for each in source.by_due())
    return [each[-1] for each in found if each and not each[-1].is_final]


def _show(call: Invocation, ordered: list[Case]) -> None:
    """A block a case: what is long has the whole width."""
    now, timing = datetime.now(UTC), timing_of(call.account, ordered)
    widest = max(len(each.state) for each in ordered)
    for each in ordered:
        state = (f"{each.state:<{widest}}", STYLES.get(each.state, "dim"))
        since = f"{age(opened_at(each), now):>{WIDEST_AGE}}"
        call.out.show(Text.assemble(since, "  ", state, "  ", (plain(each.case_id), "bold")))
        call.out.whole(parts_of(each.queue_arn).name, "", indent=UNDER)
        if ends := until(each, timing):
            call.out.under(ends, "yellow", indent=UNDER)
        made = "not made: " if each.state in NOT_MADE else ""
        for line in step_lines(each.steps):
            call.out.under(f"{made}{line}", indent=UNDER)
        call.out.under(each.reason, "dim", indent=UNDER)
        if hold_up := held_up(call.account, each):
            call.out.under(held_up_line(hold_up), "yellow", indent=UNDER)
