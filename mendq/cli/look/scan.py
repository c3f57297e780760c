"""`mendq scan --dry-run`: what the scan would find now, and what would come of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mendq.cases.finding import Finding, Scanned
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.output import Output
from mendq.cli.scan.findings_table import findings_table
from mendq.cli.scan.price import PRICED, Purse, dollars, dollars_per_month
from mendq.cli.scan.round import Round
from mendq.cli.scan.would_do import WouldDo
from mendq.model.queue import parts_of

_MOST_FAILURES = 5
_NOT_HERE = "the scan Lambda scans by itself each hour: --dry-run shows what it would find now"


@with_invocation
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
    this = Round(call.account, datetime.now(UTC), Purse(most))
    scanned = _scanned(call, this)
    with call.out.waiting("asking what would come of it"):
        would = dict(this.would_do(scanned.findings))
    call.out.document(this.document(scanned, would))
    _show(call.out, this, scanned, would)
    return Exit.FAILED if scanned.failed else Exit.DONE


def _scanned(call: Invocation, this: Round) -> Scanned:
    """With a bar over the queues, where somebody looks."""
    with call.out.waiting("listing the managed queues"):
        queues = len(this.queues)
    scanned, console = Scanned(), call.out.progress
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("looking at queues", total=queues)
        for scanned in this.stretches():
            what = "measuring suspects" if scanned.queues >= queues else "looking at queues"
            bar.update(task, completed=scanned.queues, description=what)
    return scanned


def _show(out: Output, this: Round, scanned: Scanned, would: dict[Finding, WouldDo]) -> None:
    if would:
        out.show(findings_table(would))
    elif not this.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    else:
        out.say("nothing was found", "green")
    out.say("")
    an_hour = this.metrics_an_hour(scanned, would)
    out.say(
        f"{scanned.queues:,} queues looked at, {scanned.suspects:,} suspects, "
        f"{scanned.measured:,} measured, {scanned.skipped:,} skipped for the budget, "
        f"{len(scanned.findings):,} findings"
    )
    out.say(
        f"{this.purse.spent:,} metrics asked for: ${dollars(this.purse.spent):,.4f}; the scan and "
        f"heal ask for at most {an_hour:,} each hour, ${dollars_per_month(an_hour):,.2f} a month "
        f"({PRICED})",
        "dim",
    )
    for arn, error in sorted(scanned.failed.items())[:_MOST_FAILURES]:
        out.say(f"could not look at {parts_of(arn).name}: {error}", "red")
    if len(scanned.failed) > _MOST_FAILURES:
        out.say(f"nor at {len(scanned.failed) - _MOST_FAILURES:,} others", "red")
    out.say("nothing was changed, noted or paged")
