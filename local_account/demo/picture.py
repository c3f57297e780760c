"""The story as people see it: events scroll by, a table below shows how each queue stands."""

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
from mendq.cli.look.case_view import STYLES
from mendq.model.case import Severity, State
from mendq.notifications.change_lines import DELETES, RETENTION
from mendq.notifications.commands import set_command

if TYPE_CHECKING:
    from local_account.demo.mailbox import Mailbox, Message

FIRST_LINES = 12
# A pipe has no width: a rule there is as wide as here, and a line as long as it is.
RULE, UNBOUND = 80, 10_000
UNDO_WORKS = "(as it would be typed: this account and its port end with the demo)"
INDENT = (0, 0, 0, 2)
NEXT = (
    ("make account", "keeps such an account standing, for tries of your own"),
    ("docs/deploy.md", "puts Mendq on your own account, to observe at first"),
)


def console() -> Console:
    """Where the demo is told: nothing is broken in a pipe, so that a log can be searched."""
    piped = get_terminal_size((UNBOUND, 0)).columns
    return Console(highlight=False, width=None if sys.stdout.isatty() else piped)


def show(console: Console, *what: RenderableType) -> None:
    """Print each; of a text that is to be copied no line is broken."""
    for each in what:
        console.print(each, soft_wrap=isinstance(each, Text) and each.no_wrap is True)


def rule(title: str, style: str, *, ends: bool = False) -> RenderableType:
    """A line across, which begins or ends with a title."""
    text = Text(title, style="dim" if ends else "bold")
    return Constrain(Rule(text, align="right" if ends else "left", style=style), RULE)


def _indented(text: str | Text, style: str = "") -> RenderableType:
    made = text if isinstance(text, Text) else Text(text, style=style)
    return Padding(made, INDENT, expand=False)


def event(watch: Watch, name: str, what: str, style: str = "") -> RenderableType:
    """One line of what happened, with the second of the story."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7, justify="right", style="dim")
    grid.add_column(min_width=13, style="bold")
    grid.add_column(overflow="fold", style=style)
    grid.add_row(f"{watch.seconds():.1f} s", Text(name), Text(what))
    return grid


def command(line: str, code: int, text: str) -> Iterator[RenderableType]:
    """A command that has ended, at full width, as a terminal would have it."""
    yield rule(f"$ {line}", "cyan")
    yield Text(text.strip("\n"), no_wrap=True)
    yield rule(f"exit {code}", "cyan", ends=True)


def calls_ended(traffic: Traffic, fault: str | None, times: int) -> tuple[str, str]:
    """Calls that ended alike within one look, and their style."""
    calls = f"{times} {traffic.noun}{'' if times == 1 else 's'}"
    if fault is None:
        return f"{calls} {traffic.well}", "green"
    return f"{calls} failed: {fault}", "red"


def decided(case: Mapping[str, Any]) -> tuple[str, str]:
    """A decision, as it is read from the case bucket, and its style."""
    return f"{case['to']}: {case['reason']}", STYLES.get(case["to"], "bold")


def queue_of(named: Mapping[str, Any]) -> str:
    """The name of the queue of a case or an incident."""
    return str(named["queue_arn"]).rpartition(":")[2]


def pairs(rows: Iterable[tuple[str, str]], style: str = "bold", indent: int = 2) -> RenderableType:
    """Names, each with a sentence beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column(style="dim")
    for name, says in rows:
        grid.add_row(Text(name), Text(says))
    return Padding(grid, (0, 0, 0, indent), expand=False)


def cast(story: Story) -> RenderableType:
    """What is wrong with each queue, before anything happens."""
    return Group(Text(""), pairs((bad.name, bad.why) for bad in story.queues), Text(""))


