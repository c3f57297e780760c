"""`mendq sweep --dry-run`: what the sweep would find now, and what would come of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from cli.output import Output
from cli.sweep.price import PRICED, dollars, dollars_per_month
from cli.sweep.round import Round
from cli.sweep.would_do import BY_NAME, WouldDo
from functions.healing.daily_pace import NEW_QUEUES_A_DAY
from functions.healing.plain_text import plain
from functions.healing.queue_names import parts_of
from functions.healing.sweeping import Finding, Swept

# So many queues of one fault are rows of their own; more are one row.
MOST_ROWS = 5
_MOST_NAMED = 4
_NAME_WIDTH = 34
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
    this = Round(call.account, datetime.now(UTC), most)
    swept = _swept(call, this)
    with call.out.waiting("asking what would come of it"):
        would = {each: this.would_do(each) for each in sorted(swept.findings)}
    call.out.document(this.document(swept, would))
    _show(call.out, swept, would)
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


def _show(out: Output, swept: Swept, would: dict[Finding, WouldDo]) -> None:
    if would:
        out.show(_table(would))
    else:
        out.say("nothing was found", "green")
    out.say("")
    out.say(
        f"{swept.queues:,} queues looked at, {swept.suspects:,} suspects, "
        f"{swept.measured:,} measured, {swept.skipped:,} skipped for the budget, "
        f"{len(swept.findings):,} findings"
    )
    out.say(
        f"{swept.metrics:,} metrics asked for: ${dollars(swept.metrics):,.4f}; "
        f"each hour, ${dollars_per_month(swept.metrics):,.2f} a month ({PRICED})",
        "dim",
    )
    if _configurations(would) > NEW_QUEUES_A_DAY:
        out.say(f"of faults in configuration Mendq takes up {NEW_QUEUES_A_DAY} queues a day", "dim")
    for arn, error in sorted(swept.failed.items())[:MOST_ROWS]:
        out.say(f"could not look at {parts_of(arn).name}: {error}", "red")
    if len(swept.failed) > MOST_ROWS:
        out.say(f"nor at {len(swept.failed) - MOST_ROWS:,} others", "red")
    out.say("nothing was changed, noted or paged")


def _configurations(would: dict[Finding, WouldDo]) -> int:
    """Queues of which heal would be told, a few a day."""
    found = ((each, BY_NAME[each.symptom]) for each in would)
    return len(
        {
            each.queue_arn
            for each, symptom in found
            if symptom.plan and symptom.detection and symptom.detection.of_configuration
        }
    )


def _table(would: dict[Finding, WouldDo]) -> Table:
    """Two columns, so that it fits 80: whose and what, then the numbers and what comes of it."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold")
    shown.add_column("QUEUE, SYMPTOM", max_width=_NAME_WIDTH, overflow="fold")
    shown.add_column("WHAT WAS FOUND, AND WHAT MENDQ DOES", overflow="fold")
    for name, findings in _by_symptom(would).items():
        if len(findings) > MOST_ROWS and _is_only_reported(name):
            shown.add_row(*_row(f"{len(findings)} queues", name, _together(findings)))
            continue
        for each in findings:
            said = _because(each.because, would[each].line)
            shown.add_row(*_row(parts_of(each.queue_arn).name, name, said))
    return shown


def _by_symptom(would: Iterable[Finding]) -> dict[str, list[Finding]]:
    """In the catalogue's order; what is only reported stands last."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for each in would:
        found[each.symptom].append(each)
    names = sorted((name for name in BY_NAME if name in found), key=_is_only_reported)
    return {name: found[name] for name in names}


def _is_only_reported(name: str) -> bool:
    return BY_NAME[name].plan is None


def _row(whose: str, symptom: str, said: Text) -> tuple[Text, Text]:
    return Text.assemble((plain(whose, 80), "bold"), "\n", (symptom, "yellow")), said


def _because(found: str, comes_of_it: str) -> Text:
    return Text.assemble(plain(found, 400), "\n", (f"-> {plain(comes_of_it, 400)}", "cyan"))


def _together(findings: Sequence[Finding]) -> Text:
    """Many of the same: the sentence once, and a few names."""
    names = [parts_of(each.queue_arn).name for each in findings]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    sentence = BY_NAME[findings[0].symptom].sentence
    return _because(sentence, f"only reports it: {', '.join(names[:_MOST_NAMED])}{more}")
