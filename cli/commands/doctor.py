"""`mendq doctor`: is it there, is it alive, and what can this account's trails show at all?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from rich.text import Text

from cli.doctor import drills, life, pages, trail_bucket
from cli.doctor.alarms import Alarms
from cli.doctor.check import Check, Command, Log, Status, guarded
from cli.doctor.cost import MOST_QUEUES, PRICED, Cost, costs
from cli.doctor.deployment import Deployment
from cli.doctor.last_round import LastRound, check_of, last_round
from cli.doctor.trails import Trails
from cli.doctor.visibility import NEVER_SEEN, Sight, not_logged, outside, sights
from cli.exit_codes import Exit
from cli.invocation import Invocation, with_invocation
from cli.output import Line, Output, table
from cli.queues import managed_queues
from functions.healing.plain_text import command_line, plain
from functions.healing.queue_names import parts_of

_STYLES = {
    Status.OK: "green",
    Status.UNKNOWN: "magenta",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
}
_WIDEST = max(map(len, Status))
_MOST_NAMED = 3


@dataclass
class Findings:
    """What was found so far."""

    checks: list[Check] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    trails: Trails = field(default_factory=Trails)
    costs: list[Cost] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    last_round: LastRound | None = None

    @property
    def outside(self) -> list[str]:
        return outside(self.trails.logging, self.queues)

    @property
    def not_logged(self) -> dict[str, frozenset[str]]:
        return not_logged(self.trails.logging, self.queues)

    @property
    def sights(self) -> list[Sight]:
        return list(sights(self.trails.logging, self.queues))

    def document(self) -> dict[str, Any]:
        return {
            "checks": [each.document() for each in self.checks],
            "logs": {name: vars(log) for name, log in self.logs.items()},
            "managed_queues": self.queues,
            "symptoms": [each.document() for each in self.sights],
            "outside_selectors": self.outside,
            "not_logged": {arn: sorted(calls) for arn, calls in self.not_logged.items()},
            "cost_of_seeing": [each.document() for each in self.costs],
            "priced": PRICED,
            "never_seen": list(NEVER_SEEN),
            "last_sweep": self.last_round.document() if self.last_round else None,
        }


@with_invocation
def doctor(call: Invocation) -> Exit:
    """Is it alive, and what can this account's trails show?"""
    account, found = call.account, Findings()
    now = datetime.now(UTC)
    deployment = Deployment(account, now, found.logs)
    looks = (
        ("the stack", "stack", deployment.look),
        ("the alarms that ring", "alarms", Alarms(account, deployment, now).look),
        ("topics and subscriptions", "topics", lambda: pages.look(account)),
        ("heartbeat, pulse and freeze", "life", lambda: life.look(account, now)),
        ("the sweep's last round", "sweep", lambda: _last_round(call, found, now)),
        ("trails", "trails", lambda: found.trails.look(account)),
        ("the trail's bucket", trail_bucket.NAME, lambda: trail_bucket.look(account)),
        ("managed queues", "queues", lambda: _queues(call, found)),
        ("what seeing more would cost", "cost", lambda: _costs(call, found, now)),
    )
    call.out.say(f"stack {account.stack}, {account.region}", "dim")
    account.output("LedgerTable")
    for what, name, look in looks:
        with call.out.waiting(f"looking at {what}"):
            found.checks += guarded(name, look)
    call.out.document(found.document())
    if not call.as_json:
        print_findings(call.out, found)
    failed = any(each.status is Status.FAIL for each in found.checks)
    return Exit.FAILED if failed else Exit.DONE


def _queues(call: Invocation, found: Findings) -> Iterator[Check]:
    managed = managed_queues(call.account)
    found.queues = [each.queue_arn for each in managed]
    if not found.queues:
        says, tag = "none: nothing is looked after. To begin, tag one", ("--tags", "mendq=observe")
        first = Command.aws(call.account.region, "sqs", "tag-queue", "--queue-url", "URL", *tag)
        yield Check("managed queues", Status.WARN, says, first)
        return
    yield Check("managed queues", Status.OK, f"{len(found.queues)} by tag or by name")
    yield from drills.look(managed)
    blind = found.outside
    if blind:
        says = f"{len(blind)} of {len(found.queues)} lie outside the trails' selectors"
        cure = "add them to trail.queueArnPrefixes, and deploy"
        yield Check("selectors", Status.WARN, says, cure)
    if partly := {arn: calls for arn, calls in found.not_logged.items() if arn not in blind}:
        calls = ", ".join(sorted(frozenset().union(*partly.values())))
        says = f"{len(partly)} of {len(found.queues)} are logged in part: not {calls}"
        cure = "add them to trail.eventNames, and deploy"
        yield Check("selectors", Status.WARN, says, cure)


