"""`mendq scan`: what is wrong with the queues of a region, or what the deployed scan would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import BY_NAME
from mendq.catalogue.dlq.time_left import sort_by_urgency
from mendq.cli.account import Account
from mendq.cli.commands import CASES, FACTS, FROZEN, MANAGED, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, describe_error
from mendq.cli.look.export import replace_if_changed, require_place
from mendq.cli.output import Output, shorten_list
from mendq.cli.queues import resolve_queue_arn
from mendq.cli.scan.dry_run import DryRun, MetricBudget, WouldDo, estimate_monthly_dollars
from mendq.cli.scan.region_scan import (
    BY_FAILED_CALLS_ALONE,
    EVERYTHING,
    RegionScan,
    rate_severity,
    sort_worst_first,
)
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import arn_of, arn_of_name, parts_of
from mendq.notifications.text import format_count, plain

_MOST_NAMED = 4
# Where AWS lists queues by their tags alone.
_UNLISTED = {EVERYTHING: "queues without a tag"}
# Of queues with the same symptom; a file names them all.
_MOST_ALIKE = 5
# A cent and more: what a look at a region may cost where nobody says otherwise.
_USUAL_METRICS = 10_000
_RIGHTS = MANAGED | CASES | FROZEN | FACTS
# Without the rights on Mendq's own parts, which are only there once it is deployed.
_OF_A_REGION = FACTS | {"tag:GetResources", "sqs:ListQueues"}


@command(4, Kind.LOOKING, _RIGHTS)
def scan(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE", help="Only that of this name, URL or ARN; again for more."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only queues whose names begin so.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page as well.", show_default=False)
    ] = None,
    policy: Annotated[
        bool, typer.Option("--policy", help="Print the IAM policy that it needs; ask AWS nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only managed queues, as the deployed scan looks.")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--max-metrics",
            metavar="N",
            help="How many metrics to ask CloudWatch for, each is billed.",
            min=0,
            show_default=f"{_USUAL_METRICS:,}; with --dry-run as settings say",
        ),
    ] = None,
) -> Exit:
    """Look at every queue for what makes no call fail.

    Needs no deployment and changes nothing; beside a deployed stack it says what that would do.

    Examples:
      mendq scan                       # every queue of the region
      mendq scan --prefix orders- --html scan.html
      mendq scan --policy              # what to allow whoever scans
    """
    if policy:
        Output(as_json=True).print_json(_policy())
        return Exit.DONE
    if dry_run and (queue or html or prefix is not None):
        raise CommandError(
            "--dry-run looks at every managed queue: leave out the others", Exit.USAGE
        )
    if not dry_run:
        return _of_region(call, _patterns(call.account, queue or (), prefix), html, metrics)
    return _of_managed(call, metrics)


def _of_managed(call: Invocation, metrics: int | None) -> Exit:
    most = call.account.settings.limits.scan_metrics_per_day if metrics is None else metrics
    this = DryRun(call.account, datetime.now(UTC), MetricBudget(most))
    with call.out.show_waiting("looking at every managed queue"):
        *_, scanned = this.stretches()
    with call.out.show_waiting("asking what would come of it"):
        would = this.would_do(scanned.findings)
    call.out.print_json(this.document(scanned, would))
    _show(call.out, this, scanned, would)
    return Exit.FAILED if scanned.failed else Exit.DONE


def _policy() -> dict[str, Any]:
    from mendq.cli.permissions import make_policy  # noqa: PLC0415 - it asks every command, this too

    return make_policy(_OF_A_REGION)


def _patterns(account: Account, named: Iterable[str], prefix: str | None) -> tuple[str, ...]:
    """What the queues to look at fit.

    Raises CommandError where nothing that is named can be one of them.
    """
    names = tuple(parts_of(resolve_queue_arn(account, each)).name for each in named)
    if prefix is None:
        return names or (EVERYTHING,)
    if not arn_of_name(prefix, account.region, account.account_id):
        line = f"--prefix {prefix[:80]!r} begins no queue's name: only a-z, A-Z, 0-9, - and _ do"
        raise CommandError(line, Exit.USAGE)
    return (*names, f"{prefix}*")


def _of_region(
    call: Invocation, patterns: tuple[str, ...], html: Path | None, metrics: int | None
) -> Exit:
    """0 whatever it finds; 1 where nothing could be seen of any queue, 4 where one is not there."""
    if html is not None:
        require_place(html)
    purse = MetricBudget(_USUAL_METRICS if metrics is None else metrics)
    this, scanned = RegionScan(call.account, datetime.now(UTC), purse, patterns), ScanResult()
    with call.out.show_waiting("listing the queues"):
        number = len(this.queues)
    with call.out.show_progress("looking at queues", number) as come_to:
        for scanned in this.stretches():
            come_to(scanned.queues_scanned)
    with call.out.show_waiting("asking what would come of it"):
        would = this.would_do(scanned.findings)
    document = this.document(scanned, would)
    _show_region(call.out, this, scanned, would)
    if html is not None:
        from mendq.cli.scan.scan_page import render_page  # noqa: PLC0415 - only who wants a render_page waits

        replace_if_changed(html, render_page(document))
    call.out.print_json(document)

    return Exit.FAILED if scanned.is_blind else Exit.NOT_FOUND if this.absent else Exit.DONE


def _show(out: Output, this: DryRun, scanned: ScanResult, would: dict[Finding, WouldDo]) -> None:
    if would:
        show_findings(out, would)
    elif not this.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    else:
        unknown = scanned.failed or scanned.skipped
        words = f"nothing was found{' in what was judged' if unknown else ''}"
        out.say(words, "yellow" if unknown else "green")
    out.say("")
    an_hour = this.metrics_an_hour(scanned, would)
    out.say(
        f"{scanned.queues_scanned:,} queues looked at, {scanned.suspects:,} suspects, "
        f"{scanned.measured:,} measured, {len(scanned.skipped):,} skipped for the budget, "
        f"{len(scanned.findings):,} findings"
    )
    out.say(
        f"{this.purse.spent:,} metrics asked for: ${METRIC_ASKED.of(this.purse.spent):,.4f}; the "
        f"scan and heal ask for at most {an_hour:,} each hour, "
        f"${estimate_monthly_dollars(an_hour):,.2f} a month ({METRIC_ASKED.noted})",
        "dim",
    )
    for why, queues in _by_reason(scanned.failed).items():
        out.say(f"could not look at {shorten_list(queues, _MOST_NAMED)}: {why}", "red")
    out.say("nothing was changed, noted or paged")


def _show_region(
    out: Output, this: RegionScan, scanned: ScanResult, would: dict[Finding, WouldDo]
) -> None:
    for severity, of_it in groupby(sort_worst_first(would), rate_severity):
        findings = {each: would[each] for each in of_it}
        out.say_heading(f"{severity.capitalize()}: {format_count(len(findings), 'finding')}")
        show_findings(out, findings, _MOST_ALIKE)
    not_seen = this.not_seen(scanned)
    if not would:
        out.say(_none_found(this, scanned, not_seen), "yellow" if not_seen else "green")
    out.say("")
    for why, queues in _by_reason(not_seen).items():
        out.say(f"not judged, or not wholly: {shorten_list(queues, _MOST_NAMED)}: {why}", "yellow")
    if max(len(not_seen), len(would)) > _MOST_NAMED:
        out.say("--json and --html name every queue", "dim")
    an_hour = estimate_monthly_dollars(this.metrics_an_hour(scanned, would))
    out.say(
        f"{this.account.account_id}, {this.account.region}: "
        f"{format_count(scanned.queues_scanned, 'queue')}, {format_count(len(would), 'finding')}, "
        f"{len(not_seen):,} not judged wholly; {this.purse.spent:,} metrics asked "
        f"for: ${METRIC_ASKED.of(this.purse.spent):,.4f}"
    )
    out.say(
        f"Deployed, Mendq looks each hour (at most ${an_hour:,.2f} a month for these queues), sees "
        f"{len(BY_FAILED_CALLS_ALONE)} more symptoms where a trail logs failed calls, and changes "
        "nothing until told to",
        "dim",
    )
    out.say("nothing was changed")


def _none_found(this: RegionScan, scanned: ScanResult, not_seen: Collection[str]) -> str:
    """Says so of nothing that could not be judged."""
    if not this.queues:
        return "no queue was looked at" if not_seen else "there is no queue"
    if scanned.is_blind:
        return "no queue could be judged"
    return f"nothing was found{' in what could be judged' if not_seen else ''}"


def _by_reason(not_seen: Mapping[str, str | Exception]) -> dict[str, list[str]]:
    """The queues by why they were not judged, in words that fit each of them."""
    found = defaultdict[str, list[str]](list)
    for about, why in not_seen.items():
        arn, said = arn_of(about), why if isinstance(why, str) else describe_error(why)
        name = parts_of(about).name if arn else _UNLISTED.get(about, about)
        found[said.replace(about, "the queue") if arn else said].append(name)
    return found


def show_findings(out: Output, would: Mapping[Finding, WouldDo], most: int | None = None) -> None:
    """A block each, `most` of a symptom; a fault that is only reported is one of several queues."""
    for name, findings in _by_symptom(would).items():
        queues = [parts_of(each.queue_arn).name for each in findings]
        if len(findings) > 1 and _is_only_reported(name):
            comes_of_it = f"only reports it: {shorten_list(queues, _MOST_NAMED)}"
            _block(out, f"{len(queues)} queues", name, BY_NAME[name].sentence, comes_of_it)
        else:
            for queue, each in list(zip(queues, findings, strict=True))[:most]:
                _block(out, queue, name, each.because, would[each].line)
                for command in would[each].commands:
                    out.say_command(command)
            if most is not None and len(queues) > most:
                out.say_indented(
                    f"and {len(queues) - most:,} other queues: --json or --html names them"
                )
        out.say_indented(f"runbook: {BY_NAME[name].runbook}", "dim")


def _block(out: Output, whose: str, symptom: str, found: str, comes_of_it: str) -> None:
    out.show(Text.assemble((plain(whose, 80), "bold"), "\n  ", (symptom, "yellow")))
    out.say_indented(found)
    out.say_indented(f"-> {comes_of_it.replace(f'{found}. ', '')}", "cyan")


def _by_symptom(would: Iterable[Finding]) -> dict[str, list[Finding]]:
    """In the catalogue's order, each with what is lost first; what is only reported stands last."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for each in sort_by_urgency(would, lambda finding: finding.seconds_left):
        found[each.symptom].append(each)
    names = sorted((name for name in BY_NAME if name in found), key=_is_only_reported)
    return {name: found[name] for name in names}


def _is_only_reported(name: str) -> bool:
    return BY_NAME[name].plan is None
