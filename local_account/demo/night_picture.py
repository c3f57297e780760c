"""The night as people see it: what a run said, the incidents it found, the week's verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from local_account.demo.night import Run
from local_account.demo.picture import NARROW_COLUMNS, STYLES

INDENT = (0, 0, 0, 2)


def run_ended(run: Run) -> RenderableType:
    """A job run and its own words."""
    head = Text.assemble((run.name, "bold"), (f"  {run.seconds:.1f} s", "dim"))
    return Group(head, *(Padding(Text(line, style="dim"), INDENT) for line in run.said))


def incident_table(incidents: Sequence[Mapping[str, Any]], width: int) -> RenderableType:
    """The incidents table, as the night wrote it."""
    if width < NARROW_COLUMNS:
        return Group(Text(""), *(_listed(each) for each in incidents), Text(""))
    table = Table(box=SIMPLE_HEAD, expand=False, pad_edge=False)
    for title in ("incident on", "label", "failed calls", "outcome"):
        table.add_column(title, justify="right" if title == "failed calls" else "left")
    for each in incidents:
        table.add_row(
            Text(_queue(each), style="bold"),
            Text(each["label"]),
            Text(str(each["failed_calls"])),
            _outcome(each),
        )
    return table


def verdict(text: str) -> RenderableType:
    """What the topic's readers got."""
    lines = [Padding(Text(line), INDENT) for line in text.splitlines()]
    return Group(Text("the week's verdict, as its readers get it", style="bold"), *lines, Text(""))


def _listed(incident: Mapping[str, Any]) -> RenderableType:
    head = Text.assemble((_queue(incident), "bold"), "  ", _outcome(incident))
    counts = Text(f"{incident['label']}, {incident['failed_calls']} failed calls", style="dim")
    return Group(head, Padding(counts, INDENT))


def _outcome(incident: Mapping[str, Any]) -> Text:
    return Text(incident["outcome"], style=STYLES.get(incident["outcome"], "bold"))


def _queue(incident: Mapping[str, Any]) -> str:
    return str(incident["queue_arn"]).rpartition(":")[2]
