"""What the demo prints: events as they come, a table of the queues below, and the summary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import Traffic
from local_account.demo.watching import Observation, Watch
from mendq.cli.look.case_view import STYLE_BY_STATE
from mendq.model.case import Severity, State
from mendq.notifications.change_lines import DELETES, RETENTION
from mendq.notifications.commands import set_command

if TYPE_CHECKING:
    from local_account.demo.mailbox import Mailbox, Message

FIRST_LINES = 12
RULE_WIDTH = 80
PIPE_WIDTH = 10_000  # a pipe has no width; lines in it are not broken
UNDO_WORKS = "(as it would be typed: this account and its port end with the demo)"
INDENT = (0, 0, 0, 2)
NEXT = (
    ("make account", "keeps such an account standing, for tries of your own"),
    ("docs/deploy.md", "puts Mendq on your own account, to observe at first"),
)


def console() -> Console:
    """Return the demo's console. In a pipe it breaks no line, so that logs can be searched."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=get_terminal_size((PIPE_WIDTH, 0)).columns)


def show(console: Console, *renderables: RenderableType) -> None:
    """Print the given objects one after the other. A text with `no_wrap` stays on its line."""
    for renderable in renderables:
        is_unbroken = isinstance(renderable, Text) and renderable.no_wrap is True
        console.print(renderable, soft_wrap=is_unbroken)


def rule(title: str, style: str, *, ends: bool = False) -> RenderableType:
    """Return a horizontal line with a title at its left, or at its right if it ends a block."""
    text = Text(title, style="dim" if ends else "bold")
    return Constrain(Rule(text, align="right" if ends else "left", style=style), RULE_WIDTH)


def _indent(text: str | Text, style: str = "") -> RenderableType:
    if isinstance(text, str):
        text = Text(text, style=style)
    return Padding(text, INDENT, expand=False)


def event(watch: Watch, name: str, what: str, style: str = "") -> RenderableType:
    """Return a line about an event: the second of the story, a name, and what happened."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7, justify="right", style="dim")
    grid.add_column(min_width=13, style="bold")
    grid.add_column(overflow="fold", style=style)
    grid.add_row(f"{watch.seconds():.1f} s", Text(name), Text(what))
    return grid


def command(line: str, code: int, text: str) -> Iterator[RenderableType]:
    """Yield the lines of a command that has ended: its text, its output and its exit code."""
    yield rule(f"$ {line}", "cyan")
    yield Text(text.strip("\n"), no_wrap=True)
    yield rule(f"exit {code}", "cyan", ends=True)


def calls_ended(traffic: Traffic, fault: str | None, times: int) -> tuple[str, str]:
    """Return words and style for several calls that ended in the same way."""
    calls = f"{times} {traffic.noun}{'' if times == 1 else 's'}"
    if fault is None:
        return f"{calls} {traffic.well}", "green"
    return f"{calls} failed: {fault}", "red"


def decision(case: Mapping[str, Any]) -> tuple[str, str]:
    """Return words and style for a transition of a case."""
    return f"{case['to']}: {case['reason']}", STYLE_BY_STATE.get(case["to"], "bold")


def queue_of(record: Mapping[str, Any]) -> str:
    """Return the name of the queue of a case or an incident."""
    return str(record["queue_arn"]).rpartition(":")[2]


def pairs(rows: Iterable[tuple[str, str]], style: str = "bold", indent: int = 2) -> RenderableType:
    """Return a grid of names, each with a sentence beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column(style="dim")
    for name, sentence in rows:
        grid.add_row(Text(name), Text(sentence))
    return Padding(grid, (0, 0, 0, indent), expand=False)


def cast(story: Story) -> RenderableType:
    """Return the queues of a story, with a sentence about the fault of each."""
    return Group(Text(""), pairs((bad.name, bad.why) for bad in story.queues), Text(""))


def table(heads: str, rows: Iterable[Sequence[Text]]) -> Table:
    """Return a table. `heads` separates column heads by `|`; a head with `#` is right-aligned."""
    result = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for head in heads.split("|"):
        result.add_column(head.lstrip("#"), justify="right" if head[0] == "#" else "left")
    for row in rows:
        result.add_row(*row)
    return result


