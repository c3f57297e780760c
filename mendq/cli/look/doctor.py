"""`mendq doctor`: is it there, is it alive, and what can this account's trails show at all?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from rich.text import Text

from mendq.cli.commands import CASE_STORE, FROZEN, MANAGED, QUEUE, TRAILS, Kind, command
from mendq.cli.doctor.check import Check, Command, Status, guarded
from mendq.cli.doctor.checks import READS, Doctor
from mendq.cli.doctor.visibility import NEVER_SEEN, UNCONFIRMED, Situation
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Line, Output, some, table
from mendq.notifications.text import command_line, plain

_STYLES = dict(zip(Status, ("green", "magenta", "yellow", "bold red"), strict=True))
_WIDEST = max(map(len, Status))


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
def doctor(call: Invocation) -> Exit:
    """Is it alive, and what can this account's trails show?"""
    doctor = Doctor(call.account, datetime.now(UTC))
    call.out.say(f"stack {call.account.stack}, {call.account.region}", "dim")
    call.account.output("CaseTable")
    for name, look in READS.items():
        with call.out.waiting(f"looking at {name}"):
            doctor.checks += guarded(name, partial(look, doctor))
    call.out.document(doctor.document())
    if not call.as_json:
        print_findings(call.out, doctor)
    return Exit.FAILED if any(each.status is Status.FAIL for each in doctor.checks) else Exit.DONE


def print_findings(out: Output, found: Doctor) -> None:
    """In the order in which it was looked at; what is fine, one line a kind."""
    for kind, group in groupby(found.checks, key=lambda each: each.name.partition(" ")[0]):
        checks = list(group)
        fine = [each for each in checks if each.status is Status.OK]
        if len(fine) > 1:
            says = f"{len(fine)} of {len(checks)} are fine"
            out.lines(_lines(Check(f"{kind}s", Status.OK, says)), indent=0)
            checks = [each for each in checks if each.status is not Status.OK]
        for each in checks:
            out.lines(_lines(each), indent=0)
            if each.status is not Status.OK:
                for command in each.commands(found.logs):
                    out.command(command_line(command))
    out.heading(f"What the trails can show{'' if found.queues else ', once a queue is managed'}")
    _print_sights(out, [each for each in found.sights if each.by_calls])
    if unconfirmed := ", ".join(e.symptom for e in found.sights if e.unconfirmed_on_aws):
        out.lines([("unconfirmed on AWS", "yellow", f"{unconfirmed}: {UNCONFIRMED}")], indent=0)
    out.heading("What the scan finds, whatever a trail logs")
    scanned = [each for each in found.sights if each.by_the_scan]
    alone = ", ".join(each.symptom for each in scanned if not each.by_calls)
    beside = ", ".join(each.symptom for each in scanned if each.by_calls)
    out.lines([("by the scan", "dim", alone), ("beside calls", "dim", beside)], indent=0)
    out.heading("What no selector can show")
    out.lines([("-", "", line) for line in NEVER_SEEN], indent=0)
    counts = {status: sum(each.status is status for each in found.checks) for status in Status}
    out.say("")
    out.say(", ".join(f"{number} {status}" for status, number in counts.items() if number))


def _lines(check: Check) -> Iterator[Line]:
    label = f"{check.status:<{_WIDEST}}"
    yield label, _STYLES[check.status], f"{check.name}: {plain(check.says, 300)}"
    if check.remedy and check.status is not Status.OK and not isinstance(check.remedy, Command):
        yield "", "", f"-> {plain(check.remedy, 300)}"


def _print_sights(out: Output, found: Sequence[Situation]) -> None:
    shown = table("SYMPTOM", "VISIBLE", "PARTLY", "BLIND")
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
    out.lines(lines, indent=0)


def _whys(situation: Situation) -> Iterator[str]:
    reasons = {**situation.blind, **situation.partly}
    for reason in dict.fromkeys(reasons.values()):
        names = [arn.rpartition(":")[2] for arn, why in reasons.items() if why == reason]
        yield f"{reason}: {some(names)}"
