"""`mendq doctor`: is it there, is it alive, and what can this account's trails show at all?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Annotated

import typer
from rich.text import Text

from mendq.cli.commands import CASE_STORE, FROZEN, MANAGED, QUEUE, TRAILS, Kind, command
from mendq.cli.doctor.check import Check, Command, Status, guarded
from mendq.cli.doctor.checks import READS, Doctor
from mendq.cli.doctor.visibility import NEVER_SEEN, UNCONFIRMED, Situation
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import LabelledLine, Output, make_table, shorten_list
from mendq.notifications.text import command_line, counted, plain

_STYLES = dict(zip(Status, ("green", "magenta", "yellow", "bold red"), strict=True))
_WORST_FIRST = (*reversed(Status),)
_WIDEST = max(map(len, Status))
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


@command(1, Kind.LOOKING, CASE_STORE | MANAGED | TRAILS | QUEUE | FROZEN | _ACCOUNT)
def doctor(call: Invocation, verbose: Verbose = False) -> Exit:
    """Is it alive, and what can this account's trails show?

    Examples:
      mendq doctor                # the verdict, and what there is to do
      mendq doctor --verbose      # what is well too, and what trails can show
    """
    doctor = Doctor(call.account, datetime.now(UTC))
    call.account.output("CaseTable")
    for name, look in READS.items():
        with call.out.show_waiting(f"looking at {name}"):
            doctor.checks += guarded(name, partial(look, doctor))
    call.out.print_json(doctor.document())
    if not call.as_json:
        where = f"stack {call.account.stack}, {call.account.region}"
        print_verdict(call.out, doctor.checks, where)
        print_findings(call.out, doctor, verbose=verbose)
    return Exit.FAILED if any(each.status is Status.FAIL for each in doctor.checks) else Exit.DONE


def print_verdict(out: Output, checks: Sequence[Check], where: str) -> None:
    """Say in one line how many of the checks are not well, the worst kind first."""
    found = [each.status for each in checks]
    kinds = [each for each in _WORST_FIRST if each in found]
    wrong = ", ".join(
        f"{found.count(each)} {each.upper()}" for each in kinds if each is not Status.OK
    )
    line = f"{wrong or 'all well'} in {counted(len(found), 'check')}: {where}"
    out.say(line, _STYLES[kinds[0]])


def print_findings(out: Output, found: Doctor, *, verbose: bool) -> None:
    """What there is to do, worst first; with `verbose` what is well and what trails can show."""
    wrong = (each for each in found.checks if each.status is not Status.OK)
    for each in sorted(wrong, key=lambda each: _WORST_FIRST.index(each.status)):
        out.say_labelled(_lines(each), indent=0)
        for typed in each.commands(found.logs):
            out.say_command(command_line(typed))
    if not verbose:
        out.say("What is well, and what the trails can show: mendq doctor --verbose", "dim")
        return
    _print_well(out, found.checks)
    out.say_heading(
        f"What the trails can show{'' if found.queues else ', once a queue is managed'}"
    )
    _print_sights(out, [each for each in found.sights if each.by_calls])
    if unconfirmed := ", ".join(e.symptom for e in found.sights if e.unconfirmed_on_aws):
        out.say_labelled(
            [("unconfirmed on AWS", "yellow", f"{unconfirmed}: {UNCONFIRMED}")], indent=0
        )
    out.say_heading("What the scan finds, whatever a trail logs")
    scanned = [each for each in found.sights if each.by_the_scan]
    alone = ", ".join(each.symptom for each in scanned if not each.by_calls)
    beside = ", ".join(each.symptom for each in scanned if each.by_calls)
    out.say_labelled([("by the scan", "dim", alone), ("beside calls", "dim", beside)], indent=0)
    out.say_heading("What no selector can show")
    out.say_labelled([("-", "", line) for line in NEVER_SEEN], indent=0)


def _print_well(out: Output, checks: Sequence[Check]) -> None:
    """What is well, one line a kind."""
    for kind, group in groupby(checks, key=lambda each: each.name.partition(" ")[0]):
        every = list(group)
        fine = [each for each in every if each.status is Status.OK]
        if len(fine) > 1:
            fine = [Check(f"{kind}s", Status.OK, f"{len(fine)} of {len(every)} are fine")]
        for each in fine:
            out.say_labelled(_lines(each), indent=0)


def _lines(check: Check) -> Iterator[LabelledLine]:
    label = f"{check.status:<{_WIDEST}}"
    yield label, _STYLES[check.status], f"{check.name}: {plain(check.says, 300)}"
    if check.remedy and check.status is not Status.OK and not isinstance(check.remedy, Command):
        yield "", "", f"-> {plain(check.remedy, 300)}"


def _print_sights(out: Output, found: Sequence[Situation]) -> None:
    shown = make_table("SYMPTOM", "VISIBLE", "PARTLY", "BLIND")
    for each in found:
        partly = Text(str(len(each.partly)), style="yellow" if each.partly else "dim")
        blind = Text(str(len(each.blind)), style="red" if each.blind else "dim")
        shown.add_row(each.symptom, str(len(each.visible)), partly, blind)
    out.show(shown)
    hidden = defaultdict[str, list[str]](list)
    for each in found:
        for why in _whys(each):
            hidden[why].append(each.symptom)
    lines = [("why not", "dim", f"{', '.join(names)}: {why}") for why, names in hidden.items()]
    out.say_labelled(lines, indent=0)


def _whys(situation: Situation) -> Iterator[str]:
    reasons = {**situation.blind, **situation.partly}
    for reason in dict.fromkeys(reasons.values()):
        names = [arn.rpartition(":")[2] for arn, why in reasons.items() if why == reason]
        yield f"{reason}: {shorten_list(names)}"