def _last_round(call: Invocation, found: Findings, now: datetime) -> Iterator[Check]:
    found.last_round = last_round(call.account)
    yield check_of(found.last_round, call.account, now)


def _costs(call: Invocation, found: Findings, now: datetime) -> Iterator[Check]:
    if found.not_logged:
        found.costs = costs(call.account.clients, found.not_logged, now)
    yield from ()


def print_findings(out: Output, found: Findings) -> None:
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
    shown_by_calls = [each for each in found.sights if not each.is_swept_only]
    if found.queues:
        _print_sights(out, shown_by_calls)
    else:
        _print_calls(out, shown_by_calls)
    _print_swept(out, found)
    _print_costs(out, found)
    out.heading("What no selector can show")
    out.lines([("-", "", line) for line in NEVER_SEEN], indent=0)
    counts = {status: sum(each.status is status for each in found.checks) for status in Status}
    out.say("")
    out.say(", ".join(f"{number} {status}" for status, number in counts.items() if number))


def _lines(check: Check) -> Iterator[Line]:
    label = f"{check.status:<{_WIDEST}}"
    yield label, _STYLES[check.status], f"{check.name}: {plain(check.says, 300)}"
    if check.cure and check.status is not Status.OK and not isinstance(check.cure, Command):
        yield "", "", f"-> {plain(check.cure, 300)}"


def _print_sights(out: Output, found: Sequence[Sight]) -> None:
    out.heading("What the trails can show")
    shown = table("SYMPTOM", "VISIBLE", "PARTLY", "BLIND")
    for each in found:
        shown.add_row(
            each.symptom,
            str(len(each.visible)),
            Text(str(len(each.partly)), style="yellow" if each.partly else "dim"),
            Text(str(len(each.blind)), style="red" if each.blind else "dim"),
        )
    out.show(shown)
    hidden: dict[str, list[str]] = {}
    for each in found:
        for why in _whys(each):
            hidden.setdefault(why, []).append(each.symptom)
    out.lines(
        [("why not", "dim", f"{', '.join(names)}: {why}") for why, names in hidden.items()],
        indent=0,
    )


def _print_swept(out: Output, found: Findings) -> None:
    """What no call shows is no trail's to show; what calls show too is named beside it."""
    out.heading("What the sweep finds, whatever a trail logs")
    swept = [each for each in found.sights if each.by_the_sweep]
    alone = ", ".join(each.symptom for each in swept if each.is_swept_only)
    beside = ", ".join(each.symptom for each in swept if not each.is_swept_only)
    last = found.last_round.says if found.last_round else "none was made, or none can be read"
    rows = (("by the sweep", alone), ("beside calls", beside), ("last round", last))
    out.lines([(label, "dim", text) for label, text in rows if text], indent=0)


def _print_calls(out: Output, found: Sequence[Sight]) -> None:
    """Before any queue is managed: what could be seen of one that the selectors cover."""
    out.heading("What the trails can show, once a queue is managed")
    shown = table("SYMPTOM", "CALLS LOGGED", "NOT LOGGED OF ANY QUEUE")
    for each in found:
        every = len(each.calls_logged) + len(each.calls_not_logged)
        style = "" if each.calls_logged else "red"
        logged = Text(f"{len(each.calls_logged)} of {every}", style=style)
        shown.add_row(each.symptom, logged, ", ".join(each.calls_not_logged))
    out.show(shown)


def _whys(sight: Sight) -> Iterator[str]:
    reasons = {**sight.blind, **sight.partly}
    for reason in dict.fromkeys(reasons.values()):
        names = [parts_of(arn).name for arn, why in reasons.items() if why == reason]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield f"{reason}: {', '.join(names[:_MOST_NAMED])}{more}"


def _print_costs(out: Output, found: Findings) -> None:
    if not found.costs:
        return
    out.heading("What seeing them would cost")
    shown = table("QUEUE", "CALLS LAST WEEK", "A MONTH")
    for each in found.costs:
        dollars = each.dollars_per_month
        shown.add_row(
            Text(parts_of(each.queue_arn).name),
            "no metric" if each.calls_per_week is None else f"at most {each.calls_per_week:,}",
            "not known" if dollars is None else f"${dollars:,.2f}",
        )
    out.show(shown)
    out.say(PRICED, "dim")
    if uncounted := sorted({call for each in found.costs for call in each.uncounted}):
        out.say(f"on top come calls of which there is no metric: {', '.join(uncounted)}", "dim")
    if len(found.not_logged) > MOST_QUEUES:
        out.say(f"the first {MOST_QUEUES} of {len(found.not_logged)} queues", "dim")
