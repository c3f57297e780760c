"""The story as people see it: events scroll by, a table below shows how each queue stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from rich.box import SIMPLE_HEAD
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from functions.healing.states import State
from functions.healing.write_commands import set_command
from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import Seen, Watch

STYLES: Mapping[str, str] = {
    State.APPLIED: "bold green",
    State.OBSERVED: "bold cyan",
    State.PROPOSED: "bold blue",
    State.REFUSED: "bold yellow",
    State.ESCALATED: "bold magenta",
    State.APPROVED: "bold blue",
    State.INEFFECTIVE: "bold red",
    State.VERIFIED: "bold green",
    State.WATCHING: "bold green",
    State.CLOSED: "bold green",
    State.ROLLED_BACK: "bold yellow",
}
# Below this a table would break every word; the same facts are listed instead.
NARROW_COLUMNS = 88
UNDO_WORKS = "(it works while `make account` stands; this account ends with the demo)"


def event(watch: Watch, name: str, what: str, style: str = "") -> RenderableType:
    """One line of what happened, with the second of the story."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7, justify="right", style="dim")
    grid.add_column(min_width=13, style="bold")
    grid.add_column(overflow="fold", style=style)
    grid.add_row(f"{watch.seconds():.1f} s", Text(name), Text(what))
    return grid


def calls_event(watch: Watch, bad: BadQueue, fault: str | None, times: int) -> RenderableType:
    """Calls that ended alike within one look."""
    calls = f"{times} {bad.traffic.noun}{'' if times == 1 else 's'}"
    if fault is None:
        return event(watch, bad.name, f"{calls} {bad.traffic.well}", "green")
    return event(watch, bad.name, f"{calls} failed: {fault}", "red")


def case_event(watch: Watch, case: dict[str, Any]) -> RenderableType:
    """A decision, as it is read from the case bucket."""
    name = case["queue_arn"].rpartition(":")[2]
    return event(watch, name, f"{case['to']}: {case['reason']}", STYLES.get(case["to"], "bold"))


def page_event(watch: Watch, page: Message) -> RenderableType:
    """A page that has come."""
    return event(watch, "page", f"{page.severity}: {page.subject}", "magenta")


def cast(story: Story) -> RenderableType:
    """What is wrong with each queue, before anything happens."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(style="dim")
    for bad in story.queues:
        grid.add_row(Text(bad.name), Text(bad.why))
    return Group(Padding(grid, (1, 0, 1, 2)))


def standing(story: Story, watch: Watch) -> RenderableType:
    """How every queue stands now: a line each, from 80 columns on."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    # A consumer that crashes has received without an error: nothing is said to have worked.
    for title in ("queue", "failed", "no error", "case"):
        justify: JustifyMethod = "right" if title in ("failed", "no error") else "left"
        table.add_column(title, justify=justify, no_wrap=True)
    table.add_column("changed")
    for bad in story.queues:
        seen = watch.queues[bad.name]
        table.add_row(
            Text(bad.name, style="bold"),
            Text(str(seen.failed_calls), style="red" if seen.failed_calls else "dim"),
            Text(str(seen.calls_well), style="green" if seen.calls_well else "dim"),
            _state(seen),
            _changed(seen),
        )
    return Group(Text(""), table)


def _changed(seen: Seen) -> Text:
    """What the queue's attributes say, whatever its case does."""
    changed = seen.changed()
    pairs = [f"{name} {old} -> {new}" for name, (old, new) in changed.items()]
    words = f"{len(pairs)} attributes" if len(pairs) > 1 else "".join(pairs)
    return Text(words or "-", style="bold green" if changed else "dim")


def _state(seen: Seen) -> Text:
    state = seen.case["to"] if seen.case else "-"
    return Text(state, style=STYLES.get(state, "dim"))


def decisions(story: Story, watch: Watch) -> RenderableType:
    """What was decided about each queue, why, and the way back."""
    parts: list[RenderableType] = [Text("")]
    for bad in story.queues:
        seen = watch.queues[bad.name]
        if seen.case is None:
            continue
        parts += [
            Text.assemble((bad.name, "bold"), "  ", _state(seen)),
            *_life(watch, bad.name),
            *_reasons(watch, bad.name),
            _field("seen", _seen(seen.case["evidence"])),
            *_change(bad, seen),
            Text(""),
        ]
    return Group(*parts)


def _seen(evidence: Mapping[str, Any]) -> str:
    if not evidence["failed_calls"]:
        return "by a sweep; no call failed"
    return f"{evidence['failed_calls']} failed calls, request {evidence['first_request_id']}"


def metrics(watch: Watch) -> RenderableType:
    """What the Lambda counted, as CloudWatch has it."""
    names = ("FailedCallsSeen", "AutoFixes", "Refusals", "UnknownErrorCodes", "UnreadableEvents")
    counts = ", ".join(f"{name} {watch.metric(name):.0f}" for name in names)
    return Group(_field("metrics", counts), Text(""))


def _life(watch: Watch, name: str) -> list[RenderableType]:
    """Its states, where there is more than one."""
    states = [each["to"] for each in watch.transitions(name)]
    return [_field("life", " -> ".join(states))] if len(states) > 1 else []


def _reasons(watch: Watch, name: str) -> list[RenderableType]:
    """Why its case was opened, and why it ended where it is."""
    first, *others = watch.transitions(name)
    ended = [_field("in the end", others[-1]["reason"])] if others else []
    return [_field("why", first["reason"]), *ended]


def _change(bad: BadQueue, seen: Seen) -> list[RenderableType]:
    steps, state = (seen.case["steps"], seen.case["to"]) if seen.case else ([], None)
    texts = [f"{each['attribute']} {each['before']} -> {each['after']}" for each in steps]
    if state == State.ROLLED_BACK:
        return [_field("undone", ", ".join(texts))]
    if bad.a_person_sets:
        values = ", ".join(f"{name} {value}" for name, value in bad.a_person_sets.items())
        return [_field("change", ", ".join(texts)), _field("kept", f"{values}, a person's value")]
    if bad.is_written and not bad.leaves_a_value:
        return [_field("change", f"{', '.join(texts)}: what went back is not taken back")]
    if not seen.changed():
        return [_field("change", f"none{_not_made(state, texts)}")]
    seconds = seen.seconds_to_heal()
    took = "" if seconds is None else f", {seconds:.1f} s after the first failing call"
    undo = [_field("undo", each) for each in undo_commands(seen)]
    return [_field("change", ", ".join(texts) + took), *undo, _field("", UNDO_WORKS)]


def _not_made(state: str | None, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    if state == State.PROPOSED:
        return f" yet; proposed: {', '.join(texts)}"
    return f" (it would have been {', '.join(texts)})"


def undo_commands(seen: Seen) -> list[str]:
    """The command that undoes the change, for the account that stands here; none without one."""
    address = urlsplit(seen.queue_url)
    endpoint = f" --endpoint-url {address.scheme}://{address.netloc}"
    before = {each["attribute"]: each["before"] for each in (seen.case or {}).get("steps", ())}
    return [set_command(seen.queue_arn, before, seen.queue_url) + endpoint] if before else []


def _field(name: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, justify="right", style="dim")
    grid.add_column(overflow="fold")
    grid.add_row(name, Text(text))
    return grid
