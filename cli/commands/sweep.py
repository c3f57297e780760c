"""`mendq sweep --dry-run`: what the sweep would find now, and what would come of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from cli.output import Output
from cli.sweep.findings_table import findings_table
from cli.sweep.price import PRICED, Purse, dollars, dollars_per_month
from cli.sweep.round import Round
from cli.sweep.would_do import WouldDo
from functions.healing.queue_names import parts_of
from functions.healing.sweeping import Finding, Swept

_MOST_FAILURES = 5
_NOT_HERE = "the sweep Lambda sweeps by itself each hour: --dry-run shows what it would find now"


@with_invocation
def sweep(
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
    most = call.account.settings.limits.sweep_metrics_per_day if metrics is None else metrics
    this = Round(call.account, datetime.now(UTC), Purse(most))
    swept = _swept(call, this)
    with call.out.waiting("asking what would come of it"):
        would = dict(this.would_do(swept.findings))
    call.out.document(this.document(swept, would))
    _show(call.out, this, swept, would)
    return Exit.FAILED if swept.failed else Exit.DONE


def _swept(call: Invocation, this: Round) -> Swept:
    """With a bar over the queues, where somebody looks."""
    with call.out.waiting("listing the managed queues"):
        queues = len(this.queues)
    swept, console = Swept(), call.out.progress
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("looking at queues", total=queues)
        for swept in this.stretches():
            what = "measuring suspects" if swept.queues >= queues else "looking at queues"
            bar.update(task, completed=swept.queues, description=what)
    return swept


def _show(out: Output, this: Round, swept: Swept, would: dict[Finding, WouldDo]) -> None:
    if would:
        out.show(findings_table(would))
    elif not this.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    else:
        out.say("nothing was found", "green")
    out.say("")
    an_hour = this.metrics_an_hour(swept, would)
    out.say(
        f"{swept.queues:,} queues looked at, {swept.suspects:,} suspects, "
        f"{swept.measured:,} measured, {swept.skipped:,} skipped for the budget, "
        f"{len(swept.findings):,} findings"
    )
    out.say(
        f"{this.purse.spent:,} metrics asked for: ${dollars(this.purse.spent):,.4f}; the sweep and "
        f"heal ask for at most {an_hour:,} each hour, ${dollars_per_month(an_hour):,.2f} a month "
        f"({PRICED})",
        "dim",
    )
    for arn, error in sorted(swept.failed.items())[:_MOST_FAILURES]:
        out.say(f"could not look at {parts_of(arn).name}: {error}", "red")
    if len(swept.failed) > _MOST_FAILURES:
        out.say(f"nor at {len(swept.failed) - _MOST_FAILURES:,} others", "red")
    out.say("nothing was changed, noted or paged")
