"""`mendq cases`: list the cases in the case store, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated

import typer
from rich.text import Text

from mendq.cases.table import OpenCases
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.account import SCAN_ONLY_TEXT
from mendq.cli.commands import CASE_SCAN_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import (
    STYLE_BY_STATE,
    UNWRITTEN_STATES,
    describe_deadline,
    describe_hold_up,
    describe_shared_case,
    get_opening_time,
    list_step_lines,
    read_hold_up,
    read_timing,
    summarize_case,
)
from mendq.cli.output import format_age, shorten_list
from mendq.cli.queues import resolve_queue_arn
from mendq.cli.undo.answers import group_by_case
from mendq.cli.undo.rollback import parse_time_option
from mendq.model.case import Case
from mendq.model.queue import parse_queue_arn
from mendq.model.state import State
from mendq.notifications.next_steps import describe_reason
from mendq.notifications.text import to_terminal_text

AGE_COLUMN_WIDTH = len("59 min")
STEP_LINE_INDENT = AGE_COLUMN_WIDTH + 2


@command(2, CommandKind.LOOKING, CASE_SCAN_ACTIONS)
def cases(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    only_open: Annotated[bool, typer.Option("--open", help="List only open cases.")] = False,
    queue: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="List only cases of this queue: name, URL or ARN."),
    ] = None,
    state: Annotated[
        State | None,
        typer.Option(metavar="STATE", help="List only cases in this state, such as proposed."),
    ] = None,
    symptom: Annotated[
        str | None, typer.Option(metavar="SYMPTOM", help="List only cases of this symptom.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="List only cases opened since this time: 2h, 3d or an ISO time."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="The most cases to list.", min=1)
    ] = None,
) -> None:
    """List the cases, the newest first.

    Examples:
      mendq cases --open
      mendq cases --queue orders --since 3d
      mendq cases --state proposed --json
    """
    required_fields = _parse_field_options(call, queue, symptom, state)
    opened_since = datetime.min.replace(tzinfo=UTC)
    if since is not None:
        opened_since = parse_time_option(since, datetime.now(UTC))
    case_store = call.account.open_store(OpenCases)
    with call.out.show_waiting("reading the case store"):
        all_cases = _list_open_cases(case_store) if only_open else _list_all_cases(case_store)
    selected_cases = [
        case
        for case in all_cases
        if _has_fields(case, required_fields) and get_opening_time(case) >= opened_since
    ]
    selected_cases.sort(key=lambda case: (get_opening_time(case), case.case_id), reverse=True)
    call.out.print_json([summarize_case(case) for case in selected_cases[:limit]])
    if selected_cases:
        if not call.as_json:
            _print_cases(call, selected_cases, limit or len(selected_cases))
    elif all_cases:
        call.out.say("no such case")
    else:
        call.out.say("no open case" if only_open else "no case yet")
    if call.account.is_scan_only:
        call.out.say(f"stack {call.account.stack} {SCAN_ONLY_TEXT}, and opens no case", "yellow")


def _parse_field_options(
    call: Invocation, queue: str | None, symptom: str | None, state: State | None
) -> dict[str, str]:
    """Return the values that the options require of a case, by field name.

    Raises CommandError if an option's text is no queue or no symptom. An empty text is such an
    error too: it must not select every queue or symptom.
    """
    if symptom is not None and symptom not in SYMPTOM_BY_NAME:
        similar_symptoms = (
            shorten_list(get_close_matches(symptom, SYMPTOM_BY_NAME)) or "see the docs"
        )
        raise CommandError(
            f"--symptom {symptom!r} is none that the catalogue has: {similar_symptoms}", Exit.USAGE
        )
    required_fields: dict[str, str] = {}
    if queue is not None:
        required_fields["queue_arn"] = resolve_queue_arn(call.account, queue)
    if symptom is not None:
        required_fields["symptom"] = symptom
    if state is not None:
        required_fields["state"] = state
    return required_fields


def _has_fields(case: Case, required_fields: Mapping[str, str]) -> bool:
    return all(getattr(case, name) == value for name, value in required_fields.items())


def _list_all_cases(case_store: OpenCases) -> list[Case]:
    """Return the newest transition of every case."""
    return [
        transitions[-1] for transitions in group_by_case(case_store.scan_all_transitions()).values()
    ]


def _list_open_cases(case_store: OpenCases) -> list[Case]:
    """Return the newest transition of each open case.

    The index of open cases is read in place of the whole table. The index may be late, so the
    transitions decide if a case is open.
    """
    open_cases = []
    for indexed_case in case_store.list_open_cases():
        transitions = case_store.list_transitions(indexed_case.case_id)
        if transitions and not transitions[-1].is_final:
            open_cases.append(transitions[-1])
    return open_cases


def _print_cases(call: Invocation, cases_newest_first: list[Case], limit: int) -> None:
    """Print at most `limit` cases as blocks of lines, so that long texts have the whole width."""
    shown_cases = cases_newest_first[:limit]
    now = datetime.now(UTC)
    timing = read_timing(call.account, shown_cases)
    state_width = max(len(case.state) for case in shown_cases)
    for case in shown_cases:
        state_text = (f"{case.state:<{state_width}}", STYLE_BY_STATE.get(case.state, "dim"))
        age_text = f"{format_age(get_opening_time(case), now):>{AGE_COLUMN_WIDTH}}"
        call.out.show(
            Text.assemble(
                age_text, "  ", state_text, "  ", (to_terminal_text(case.case_id), "bold")
            )
        )
        call.out.say_unwrapped(parse_queue_arn(case.queue_arn).name, "", indent=STEP_LINE_INDENT)
        deadline = describe_deadline(case, timing)
        if deadline:
            call.out.say_indented(deadline, "yellow", indent=STEP_LINE_INDENT)
        shared_text = describe_shared_case(case)
        if shared_text:
            call.out.say_indented(shared_text, indent=STEP_LINE_INDENT)
        line_label = ""
        if case.is_rollback:
            line_label = "taken back: "
        elif case.state in UNWRITTEN_STATES:
            line_label = "not made: "
        for step_line in list_step_lines(case.steps):
            call.out.say_indented(f"{line_label}{step_line}", indent=STEP_LINE_INDENT)
        call.out.say_indented(describe_reason(case), "dim", indent=STEP_LINE_INDENT)
        hold_up = read_hold_up(call.account, case)
        if hold_up:
            call.out.say_indented(describe_hold_up(hold_up), "yellow", indent=STEP_LINE_INDENT)
    if len(cases_newest_first) > limit:
        call.out.say(f"and {len(cases_newest_first) - limit:,} older: raise --limit", "dim")
