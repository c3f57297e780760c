"""The letters on their way, as people see them: where they are, the stage, the soak's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from functions.healing.redrive_course import Course, Stage
from local_account.demo.redrive.queue_counts import Whereabouts

STAGES: dict[Stage, str] = {
    Stage.DONE: "bold green",
    Stage.HALTED: "bold magenta",
    Stage.SOAK: "bold cyan",
}


@dataclass
class LettersPicture:
    """What is drawn below the queues; whoever looks sets `course` and `whereabouts`."""

    source: str
    dead_letters: str
    letters: int
    course: Course | None = None
    whereabouts: Whereabouts = field(default_factory=Whereabouts)

    def shown(self) -> RenderableType:
        return Group(Text(""), _head(self.course, datetime.now(UTC)), _bars(self))


def _head(course: Course | None, now: datetime) -> Text:
    if course is None:
        return Text("redrive  not begun", style="bold")
    numbers = f"moved {course.moved}  came back {course.returned}  rate {_rate(course)}"
    return Text.assemble(
        ("redrive  ", "bold"),
        (f"{clock(course, now):<30}", STAGES.get(course.stage, "bold yellow")),
        (numbers, "dim"),
    )


def clock(course: Course, now: datetime) -> str:
    """The stage, and how long a soak lasts yet."""
    if course.stage is Stage.SOAK and course.soak_ends_at is not None:
        left = max(0.0, (course.soak_ends_at - now).total_seconds())
        return f"soak after {sent_by(course)}, {left:.1f} s left"
    if course.stage is Stage.RAMP:
        return f"ramp {course.number}, {'by a move task' if course.by_task else 'by hand'}"
    return str(course.stage)


def sent_by(course: Course) -> str:
    """Which stage sent the letters that are out."""
    return f"ramp {course.number}" if course.number else "canary"


def _rate(course: Course) -> str:
    return f"{course.rate_per_second:.1f}/s" if course.rate_per_second else "-"


def _bars(picture: LettersPicture) -> RenderableType:
    there = picture.whereabouts
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", width=4)
    rows: Sequence[tuple[str, int, str]] = (
        (picture.dead_letters, there.dead_letters, "red"),
        (picture.source, there.source, "yellow"),
        ("handled", there.handled, "green"),
        (f"{picture.source}-quarantine", there.quarantine, "magenta"),
    )
    for name, how_many, style in rows:
        bar = ProgressBar(
            total=picture.letters,
            completed=min(how_many, picture.letters),
            complete_style=style,
            finished_style=style,
        )
        grid.add_row(Text(name), bar, Text(str(how_many), style=f"bold {style}"))
    return grid


def compared(rows: Sequence[tuple[str, Sequence[int]]], titles: Sequence[str]) -> RenderableType:
    """What each of the consumers made of what came back."""
    grid = Table.grid(padding=(0, 3))
    grid.add_column()
    for _ in titles:
        grid.add_column(justify="right")
    head = ("what went back", *titles)
    grid.add_row(*(Text(each, style="bold") for each in head))
    for name, counts in rows:
        grid.add_row(Text(name), *(Text(str(each)) for each in counts))
    return Group(Text(""), grid, Text(""))
