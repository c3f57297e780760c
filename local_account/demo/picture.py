"""The story as people see it: events scroll by, a table below shows how each queue stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from functions.healing.steps import undo_command
from local_account.demo.story import BadQueue
from local_account.demo.watching import Seen, Watch

STYLES = {"applied": "bold green", "observed": "bold cyan", "refused": "bold yellow"}
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


def deletes_event(watch: Watch, name: str, fault: str | None, times: int) -> RenderableType:
    """Deletes that ended alike within one look."""
    deletes = "1 delete" if times == 1 else f"{times} deletes"
    if fault is None:
        return event(watch, name, f"{deletes} in time", "green")
    return event(watch, name, f"{deletes} failed: {fault}", "red")


def case_event(watch: Watch, case: dict[str, Any]) -> RenderableType:
    """A decision, as it is read from the case bucket."""
    name = case["queue_arn"].rpartition(":")[2]
    return event(watch, name, f"{case['to']}: {case['reason']}", STYLES.get(case["to"], "bold"))


def standing(story: Sequence[BadQueue], watch: Watch, width: int) -> RenderableType:
    """How every queue stands now."""
    if width < NARROW_COLUMNS:
        return Group(*(_listed(bad, watch.queues[bad.name]) for bad in story))
    table = Table(box=SIMPLE_HEAD, expand=False, pad_edge=False)
    for title in ("queue", "", "late deletes", "in time", "lease", "case"):
        table.add_column(title, justify="right" if title in ("late deletes", "in time") else "left")
    for bad in story:
        seen = watch.queues[bad.name]
        table.add_row(
            Text(bad.name, style="bold"),
            Text(bad.why, style="dim"),
            Text(str(seen.failed_calls), style="red" if seen.failed_calls else "dim"),
            Text(str(seen.deletes_in_time), style="green" if seen.deletes_in_time else "dim"),
            _lease(seen),
            _state(seen),
        )
    return table


def _listed(bad: BadQueue, seen: Seen) -> RenderableType:
    head = Text.assemble((bad.name, "bold"), "  ", _state(seen))
    counts = f"{seen.failed_calls} late deletes, {seen.deletes_in_time} in time, lease "
    return Group(head, Padding(Text.assemble(counts, _lease(seen)), (0, 0, 0, 2)))


def _lease(seen: Seen) -> Text:
    before, now = seen.before["VisibilityTimeout"], seen.now["VisibilityTimeout"]
    if before == now:
        return Text(f"{before} s", style="dim")
    return Text.assemble((f"{before} s -> ", "dim"), (f"{now} s", "bold green"))


def _state(seen: Seen) -> Text:
    state = seen.case["to"] if seen.case else "-"
    return Text(state, style=STYLES.get(state, "dim"))


def decisions(story: Sequence[BadQueue], watch: Watch) -> RenderableType:
    """What was decided about each queue, why, and the way back."""
    parts: list[RenderableType] = [Text("")]
    for bad in story:
        seen = watch.queues[bad.name]
        if seen.case is None:
            continue
        evidence = seen.case["evidence"]
        parts += [
            Text.assemble((bad.name, "bold"), "  ", _state(seen)),
            _field("why", seen.case["reason"]),
            _field(
                "seen",
                f"{evidence['failed_calls']} failed calls, request {evidence['first_request_id']}",
            ),
            *_change(seen),
            Text(""),
        ]
    return Group(*parts)


def metrics(watch: Watch) -> RenderableType:
    """What the Lambda counted, as CloudWatch has it."""
    names = ("FailedCallsSeen", "AutoFixes", "Refusals", "UnknownErrorCodes", "UnreadableEvents")
    counts = ", ".join(f"{name} {watch.metric(name):.0f}" for name in names)
    return Group(_field("metrics", counts), Text(""))


def _change(seen: Seen) -> list[RenderableType]:
    steps = seen.case["steps"] if seen.case else []
    texts = [f"{each['attribute']} {each['before']} -> {each['after']}" for each in steps]
    if not seen.changed():
        would = f" (it would have been {', '.join(texts)})" if texts else ""
        return [_field("change", f"none{would}")]
    seconds = seen.seconds_to_heal()
    took = "" if seconds is None else f", {seconds:.1f} s after the first failing call"
    undo = [_field("undo", each) for each in undo_commands(seen)]
    return [_field("change", ", ".join(texts) + took), *undo, _field("", UNDO_WORKS)]


def undo_commands(seen: Seen) -> list[str]:
    """The commands that undo the change, for the account that stands here."""
    region, address = seen.queue_arn.split(":")[3], urlsplit(seen.queue_url)
    endpoint = f" --endpoint-url {address.scheme}://{address.netloc}"
    steps = seen.case["steps"] if seen.case else []
    return [undo_command(seen.queue_url, each, region) + endpoint for each in steps]


def _field(name: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=8, justify="right", style="dim")
    grid.add_column(overflow="fold")
    grid.add_row(name, Text(text))
    return grid


def honesty(console: Console, not_emulated: Sequence[str], floors_lowered: Sequence[str]) -> None:
    """What this account only accepts, so that nobody takes the demo for AWS."""
    console.print(Text("accepted here, not emulated", style="bold"))
    for each in not_emulated:
        console.print(Padding(Text(f"- {each}", style="dim"), (0, 0, 0, 2)))
    floors = ", ".join(floors_lowered) or "none"
    console.print(Text.assemble(("floors lowered for this demo: ", "bold"), (floors, "dim")))
