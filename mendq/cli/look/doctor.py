"""`mendq doctor`: check that Mendq is deployed and works, and what CloudTrail can show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Annotated

import typer
from rich.text import Text

from mendq.cli.commands import (
    CASE_LOOKUP_ACTIONS,
    FREEZE_ACTIONS,
    MANAGED_QUEUES_ACTIONS,
    QUEUE_ATTRIBUTES_ACTIONS,
    TRAIL_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.doctor.check import Check, Command, Status, run_checks
from mendq.cli.doctor.checks import CHECKS, Doctor
from mendq.cli.doctor.visibility import NEVER_SEEN, UNCONFIRMED, SymptomVisibility
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import LabelledLine, Output, make_table, shorten_list
from mendq.notifications.text import command_line, format_count, plain

_STYLES = {
    Status.OK: "green",
    Status.UNKNOWN: "magenta",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
}
_WORST_FIRST = tuple(reversed(Status))
_WIDEST = max(len(status) for status in Status)
_VERBOSE = typer.Option("--verbose", "-v", help="Also what is well, and what trails can show.")
Verbose = Annotated[bool, _VERBOSE]

_ACCOUNT = {
    "cloudformation:ListStackResources",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricStatistics",
    "events:DescribeRule",
    "iam:GetRole",
    "lambda:GetEventSourceMapping",
    "s3:GetObject",
    "s3:ListBucket",
    "scheduler:GetSchedule",
    "sns:ListSubscriptionsByTopic",
}


@command(
    1,
    CommandKind.LOOKING,
    CASE_LOOKUP_ACTIONS
    | MANAGED_QUEUES_ACTIONS
    | TRAIL_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | FREEZE_ACTIONS
    | _ACCOUNT,
)
def doctor(call: Invocation, verbose: Verbose = False) -> Exit:
    """Is it alive, and what can this account's trails show?

    Examples:
      mendq doctor                # the verdict, and what there is to do
      mendq doctor --verbose      # what is well too, and what trails can show
    """
    doctor = Doctor(call.account, datetime.now(UTC))
    # Stop here if there is no stack.
    call.account.output("CaseTable")
    for name, make_checks in CHECKS.items():
        with call.out.show_waiting(f"looking at {name}"):
            doctor.checks.extend(run_checks(name, partial(make_checks, doctor)))
    call.out.print_json(doctor.document())
    if not call.as_json:
        where = f"stack {call.account.stack}, {call.account.region}"
        print_verdict(call.out, doctor.checks, where)
        print_findings(call.out, doctor, verbose=verbose)
    has_failed = any(check.status is Status.FAIL for check in doctor.checks)
    return Exit.FAILED if has_failed else Exit.DONE


def print_verdict(out: Output, checks: Sequence[Check], where: str) -> None:
    """Print in one line how many checks have a problem, the worst status first."""
    statuses = [check.status for check in checks]
    kinds = [status for status in _WORST_FIRST if status in statuses]
    problems = [
        f"{statuses.count(status)} {status.upper()}" for status in kinds if status is not Status.OK
    ]
    verdict = ", ".join(problems) or "all well"
    out.say(f"{verdict} in {format_count(len(checks), 'check')}: {where}", _STYLES[kinds[0]])


def print_findings(out: Output, doctor: Doctor, *, verbose: bool) -> None:
    """Print the problems with their remedies, the worst first.

    With `verbose` also print the checks without a problem and the symptoms that trails can show.
    """
    problems = [check for check in doctor.checks if check.status is not Status.OK]
    for check in sorted(problems, key=lambda check: _WORST_FIRST.index(check.status)):
        out.say_labelled(_lines(check), indent=0)
        for remedy in check.commands(doctor.logs):
            out.say_command(command_line(remedy))
    if not verbose:
        out.say("What is well, and what the trails can show: mendq doctor --verbose", "dim")
        return
    _print_well(out, doctor.checks)
    _print_visibility(out, doctor)


def _print_well(out: Output, checks: Sequence[Check]) -> None:
    """Print the checks that are OK. Several of one kind, such as `lambda ...`, share a line."""
    for kind, group in groupby(checks, key=lambda check: check.name.partition(" ")[0]):
        checks_of_kind = list(group)
        fine = [check for check in checks_of_kind if check.status is Status.OK]
        if len(fine) > 1:
            text = f"{len(fine)} of {len(checks_of_kind)} are fine"
            fine = [Check(f"{kind}s", Status.OK, text)]
        for check in fine:
            out.say_labelled(_lines(check), indent=0)


def _lines(check: Check) -> Iterator[LabelledLine]:
    """Yield the check's line, and a second line if its remedy is a sentence."""
    label = f"{check.status:<{_WIDEST}}"
    yield label, _STYLES[check.status], f"{check.name}: {plain(check.says, 300)}"
    if check.remedy and check.status is not Status.OK and not isinstance(check.remedy, Command):
        yield "", "", f"-> {plain(check.remedy, 300)}"


def _print_visibility(out: Output, doctor: Doctor) -> None:
    """Print which symptoms the trails can show, which the scan finds, and what nothing shows."""
    symptoms = doctor.symptoms
    out.say_heading(
        f"What the trails can show{'' if doctor.queues else ', once a queue is managed'}"
    )
    _print_symptoms(out, [symptom for symptom in symptoms if symptom.by_calls])
    unconfirmed = [symptom.symptom for symptom in symptoms if symptom.unconfirmed_on_aws]
    if unconfirmed:
        text = f"{', '.join(unconfirmed)}: {UNCONFIRMED}"
        out.say_labelled([("unconfirmed on AWS", "yellow", text)], indent=0)
    out.say_heading("What the scan finds, whatever a trail logs")
    by_scan_only: list[str] = []
    by_both: list[str] = []
    for symptom in symptoms:
        if symptom.by_the_scan:
            names = by_both if symptom.by_calls else by_scan_only
            names.append(symptom.symptom)
    lines = [
        ("by the scan", "dim", ", ".join(by_scan_only)),
        ("beside calls", "dim", ", ".join(by_both)),
    ]
    out.say_labelled(lines, indent=0)
    out.say_heading("What no selector can show")
    out.say_labelled([("-", "", line) for line in NEVER_SEEN], indent=0)


def _print_symptoms(out: Output, symptoms: Sequence[SymptomVisibility]) -> None:
    """Print how many queues show each symptom, and the reasons if some do not."""
    counts = make_table("SYMPTOM", "VISIBLE", "PARTLY", "BLIND")
    symptoms_by_reason = defaultdict[str, list[str]](list)
    for symptom in symptoms:
        partly = Text(str(len(symptom.partly)), style="yellow" if symptom.partly else "dim")
        blind = Text(str(len(symptom.blind)), style="red" if symptom.blind else "dim")
        counts.add_row(symptom.symptom, str(len(symptom.visible)), partly, blind)
        for reason in _reasons(symptom):
            symptoms_by_reason[reason].append(symptom.symptom)
    out.show(counts)
    lines = []
    for reason, names in symptoms_by_reason.items():
        lines.append(("why not", "dim", f"{', '.join(names)}: {reason}"))
    out.say_labelled(lines, indent=0)


def _reasons(symptom: SymptomVisibility) -> Iterator[str]:
    """Yield each reason why the symptom is not fully visible, with the names of its queues."""
    reason_by_queue = {**symptom.blind, **symptom.partly}
    names_by_reason = defaultdict[str, list[str]](list)
    for arn, reason in reason_by_queue.items():
        names_by_reason[reason].append(arn.rpartition(":")[2])
    for reason, names in names_by_reason.items():
        yield f"{reason}: {shorten_list(names)}"
