"""The pages of a story: on the terminal as people get them, and all of them in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from functions.healing.paging import Severity
from local_account.demo.mailbox import Message, Notice

NAME = "pages.txt"
FIRST_LINES = 12
RINGS = "ALARM"
BETWEEN = f"\n{'-' * 72}\n\n"


def shown(pages: Sequence[Message], notices: Sequence[Notice], path: Path) -> RenderableType:
    """The beginning of what wants somebody now, the subject of the others, where all stand.

    And which alarms rang: what CloudWatch tells is the same text for every cause.
    """
    urgent = [each for each in pages if each.severity is Severity.URGENT]
    others = [each for each in pages if each.severity is not Severity.URGENT]
    head = Text.assemble(("the pages, as people get them", "bold"), (f"  all: {path}", "dim"))
    subjects = (
        Padding(Text.assemble((f"{each.severity}  ", "dim"), each.subject), (0, 0, 0, 2))
        for each in others
    )
    rang = dict.fromkeys((each.severity, each.alarm) for each in notices if each.state == RINGS)
    alarms = (
        Padding(Text.assemble((f"{to}  ", "dim"), f"alarm {name} rings"), (0, 0, 0, 2))
        for to, name in rang
    )
    return Group(head, *map(_beginning, urgent), *subjects, *alarms, Text(""))


def _beginning(page: Message) -> RenderableType:
    lines = page.text.splitlines()
    text = Text.assemble((page.subject, "bold"), "\n\n", "\n".join(lines[:FIRST_LINES]))
    if len(lines) > FIRST_LINES:
        text.append(f"\n... {len(lines) - FIRST_LINES} more lines", style="dim")
    return Panel(text, title=str(page.severity), title_align="left", border_style="magenta")


def write(pages: Sequence[Message], path: Path) -> None:
    """Every page in full, in the order they came."""
    texts = (f"To: {each.severity}\nSubject: {each.subject}\n\n{each.text}\n" for each in pages)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BETWEEN.join(texts))


def join(paths: Sequence[Path], path: Path) -> None:
    """The pages of several stories in one file."""
    path.write_text(BETWEEN.join(each.read_text() for each in paths))