def table(heads: str, rows: Iterable[Sequence[Text]]) -> Table:
    """A table whose heads stand between bars; a head that begins with # is right-aligned."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for head in heads.split("|"):
        made.add_column(head.lstrip("#"), justify="right" if head[0] == "#" else "left")
    for row in rows:
        made.add_row(*row)
    return made


def standing(story: Story, watch: Watch) -> RenderableType:
    """How every queue stands now: a line each, from 80 columns on.

    A consumer that crashes has received without an error: nothing is said to have worked.
    """

    def row(bad: BadQueue) -> Iterator[Text]:
        seen = watch.queues[bad.name]
        yield Text(bad.name, style="bold")
        yield Text(str(seen.failed_calls), style="red" if seen.failed_calls else "dim")
        yield Text(str(seen.calls_well), style="green" if seen.calls_well else "dim")
        yield _state(seen)
        changed = [f"{name} {old} -> {new}" for name, (old, new) in seen.changed().items()]
        words = f"{len(changed)} attributes" if len(changed) > 1 else "".join(changed)
        yield Text(words or "-", style="bold green" if changed else "dim")

    rows = (tuple(row(bad)) for bad in story.queues)
    return Group(Text(""), table("queue|#failed calls|#no error|case|changed", rows))


def _state(seen: Observation) -> Text:
    state: Any = seen.case["to"] if seen.case else "-"
    return Text(state, style=STYLES.get(state, "dim"))


def decisions(story: Story, watch: Watch) -> Iterator[RenderableType]:
    """What was decided about each queue, why, and the way back; what the Lambda counted."""
    yield Text("")
    for bad in story.queues:
        seen, cases = watch.queues[bad.name], watch.transitions(bad.name)
        if not cases:
            continue
        first, *others = cases
        evidence = first["evidence"]
        number, in_all = evidence["failed_calls"], seen.failed_calls
        calls = f"{number} failed calls" + (f" by then, {in_all} in all" if number < in_all else "")
        calls += f", the first request {evidence['first_request_id']}"
        yield Text.assemble((bad.name, "bold"), "  ", _state(seen))
        if others:
            yield _field("life", " -> ".join(each["to"] for each in (first, *others)))
        yield _field("why", first["reason"])
        if others and not first["reason"].startswith(others[-1]["reason"]):
            yield _field("in the end", others[-1]["reason"])
        yield _field("seen", calls if number else "by a scan; no call failed")
        yield from _change(bad, seen)
        yield Text("")


def _change(bad: BadQueue, seen: Observation) -> Iterator[RenderableType]:
    steps, state = (seen.case["steps"], seen.case["to"]) if seen.case else ([], None)
    texts = ", ".join(f"{each['attribute']} {each['before']} -> {each['after']}" for each in steps)
    if state == State.ROLLED_BACK:
        yield _field("undone", texts)
    elif bad.a_person_sets:
        yield _field("change", texts)
        values = ", ".join(map(" ".join, bad.a_person_sets.items()))
        yield _field("kept", f"{values}, a person's value")
    elif bad.is_written and not bad.leaves_a_value:
        yield _field("change", f"{texts}: what went back is not taken back")
    elif not seen.changed():
        proposed = f" yet; proposed: {texts}"
        would = f" (it would have been {texts})" if texts else ""
        yield _field("change", f"none{proposed if state == State.PROPOSED else would}")
    else:
        seconds = seen.seconds_to_heal()
        took = "" if seconds is None else f", {seconds:.1f} s after the first failing call"
        yield _field("change", texts + took)
        yield from _undo(seen)


def _undo(seen: Observation) -> Iterator[RenderableType]:
    """The command that undoes the change, for the account that stands here; none without one."""
    endpoint = f" --endpoint-url {'/'.join(seen.queue_url.split('/')[:3])}"
    before = {each["attribute"]: each["before"] for each in (seen.case or {}).get("steps", ())}
    if before:
        line = set_command(seen.queue_arn, before, seen.queue_url) + endpoint
        yield Text.assemble(("      undo ", "dim"), line, no_wrap=True)
        yield _field("", f"{DELETES} {UNDO_WORKS}" if RETENTION in before else UNDO_WORKS)


def _field(name: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, justify="right", style="dim")
    grid.add_column(overflow="fold")
    grid.add_row(name, Text(text))
    return grid


def notified(mailbox: Mailbox, path: Path) -> Iterator[RenderableType]:
    """The beginning of what wants somebody now, the subjects of the rest, where all stand."""
    yield Text.assemble(
        ("the notifications, as people get them", "bold"), (f"  all: {path}", "dim")
    )
    others = [each for each in mailbox.messages if each.severity is not Severity.URGENT]
    for each in mailbox.messages:
        yield from _beginning(each) if each not in others else ()
    for each in others:
        yield _indented(Text.assemble((f"{each.severity}  ", "dim"), each.subject))
    yield Text("")


def _beginning(message: Message) -> Iterator[RenderableType]:
    lines = message.text.splitlines()
    yield rule(str(message.severity), "magenta")
    yield Text(f"{message.subject}\n", style="bold")
    for each in lines[:FIRST_LINES]:
        yield Text(each, no_wrap=each.startswith("  "))
    yield rule(f"{max(0, len(lines) - FIRST_LINES)} more lines", "magenta", ends=True)


def job_ended(name: str, seconds: float, said: Sequence[str]) -> RenderableType:
    """A job run and its own words."""
    head = Text.assemble((name, "bold"), (f"  {seconds:.1f} s", "dim"))
    return Group(head, *(_indented(line, "dim") for line in said))


def incident_table(incidents: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The incidents table, as the nightly job wrote it."""

    def row(incident: Mapping[str, Any]) -> Iterator[Text]:
        yield Text(queue_of(incident), style="bold")
        yield Text(incident["symptom"])
        yield Text(str(incident["failed_calls"]))
        yield Text(incident["outcome"], style=STYLES.get(incident["outcome"], "bold"))

    rows = (tuple(row(each)) for each in incidents)
    return Group(Text(""), table("incident on|symptom|#failed calls|outcome", rows), Text(""))