def queue_table(story: Story, watch: Watch) -> RenderableType:
    """Return the table of the queues, one line each, which fits into 80 columns.

    The calls of a consumer that crashes count as "no error", because its receives succeed.
    """

    def row(bad: BadQueue) -> Iterator[Text]:
        queue = watch.queues[bad.name]
        yield Text(bad.name, style="bold")
        yield Text(str(queue.failed_calls), style="red" if queue.failed_calls else "dim")
        yield Text(str(queue.calls_well), style="green" if queue.calls_well else "dim")
        yield _state(queue)
        changes = [f"{name} {old} -> {new}" for name, (old, new) in queue.changes().items()]
        words = f"{len(changes)} attributes" if len(changes) > 1 else "".join(changes)
        yield Text(words or "-", style="bold green" if changes else "dim")

    rows = [tuple(row(bad)) for bad in story.queues]
    return Group(Text(""), table("queue|#failed calls|#no error|case|changed", rows))


def _state(queue: Observation) -> Text:
    state: Any = queue.case["to"] if queue.case else "-"
    return Text(state, style=STYLE_BY_STATE.get(state, "dim"))


def decisions(story: Story, watch: Watch) -> Iterator[RenderableType]:
    """Yield the lines about each queue's case: its reason and evidence, the change and its undo."""
    yield Text("")
    for bad in story.queues:
        queue = watch.queues[bad.name]
        cases = watch.transitions(bad.name)
        if cases:
            yield from _decision_about(bad, queue, cases)
            yield Text("")


def _decision_about(
    bad: BadQueue, queue: Observation, cases: Sequence[Mapping[str, Any]]
) -> Iterator[RenderableType]:
    first = cases[0]
    last = cases[-1]
    yield Text.assemble((bad.name, "bold"), "  ", _state(queue))
    if len(cases) > 1:
        yield _field("life", " -> ".join(case["to"] for case in cases))
    yield _field("why", first["reason"])
    if len(cases) > 1 and not first["reason"].startswith(last["reason"]):
        yield _field("in the end", last["reason"])
    yield _field("seen", _evidence(first["evidence"], queue))
    yield from _change(bad, queue)


def _evidence(evidence: Mapping[str, Any], queue: Observation) -> str:
    """Return the words for the evidence that a case was opened with."""
    count = evidence["failed_calls"]
    if not count:
        return "by a scan; no call failed"
    words = f"{count} failed calls"
    if count < queue.failed_calls:
        words += f" by then, {queue.failed_calls} in all"
    return f"{words}, the first request {evidence['first_request_id']}"


def _change(bad: BadQueue, queue: Observation) -> Iterator[RenderableType]:
    """Yield the lines that show a queue's change: undone, made, proposed, or only planned."""
    steps = queue.case["steps"] if queue.case else []
    state = queue.case["to"] if queue.case else None
    texts = ", ".join(f"{step['attribute']} {step['before']} -> {step['after']}" for step in steps)
    if state == State.ROLLED_BACK:
        yield _field("undone", texts)
    elif bad.a_person_sets:
        yield _field("change", texts)
        values = ", ".join(f"{name} {value}" for name, value in bad.a_person_sets.items())
        yield _field("kept", f"{values}, a person's value")
    elif bad.is_written and not bad.leaves_a_value:
        yield _field("change", f"{texts}: what went back is not taken back")
    elif queue.changes():
        seconds = queue.seconds_to_heal()
        duration = "" if seconds is None else f", {seconds:.1f} s after the first failing call"
        yield _field("change", texts + duration)
        yield from _undo(queue)
    elif state == State.PROPOSED:
        yield _field("change", f"none yet; proposed: {texts}")
    elif texts:
        yield _field("change", f"none (it would have been {texts})")
    else:
        yield _field("change", "none")


def _undo(queue: Observation) -> Iterator[RenderableType]:
    """Yield the lines with the command that undoes the change; no line without a change."""
    endpoint = f" --endpoint-url {'/'.join(queue.queue_url.split('/')[:3])}"
    steps = (queue.case or {}).get("steps", ())
    before = {step["attribute"]: step["before"] for step in steps}
    if before:
        line = set_command(queue.queue_arn, before, queue.queue_url) + endpoint
        yield Text.assemble(("      undo ", "dim"), line, no_wrap=True)
        yield _field("", f"{DELETES} {UNDO_WORKS}" if RETENTION in before else UNDO_WORKS)


