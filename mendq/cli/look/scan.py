"""`mendq scan`: find symptoms on a region's queues, or show what the deployed scan would do."""

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
from mendq.cli.commands import (
    CASE_QUERY_ACTIONS,
    FREEZE_ACTIONS,
    MANAGED_QUEUES_ACTIONS,
    SCAN_FACTS_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, describe_error
from mendq.cli.look.export import replace_if_changed, require_writable_place
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
# What the operator reads in place of a pattern whose queues could not be listed.
_UNLISTED = {EVERYTHING: "queues without a tag"}
# Queues with the same symptom that are printed. --json and --html have them all.
_MOST_ALIKE = 5
# Metrics that may be asked for by default. They cost about ten cents.
_USUAL_METRICS = 10_000
_RIGHTS = MANAGED_QUEUES_ACTIONS | CASE_QUERY_ACTIONS | FREEZE_ACTIONS | SCAN_FACTS_ACTIONS
# The rights that a scan of a region needs. It does not read Mendq's own resources.
_OF_A_REGION = SCAN_FACTS_ACTIONS | {"tag:GetResources", "sqs:ListQueues"}


@command(4, CommandKind.LOOKING, _RIGHTS)
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
        Output(as_json=True).print_json(_make_policy())
        return Exit.DONE
    if dry_run and (queue or html or prefix is not None):
        raise CommandError(
            "--dry-run looks at every managed queue: leave out the others", Exit.USAGE
        )
    if not dry_run:
        patterns = _make_patterns(call.account, queue or (), prefix)
        return _scan_region(call, patterns, html, metrics)
    return _dry_run(call, metrics)


def _dry_run(call: Invocation, metrics: int | None) -> Exit:
    """Scan the managed queues as the deployed scan does, and print what would follow."""
    if metrics is None:
        metrics = call.account.settings.limits.scan_metrics_per_day
    run = DryRun(call.account, datetime.now(UTC), MetricBudget(metrics))
    with call.out.show_waiting("looking at every managed queue"):
        results = list(run.run_scan())
    result = results[-1]
    with call.out.show_waiting("asking what would come of it"):
        would = run.decide_findings(result.findings)
    call.out.print_json(run.document(result, would))
    _show(call.out, run, result, would)
    return Exit.FAILED if result.failed else Exit.DONE


def _make_policy() -> dict[str, Any]:
    """Return the IAM policy that a scan of a region needs."""
    from mendq.cli.permissions import make_policy  # noqa: PLC0415 - it imports this file

    return make_policy(_OF_A_REGION)


def _make_patterns(account: Account, names: Iterable[str], prefix: str | None) -> tuple[str, ...]:
    """Return the patterns that the names of the scanned queues must match.

    Raises CommandError if a given name or prefix can be no queue's.
    """
    patterns = tuple(parts_of(resolve_queue_arn(account, name)).name for name in names)
    if prefix is None:
        return patterns or (EVERYTHING,)
    if not arn_of_name(prefix, account.region, account.account_id):
        line = f"--prefix {prefix[:80]!r} begins no queue's name: only a-z, A-Z, 0-9, - and _ do"
        raise CommandError(line, Exit.USAGE)
    return (*patterns, f"{prefix}*")


def _scan_region(
    call: Invocation, patterns: tuple[str, ...], html: Path | None, metrics: int | None
) -> Exit:
    """Scan the queues of the region whose names match, and print the findings.

    Return 0 whatever it finds, 1 if nothing could be seen of any queue, and 4 if a named queue does
    not exist.
    """
    if html is not None:
        require_writable_place(html)
    budget = MetricBudget(_USUAL_METRICS if metrics is None else metrics)
    run = RegionScan(call.account, datetime.now(UTC), budget, patterns)
    result = ScanResult()
    with call.out.show_waiting("listing the queues"):
        number = len(run.queues)
    with call.out.show_progress("looking at queues", number) as show_done:
        for result in run.run_scan():
            show_done(result.queues_scanned)
    with call.out.show_waiting("asking what would come of it"):
        would = run.decide_findings(result.findings)
    document = run.document(result, would)
    _show_region(call.out, run, result, would)
    if html is not None:
        from mendq.cli.scan.scan_page import render_page  # noqa: PLC0415 - only a page needs it

        replace_if_changed(html, render_page(document))
    call.out.print_json(document)
    if result.is_blind:
        return Exit.FAILED
    return Exit.NOT_FOUND if run.absent_names else Exit.DONE


def _show(out: Output, run: DryRun, result: ScanResult, would: dict[Finding, WouldDo]) -> None:
    """Print the findings of a dry run, and what the deployed scan costs."""
    if would:
        show_findings(out, would)
    elif not run.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    elif result.failed or result.skipped:
        out.say("nothing was found in what was judged", "yellow")
    else:
        out.say("nothing was found", "green")
    out.say("")
    an_hour = run.metrics_an_hour(result, would)
    out.say(
        f"{result.queues_scanned:,} queues looked at, {result.suspects:,} suspects, "
        f"{result.measured:,} measured, {len(result.skipped):,} skipped for the budget, "
        f"{len(result.findings):,} findings"
    )
    spent = run.budget.spent
    out.say(
        f"{spent:,} metrics asked for: ${METRIC_ASKED.cost(spent):,.4f}; the "
        f"scan and heal ask for at most {an_hour:,} each hour, "
        f"${estimate_monthly_dollars(an_hour):,.2f} a month ({METRIC_ASKED.note})",
        "dim",
    )
    for reason, queues in _group_by_reason(result.failed).items():
        out.say(f"could not look at {shorten_list(queues, _MOST_NAMED)}: {reason}", "red")
    out.say("nothing was changed, noted or paged")


def _show_region(
    out: Output, run: RegionScan, result: ScanResult, would: dict[Finding, WouldDo]
) -> None:
    """Print the findings of a region by severity, what could not be checked, and the costs."""
    for severity, group in groupby(sort_worst_first(would), rate_severity):
        findings = {finding: would[finding] for finding in group}
        out.say_heading(f"{severity.capitalize()}: {format_count(len(findings), 'finding')}")
        show_findings(out, findings, _MOST_ALIKE)
    not_seen = run.explain_unchecked(result)
    if not would:
        out.say(_describe_no_findings(run, result, not_seen), "yellow" if not_seen else "green")
    out.say("")
    for reason, queues in _group_by_reason(not_seen).items():
        names = shorten_list(queues, _MOST_NAMED)
        out.say(f"not judged, or not wholly: {names}: {reason}", "yellow")
    if max(len(not_seen), len(would)) > _MOST_NAMED:
        out.say("--json and --html name every queue", "dim")
    dollars = estimate_monthly_dollars(run.metrics_an_hour(result, would))
    spent = run.budget.spent
    out.say(
        f"{run.account.account_id}, {run.account.region}: "
        f"{format_count(result.queues_scanned, 'queue')}, {format_count(len(would), 'finding')}, "
        f"{len(not_seen):,} not judged wholly; {spent:,} metrics asked "
        f"for: ${METRIC_ASKED.cost(spent):,.4f}"
    )
    out.say(
        f"Deployed, Mendq looks each hour (at most ${dollars:,.2f} a month for these queues), sees "
        f"{len(BY_FAILED_CALLS_ALONE)} more symptoms where a trail logs failed calls, and changes "
        "nothing until told to",
        "dim",
    )
    out.say("nothing was changed")


def _describe_no_findings(run: RegionScan, result: ScanResult, not_seen: Collection[str]) -> str:
    """Return the line for a scan without findings. It never calls an unchecked queue healthy."""
    if not run.queues:
        return "no queue was looked at" if not_seen else "there is no queue"
    if result.is_blind:
        return "no queue could be judged"
    return f"nothing was found{' in what could be judged' if not_seen else ''}"


def _group_by_reason(not_seen: Mapping[str, str | Exception]) -> dict[str, list[str]]:
    """Return the names of the queues by the reason why they were not checked.

    A queue's ARN in a reason becomes "the queue", so that queues with the same reason are together.
    """
    names_by_reason = defaultdict[str, list[str]](list)
    for target, why in not_seen.items():
        reason = why if isinstance(why, str) else describe_error(why)
        if arn_of(target):
            reason = reason.replace(target, "the queue")
            name = parts_of(target).name
        else:
            name = _UNLISTED.get(target, target)
        names_by_reason[reason].append(name)
    return names_by_reason


def show_findings(out: Output, would: Mapping[Finding, WouldDo], most: int | None = None) -> None:
    """Print a block of lines for each finding, at most `most` for a symptom.

    Several queues with a symptom that Mendq only reports share one block.
    """
    for symptom, findings in _group_by_symptom(would).items():
        names = [parts_of(finding.queue_arn).name for finding in findings]
        if len(findings) > 1 and _is_only_reported(symptom):
            outcome = f"only reports it: {shorten_list(names, _MOST_NAMED)}"
            _print_block(out, f"{len(names)} queues", symptom, BY_NAME[symptom].sentence, outcome)
        else:
            for name, finding in list(zip(names, findings, strict=True))[:most]:
                _print_block(out, name, symptom, finding.because, would[finding].line)
                for command in would[finding].commands:
                    out.say_command(command)
            if most is not None and len(names) > most:
                out.say_indented(
                    f"and {len(names) - most:,} other queues: --json or --html names them"
                )
        out.say_indented(f"runbook: {BY_NAME[symptom].runbook}", "dim")


def _print_block(out: Output, name: str, symptom: str, because: str, outcome: str) -> None:
    """Print a finding: the queue, the symptom, why it was found, and what Mendq would do."""
    out.show(Text.assemble((plain(name, 80), "bold"), "\n  ", (symptom, "yellow")))
    out.say_indented(because)
    out.say_indented(f"-> {outcome.replace(f'{because}. ', '')}", "cyan")


def _group_by_symptom(would: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings by symptom, in the catalogue's order; only reported symptoms come last.

    Within a symptom, the queue that loses messages first comes first.
    """
    by_symptom: dict[str, list[Finding]] = defaultdict(list)
    for finding in sort_by_urgency(would, lambda finding: finding.seconds_left):
        by_symptom[finding.symptom].append(finding)
    names = sorted((name for name in BY_NAME if name in by_symptom), key=_is_only_reported)
    return {name: by_symptom[name] for name in names}


def _is_only_reported(symptom: str) -> bool:
    """Return True if Mendq has no plan for the symptom."""
    return BY_NAME[symptom].plan is None