def week(text: str) -> Iterator[RenderableType]:
    """What the topic's readers got."""
    yield Text("the week's verdict, as its readers get it", style="bold")
    for line in text.splitlines():
        is_whole = line.startswith(("The page:", "To read it:"))
        yield Text(f"  {line}", no_wrap=True) if is_whole else _indented(line)
    yield Text("")


def pretended(result: Mapping[str, Any], path: Path) -> Iterator[RenderableType]:
    """What the account only accepts, so that nobody takes the demo for AWS."""
    accepted = f"{len(result['not_emulated'])} things are accepted here and not emulated"
    yield Text.assemble((accepted, "bold"), (f"  all: {path}", "dim"))
    floors = ", ".join(result["floors_lowered"]) or "none"
    yield Text.assemble(("bounds that are other than shipped: ", "bold"), (floors, "dim"))
    yield from (Text(each, style="dim") for each in result["clock_put_forward"])


def claimed(claims: Iterable[tuple[str, bool]]) -> Iterator[RenderableType]:
    """A line for each claim."""
    yield Text("\nthe claims", style="bold")
    for words, holds in claims:
        ending = Text(words, style="dim" if holds else "bold red")
        begins = ("  holds  ", "green") if holds else ("not as claimed: ", "bold red")
        yield Text.assemble(begins, ending, overflow="fold")


def farewell(files: Iterable[tuple[Path, str]], *, is_as_claimed: bool) -> RenderableType:
    """The last lines: what is left here, and what to do next; only what is there is named."""
    there = [(str(path), says) for path, says in files if path.is_file()]
    claim = Text("It ended as claimed.", style="bold green")
    if not is_as_claimed:
        claim = Text("It did not end as claimed: the lines in red say why.", style="bold red")
    left, following = pairs(there, ""), pairs(NEXT, "")
    return Group(Text(""), claim, left, Text("What next", style="bold"), following)