def _field(name: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, justify="right", style="dim")
    grid.add_column(overflow="fold")
    grid.add_row(name, Text(text))
    return grid


def notified(mailbox: Mailbox, path: Path) -> Iterator[RenderableType]:
    """Yield the first lines of urgent notifications, and the subjects of the others."""
    yield Text.assemble(
        ("the notifications, as people get them", "bold"), (f"  all: {path}", "dim")
    )
    for message in mailbox.messages:
        if message.severity is Severity.URGENT:
            yield from _first_lines(message)
    for message in mailbox.messages:
        if message.severity is not Severity.URGENT:
            yield _indent(Text.assemble((f"{message.severity}  ", "dim"), message.subject))
    yield Text("")


def _first_lines(message: Message) -> Iterator[RenderableType]:
    lines = message.text.splitlines()
    yield rule(str(message.severity), "magenta")
    yield Text(f"{message.subject}\n", style="bold")
    for line in lines[:FIRST_LINES]:
        yield Text(line, no_wrap=line.startswith("  "))
    yield rule(f"{max(0, len(lines) - FIRST_LINES)} more lines", "magenta", ends=True)


def job_ended(name: str, seconds: float, lines: Sequence[str]) -> RenderableType:
    """Return a job run that has ended: its name, its seconds and the lines that it printed."""
    head = Text.assemble((name, "bold"), (f"  {seconds:.1f} s", "dim"))
    return Group(head, *(_indent(line, "dim") for line in lines))


def incident_table(incidents: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return the incidents that the nightly job wrote, as a table."""

    def row(incident: Mapping[str, Any]) -> Iterator[Text]:
        yield Text(queue_of(incident), style="bold")
        yield Text(incident["symptom"])
        yield Text(str(incident["failed_calls"]))
        yield Text(incident["outcome"], style=STYLE_BY_STATE.get(incident["outcome"], "bold"))

    rows = [tuple(row(incident)) for incident in incidents]
    return Group(Text(""), table("incident on|symptom|#failed calls|outcome", rows), Text(""))


def week(text: str) -> Iterator[RenderableType]:
    """Yield the lines of the notification about the week's report. `text` is its text."""
    yield Text("the week's verdict, as its readers get it", style="bold")
    for line in text.splitlines():
        if line.startswith(("The page:", "To read it:")):
            yield Text(f"  {line}", no_wrap=True)  # it is there to be copied
        else:
            yield _indent(line)
    yield Text("")


def not_emulated(result: Mapping[str, Any], path: Path) -> Iterator[RenderableType]:
    """Yield the lines on how the demo differs from AWS: what is not emulated or was shortened."""
    accepted = f"{len(result['not_emulated'])} things are accepted here and not emulated"
    yield Text.assemble((accepted, "bold"), (f"  all: {path}", "dim"))
    floors = ", ".join(result["floors_lowered"]) or "none"
    yield Text.assemble(("bounds that are other than shipped: ", "bold"), (floors, "dim"))
    for sentence in result["clock_put_forward"]:
        yield Text(sentence, style="dim")


def claim_lines(claims: Iterable[tuple[str, bool]]) -> Iterator[RenderableType]:
    """Yield a heading, and a line for each claim that says if the claim holds."""
    yield Text("\nthe claims", style="bold")
    for words, holds in claims:
        if holds:
            yield Text.assemble(("  holds  ", "green"), Text(words, style="dim"), overflow="fold")
        else:
            yield Text.assemble(
                ("not as claimed: ", "bold red"), Text(words, style="bold red"), overflow="fold"
            )


def farewell(files: Iterable[tuple[Path, str]], *, is_as_claimed: bool) -> RenderableType:
    """Return the last lines: if the claims hold, the files that exist, and what to do next."""
    existing = [(str(path), description) for path, description in files if path.is_file()]
    if is_as_claimed:
        claim = Text("It ended as claimed.", style="bold green")
    else:
        claim = Text("It did not end as claimed: the lines in red say why.", style="bold red")
    next_steps = pairs(NEXT, "")
    return Group(Text(""), claim, pairs(existing, ""), Text("What next", style="bold"), next_steps)
