"""`mendq cases`: every case that the case store keeps, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated

import typer
from rich.text import Text

from mendq.cases.table import OpenCases
from mendq.catalogue import BY_NAME
from mendq.cli.commands import EVERY_CASE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
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


@command(2, Kind.LOOKING, EVERY_CASE)
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
    wanted = _wanted(call, queue, symptom, state)
    since_then = datetime.min.replace(tzinfo=UTC)
    if since is not None:
        since_then = parse_moment(since, datetime.now(UTC))
    source = call.account.open_store(OpenCases)
    with call.out.show_waiting("reading the case store"):
        found = _open(source) if only_open else _newest(source)
    fitting = (
        each
        for each in found
        if all(getattr(each, name) == value for name, value in wanted.items())
        and opened_at(each) >= since_then
    )
    newest_first = sorted(fitting, key=lambda each: (opened_at(each), each.case_id), reverse=True)
    call.out.print_json([summary(each) for each in newest_first[:limit]])
    if not newest_first:
        call.out.say("no such case" if found else "no open case" if only_open else "no case yet")
    elif not call.as_json:
        _show(call, newest_first, limit or len(newest_first))


def _wanted(
    call: Invocation, queue: str | None, symptom: str | None, state: State | None
) -> dict[str, str]:
    """The fields of a case that are asked for; CommandError where a name is none.

    An empty text is such a name: it does not mean every queue or symptom.
    """
    if symptom is not None and symptom not in BY_NAME:
        near = shorten_list(get_close_matches(symptom, BY_NAME)) or "see the docs"
        raise CommandError(
            f"--symptom {symptom!r} is none that the catalogue has: {near}", Exit.USAGE
        )
    queue_arn = None if queue is None else resolve_queue_arn(call.account, queue)
    asked = {"queue_arn": queue_arn, "symptom": symptom, "state": state}
    return {name: value for name, value in asked.items() if value}


def _newest(source: OpenCases) -> list[Case]:
    """The newest transition of every case."""
    return [each[-1] for each in group_by_case(source.all_transitions()).values()]


def _open(source: OpenCases) -> list[Case]:
    """By the index, so that the whole table is not read; it may lag, the transitions decide."""
    found = (source.transitions(each.case_id) for each in source.list_open())
    return [each[-1] for each in found if each and not each[-1].is_final]


def _show(call: Invocation, newest_first: list[Case], limit: int) -> None:
    """A block a case: what is long has the whole width."""
    ordered = newest_first[:limit]
    now, timing = datetime.now(UTC), timing_of(call.account, ordered)
    widest = max(len(each.state) for each in ordered)
    for each in ordered:
        state = (f"{each.state:<{widest}}", STYLES.get(each.state, "dim"))
        since = f"{format_age(opened_at(each), now):>{WIDEST_AGE}}"
        call.out.show(Text.assemble(since, "  ", state, "  ", (plain(each.case_id), "bold")))
        call.out.say_unwrapped(parts_of(each.queue_arn).name, "", indent=UNDER)
        if ends := until(each, timing):
            call.out.say_indented(ends, "yellow", indent=UNDER)
        made = (
            "taken back: " if each.is_rollback else "not made: " if each.state in NOT_MADE else ""
        )
        for line in step_lines(each.steps):
            call.out.say_indented(f"{made}{line}", indent=UNDER)
        call.out.say_indented(with_code(each), "dim", indent=UNDER)
        if hold_up := held_up(call.account, each):
            call.out.say_indented(held_up_line(hold_up), "yellow", indent=UNDER)
    if len(newest_first) > limit:
        call.out.say(f"and {len(newest_first) - limit:,} older: raise --limit", "dim")
