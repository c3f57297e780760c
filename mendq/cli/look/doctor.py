"""`mendq doctor`: check that Mendq is deployed and works, and what CloudTrail can show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Annotated

import typer
from rich.text import Text

from mendq.cli.commands import (
    CASE_QUERY_ACTIONS,
    FREEZE_ACTIONS,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES,
    QUEUE_ATTRIBUTES_ACTIONS,
    TRAIL_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.doctor.check import Check, Command, Status, run_checks
from mendq.cli.doctor.checks import (
    CHECK_FUNCTION_BY_NAME,
    SCAN_ONLY_CHECK_FUNCTION_BY_NAME,
    Doctor,
)
from mendq.cli.doctor.visibility import (
    CLOUDTRAIL_LIMITS,
    UNCONFIRMED_RECORD_TEXT,
    SymptomVisibility,
    count_unconfirmed_symptoms,
)
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import LabelledLine, Output, make_table, shorten_list
from mendq.notifications.text import command_or_note, format_count, to_terminal_text

_STYLE_BY_STATUS = {
    Status.OK: "green",
    Status.UNKNOWN: "magenta",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
}
_STATUSES_WORST_FIRST = tuple(reversed(Status))
_STATUS_COLUMN_WIDTH = max(len(status) for status in Status)
_VERBOSE_OPTION = typer.Option(
    "--verbose", "-v", help="Print checks that are OK too, and what the trails can show."
)
VerboseOption = Annotated[bool, _VERBOSE_OPTION]

_STACK_ACTIONS = {
    "cloudformation:ListStackResources",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListAlarmMuteRules",
    "events:DescribeRule",
    "iam:GetRole",
    "lambda:GetEventSourceMapping",
    "s3:GetObject",
    "s3:ListBucket",
    "scheduler:GetSchedule",
    "sns:ListSubscriptionsByTopic",
    "sqs:ListQueueTags",
}


@command(
    1,
    CommandKind.LOOKING,
    CASE_QUERY_ACTIONS
    | IAM_ACTIONS_TO_LIST_MANAGED_QUEUES
    | TRAIL_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | FREEZE_ACTIONS
    | _STACK_ACTIONS,
)
def doctor(call: Invocation, verbose: VerboseOption = False) -> Exit:
    """Check that Mendq works, and what this account's trails show.

    Examples:
      mendq doctor                # the verdict, and what there is to do
      mendq doctor --verbose      # what is well too, and what trails can show
    """
    # Stop here if there is no stack.
    call.account.output("CaseTable")
    doctor = Doctor(call.account, datetime.now(UTC), is_scan_only=call.account.is_scan_only)
    check_function_by_name = (
        SCAN_ONLY_CHECK_FUNCTION_BY_NAME if doctor.is_scan_only else CHECK_FUNCTION_BY_NAME
    )
    for name, make_checks in check_function_by_name.items():
        with call.out.show_waiting(f"looking at {name}"):
            doctor.checks.extend(run_checks(name, partial(make_checks, doctor)))
    call.out.print_json(doctor.document())
    if not call.as_json:
        stack_and_region = f"stack {call.account.stack}, {call.account.region}"
        print_verdict(call.out, doctor.checks, stack_and_region)
        print_checks(call.out, doctor, verbose=verbose)
    has_failed = any(check.status is Status.FAIL for check in doctor.checks)
    return Exit.FAILED if has_failed else Exit.DONE


def print_verdict(out: Output, checks: Sequence[Check], stack_and_region: str) -> None:
    """Print one line with the number of problems of each status, the worst status first."""
    statuses = [check.status for check in checks]
    present_statuses = [status for status in _STATUSES_WORST_FIRST if status in statuses]
    problem_counts = [
        f"{statuses.count(status)} {status.upper()}"
        for status in present_statuses
        if status is not Status.OK
    ]
    verdict = ", ".join(problem_counts) or "all well"
    out.say(
        f"{verdict} in {format_count(len(checks), 'check')}: {stack_and_region}",
        _STYLE_BY_STATUS[present_statuses[0]],
    )


def print_checks(out: Output, doctor: Doctor, *, verbose: bool) -> None:
    """Print the problems with their remedies, the worst first.

    Also print how many symptoms rely on CloudTrail records that nobody has seen on AWS yet. With
    `verbose`, also print the checks without a problem and the symptoms that trails can show.
    """
    checks_with_problem = [check for check in doctor.checks if check.status is not Status.OK]
    for check in sorted(
        checks_with_problem, key=lambda check: _STATUSES_WORST_FIRST.index(check.status)
    ):
        out.say_labelled(_list_check_lines(check), indent=0)
        for remedy in check.commands(doctor.logs):
            out.say_command(command_or_note(remedy))
    if unconfirmed_text := count_unconfirmed_symptoms(doctor.symptom_visibilities):
        out.say(unconfirmed_text, "dim")
    if not verbose:
        out.say("What is well, and what the trails can show: mendq doctor --verbose", "dim")
        return
    _print_healthy_checks(out, doctor.checks)
    _print_visibility(out, doctor)


def _print_healthy_checks(out: Output, checks: Sequence[Check]) -> None:
    """Print the checks that are OK. Several of one kind, such as `lambda ...`, share a line."""
    for check_kind, adjacent_checks in groupby(
        checks, key=lambda check: check.name.partition(" ")[0]
    ):
        checks_of_kind = list(adjacent_checks)
        healthy_checks = [check for check in checks_of_kind if check.status is Status.OK]
        if len(healthy_checks) > 1:
            count_text = f"{len(healthy_checks)} of {len(checks_of_kind)} are fine"
            healthy_checks = [Check(f"{check_kind}s", Status.OK, count_text)]
        for check in healthy_checks:
            out.say_labelled(_list_check_lines(check), indent=0)


def _list_check_lines(check: Check) -> Iterator[LabelledLine]:
    """Yield the check's line, and a second line if a problem's remedy is a sentence."""
    status_label = f"{check.status:<{_STATUS_COLUMN_WIDTH}}"
    yield (
        status_label,
        _STYLE_BY_STATUS[check.status],
        f"{check.name}: {to_terminal_text(check.sentence, 300)}",
    )
    if check.remedy and check.status is not Status.OK and not isinstance(check.remedy, Command):
        yield "", "", f"-> {to_terminal_text(check.remedy, 300)}"


def _print_visibility(out: Output, doctor: Doctor) -> None:
    """Print which symptoms the trails show, which the scan finds, and what no trail can show.

    For a scan-only stack, which sees no failed call, print only what the scan finds.
    """
    symptom_visibilities = doctor.symptom_visibilities
    if doctor.is_scan_only:
        _print_found_by_scan(out, symptom_visibilities)
        return
    out.say_heading(
        f"What the trails can show{'' if doctor.queue_arns else ', once a queue is managed'}"
    )
    _print_symptom_table(
        out,
        [
            symptom_visibility
            for symptom_visibility in symptom_visibilities
            if symptom_visibility.by_calls
        ],
    )
    unconfirmed_symptoms = [
        symptom_visibility.symptom
        for symptom_visibility in symptom_visibilities
        if symptom_visibility.unconfirmed_on_aws
    ]
    if unconfirmed_symptoms:
        unconfirmed_text = f"{', '.join(unconfirmed_symptoms)}: {UNCONFIRMED_RECORD_TEXT}"
        out.say_labelled([("unconfirmed on AWS", "yellow", unconfirmed_text)], indent=0)
    _print_found_by_scan(out, symptom_visibilities)
    out.say_heading("What no selector can show")
    out.say_labelled([("-", "", line) for line in CLOUDTRAIL_LIMITS], indent=0)


def _print_found_by_scan(out: Output, symptom_visibilities: Iterable[SymptomVisibility]) -> None:
    """Print which symptoms only the scan finds, and which both the scan and failed calls show."""
    out.say_heading("What the scan finds, whatever a trail logs")
    symptoms_by_scan_only: list[str] = []
    symptoms_by_scan_and_calls: list[str] = []
    for symptom_visibility in symptom_visibilities:
        if symptom_visibility.by_the_scan:
            symptom_names = (
                symptoms_by_scan_and_calls if symptom_visibility.by_calls else symptoms_by_scan_only
            )
            symptom_names.append(symptom_visibility.symptom)
    scan_lines = [
        ("by the scan", "dim", ", ".join(symptoms_by_scan_only)),
        ("beside calls", "dim", ", ".join(symptoms_by_scan_and_calls)),
    ]
    out.say_labelled(scan_lines, indent=0)


def _print_symptom_table(out: Output, symptom_visibilities: Sequence[SymptomVisibility]) -> None:
    """Print, for each symptom, on how many queues the trails show it, and why not on the others."""
    table = make_table("SYMPTOM", "VISIBLE", "PARTLY", "BLIND")
    symptom_names_by_reason = defaultdict[str, list[str]](list)
    for symptom_visibility in symptom_visibilities:
        partly_visible_cell = Text(
            str(len(symptom_visibility.partly)),
            style="yellow" if symptom_visibility.partly else "dim",
        )
        invisible_cell = Text(
            str(len(symptom_visibility.blind)), style="red" if symptom_visibility.blind else "dim"
        )
        table.add_row(
            symptom_visibility.symptom,
            str(len(symptom_visibility.visible)),
            partly_visible_cell,
            invisible_cell,
        )
        for reason in _list_reasons_not_visible(symptom_visibility):
            symptom_names_by_reason[reason].append(symptom_visibility.symptom)
    out.show(table)
    reason_lines = []
    for reason, symptom_names in symptom_names_by_reason.items():
        reason_lines.append(("why not", "dim", f"{', '.join(symptom_names)}: {reason}"))
    out.say_labelled(reason_lines, indent=0)


def _list_reasons_not_visible(symptom_visibility: SymptomVisibility) -> Iterator[str]:
    """Yield each reason why the symptom is not fully visible, with the names of its queues."""
    reason_by_queue = {**symptom_visibility.blind, **symptom_visibility.partly}
    queue_names_by_reason = defaultdict[str, list[str]](list)
    for queue_arn, reason in reason_by_queue.items():
        queue_names_by_reason[reason].append(queue_arn.rpartition(":")[2])
    for reason, queue_names in queue_names_by_reason.items():
        yield f"{reason}: {shorten_list(queue_names)}"
