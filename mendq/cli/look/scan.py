"""`mendq scan --dry-run`: what the scan would find now, and what would come of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from mendq.cases.finding import Finding, Scanned
from mendq.catalogue import BY_NAME
from mendq.catalogue._time_left import most_urgent_first
from mendq.cli.commands import CASES, DLQ, FROZEN, MANAGED, QUEUE, Kind, command
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation
from mendq.cli.look.dry_run import DryRun, Purse, WouldDo, dollars_per_month
from mendq.cli.output import Output, some
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import parts_of
from mendq.notifications.text import plain

_MOST_FAILURES = 5
_MOST_NAMED = 4
_NOT_HERE = "the scan Lambda scans by itself each hour: --dry-run shows what it would find now"


_MEASURING = {
    *("lambda:ListEventSourceMappings", "lambda:GetFunctionConcurrency", "sqs:ListQueueTags"),
    *("cloudwatch:GetMetricData", "cloudwatch:ListMetrics", "cloudwatch:DescribeAlarms"),
}


@command(4, Kind.LOOKING, MANAGED | QUEUE | CASES | FROZEN | DLQ | _MEASURING)
def scan(
    call: Invocation,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look, and change nothing.")] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            help="How many metrics to ask CloudWatch for, each is billed; as settings say.", min=0
        ),
    ] = None,
) -> Exit:
    """Look at every managed queue for what makes no call fail."""
    if not dry_run:
        raise Stopped(_NOT_HERE, Exit.USAGE)
    most = call.account.settings.limits.scan_metrics_per_day if metrics is None else metrics
    this = DryRun(call.account, datetime.now(UTC), Purse(most))
    with call.out.waiting("looking at every managed queue"):
        *_, scanned = this.stretches()
    with call.out.waiting("asking what would come of it"):
        would = this.would_do(scanned.findings)
    call.out.document(this.document(scanned, would))
    _show(call.out, this, scanned, would)
    return Exit.FAILED if scanned.failed else Exit.DONE


def _show(out: Output, this: DryRun, scanned: Scanned, would: dict[Finding, WouldDo]) -> None:
    if would:
        show_findings(out, would)
    elif not this.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    else:
        out.say("nothing was found", "green")
    out.say("")
    an_hour = this.metrics_an_hour(scanned, would)
    out.say(
        f"{scanned.queues_scanned:,} queues looked at, {scanned.suspects:,} suspects, "
        f"{scanned.measured:,} measured, {scanned.skipped_for_budget:,} skipped for the budget, "
        f"{len(scanned.findings):,} findings"
    )
    out.say(
        f"{this.purse.spent:,} metrics asked for: ${METRIC_ASKED.of(this.purse.spent):,.4f}; the "
        f"scan and heal ask for at most {an_hour:,} each hour, "
        f"${dollars_per_month(an_hour):,.2f} a month ({METRIC_ASKED.noted})",
        "dim",
    )
    for arn, error in sorted(scanned.failed.items())[:_MOST_FAILURES]:
        out.say(f"could not look at {parts_of(arn).name}: {error}", "red")
    if len(scanned.failed) > _MOST_FAILURES:
        out.say(f"nor at {len(scanned.failed) - _MOST_FAILURES:,} others", "red")
    out.say("nothing was changed, noted or paged")


def show_findings(out: Output, would: Mapping[Finding, WouldDo]) -> None:
    """A block each; several queues with a fault that is only reported are one."""
    for name, findings in _by_symptom(would).items():
        queues = [parts_of(each.queue_arn).name for each in findings]
        if len(findings) > 1 and _is_only_reported(name):
            comes_of_it = f"only reports it: {some(queues, _MOST_NAMED)}"
            _block(out, f"{len(queues)} queues", name, BY_NAME[name].sentence, comes_of_it)
            continue
        for queue, each in zip(queues, findings, strict=True):
            _block(out, queue, name, each.because, would[each].line)


def _block(out: Output, whose: str, symptom: str, found: str, comes_of_it: str) -> None:
    out.show(Text.assemble((plain(whose, 80), "bold"), "\n  ", (symptom, "yellow")))
    out.under(plain(found, 400))
    out.under(f"-> {plain(comes_of_it, 400)}", "cyan")


def _by_symptom(would: Iterable[Finding]) -> dict[str, list[Finding]]:
    """In the catalogue's order, each with what is lost first; what is only reported stands last."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for each in most_urgent_first(would, lambda finding: finding.seconds_left):
        found[each.symptom].append(each)
    names = sorted((name for name in BY_NAME if name in found), key=_is_only_reported)
    return {name: found[name] for name in names}


def _is_only_reported(name: str) -> bool:
    return BY_NAME[name].plan is None
