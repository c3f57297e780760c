"""`mendq cases`: list the cases in the case store, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated

import typer
from rich.text import Text

from mendq.cases.table import OpenCases
from mendq.catalogue import BY_NAME
from mendq.cli.commands import CASE_SCAN_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import (
    NOT_MADE,
    STYLES,
    describe_deadline,
    hold_up_line,
    opened_at,
    read_hold_up,
    read_timing,
    step_lines,
    summarize_case,
)
from mendq.cli.output import format_age, shorten_list
from mendq.cli.queues import resolve_queue_arn
from mendq.cli.undo.answers import group_by_case
from mendq.cli.undo.rollback import parse_moment
from mendq.model.case import Case, State
from mendq.model.queue import parts_of
from mendq.notifications.next_steps import with_code
from mendq.notifications.text import plain

WIDEST_AGE = len("59 min")
UNDER = WIDEST_AGE + 2


@command(2, CommandKind.LOOKING, CASE_SCAN_ACTIONS)
def cases(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    only_open: Annotated[bool, typer.Option("--open", help="Only those not ended.")] = False,
    queue: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Only of this queue: name, URL or ARN.")
    ] = None,
    state: Annotated[
        State | None, typer.Option(metavar="STATE", help="Only in this state, such as proposed.")
    ] = None,
    symptom: Annotated[
        str | None, typer.Option(metavar="SYMPTOM", help="Only of this symptom.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="T", help="Only opened since: 2h, 3d or an ISO time.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Not more than so many.", min=1)
    ] = None,
) -> None:
    """The cases, newest first.

    Examples:
      mendq cases --open
      mendq cases --queue orders --since 3d
      mendq cases --state proposed --json
    """
    fields = _required_fields(call, queue, symptom, state)
    opened_since = datetime.min.replace(tzinfo=UTC)
    if since is not None:
        opened_since = parse_moment(since, datetime.now(UTC))
    source = call.account.open_store(OpenCases)
    with call.out.show_waiting("reading the case store"):
        all_cases = _list_open(source) if only_open else _list_newest(source)
    selected = [
        case for case in all_cases if _has_fields(case, fields) and opened_at(case) >= opened_since
    ]
    selected.sort(key=lambda case: (opened_at(case), case.case_id), reverse=True)
    call.out.print_json([summarize_case(case) for case in selected[:limit]])
    if selected:
        if not call.as_json:
            _show(call, selected, limit or len(selected))
    elif all_cases:
        call.out.say("no such case")
    else:
        call.out.say("no open case" if only_open else "no case yet")


def _required_fields(
    call: Invocation, queue: str | None, symptom: str | None, state: State | None
) -> dict[str, str]:
    """Return the fields that a case must have, by the options.

    Raises CommandError if an option names no queue or no symptom. An empty text is no name: it does
    not mean every queue or symptom.
    """
    if symptom is not None and symptom not in BY_NAME:
        near = shorten_list(get_close_matches(symptom, BY_NAME)) or "see the docs"
        raise CommandError(
            f"--symptom {symptom!r} is none that the catalogue has: {near}", Exit.USAGE
        )
    fields: dict[str, str] = {}
    if queue is not None:
        fields["queue_arn"] = resolve_queue_arn(call.account, queue)
    if symptom is not None:
        fields["symptom"] = symptom
    if state is not None:
        fields["state"] = state
    return fields


def _has_fields(case: Case, fields: Mapping[str, str]) -> bool:
    return all(getattr(case, name) == value for name, value in fields.items())


def _list_newest(source: OpenCases) -> list[Case]:
    """Return the newest transition of every case."""
    return [transitions[-1] for transitions in group_by_case(source.all_transitions()).values()]


def _list_open(source: OpenCases) -> list[Case]:
    """Return the newest transition of each open case.

    The index of open cases makes it unnecessary to read the whole table. The index may be late, so
    the transitions decide if a case is open.
    """
    open_cases = []
    for indexed in source.list_open():
        transitions = source.transitions(indexed.case_id)
        if transitions and not transitions[-1].is_final:
            open_cases.append(transitions[-1])
    return open_cases


def _show(call: Invocation, newest_first: list[Case], limit: int) -> None:
    """Print a block of lines for each case, so that long texts have the whole width."""
    shown = newest_first[:limit]
    now = datetime.now(UTC)
    timing = read_timing(call.account, shown)
    widest = max(len(case.state) for case in shown)
    for case in shown:
        state = (f"{case.state:<{widest}}", STYLES.get(case.state, "dim"))
        since = f"{format_age(opened_at(case), now):>{WIDEST_AGE}}"
        call.out.show(Text.assemble(since, "  ", state, "  ", (plain(case.case_id), "bold")))
        call.out.say_unwrapped(parts_of(case.queue_arn).name, "", indent=UNDER)
        deadline = describe_deadline(case, timing)
        if deadline:
            call.out.say_indented(deadline, "yellow", indent=UNDER)
        label = ""
        if case.is_rollback:
            label = "taken back: "
        elif case.state in NOT_MADE:
            label = "not made: "
        for line in step_lines(case.steps):
            call.out.say_indented(f"{label}{line}", indent=UNDER)
        call.out.say_indented(with_code(case), "dim", indent=UNDER)
        hold_up = read_hold_up(call.account, case)
        if hold_up:
            call.out.say_indented(hold_up_line(hold_up), "yellow", indent=UNDER)
    if len(newest_first) > limit:
        call.out.say(f"and {len(newest_first) - limit:,} older: raise --limit", "dim")
