"""Which queue failed on which day, as the rows of a table whose cells are tinted."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from functions.report.days_chart import NOT_READ
from functions.report.names import marked_queue
from functions.report.places import place_in
from functions.report.summary import QueueWeek, Summary
from functions.report.words import counted, queue_name, short_day

LEVELS = 5


@dataclass(frozen=True)
class Cell:
    """`figure` is what it says, `level` how dark it is: from 0, nothing, to LEVELS."""

    figure: str
    level: int


@dataclass(frozen=True)
class HeatRow:
    """A queue's days; `place` only where there are several."""

    queue: str
    place: str
    cells: tuple[Cell, ...]
    total: str
    calls: str
    not_healed: str


@dataclass(frozen=True)
class Heat:
    """`days` head the columns; `beyond` says what other queues had."""

    caption: str
    days: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    beyond: str

    @property
    def has_unread(self) -> bool:
        return any(cell.figure == NOT_READ for row in self.rows for cell in row.cells)


def heat(summary: Summary) -> Heat | None:
    """None where no queue had an incident."""
    queues = [each for each in summary.queue_days.queues if sum(each.incidents)]
    if not queues:
        return None
    most = max(max(each.incidents) for each in queues)
    days = tuple(short_day(each) for each in summary.days)
    return Heat(
        _caption(summary, queues), days, tuple(_row(summary, each, most) for each in queues),
        _beyond(summary),
    )  # fmt: skip


def _row(summary: Summary, queue: QueueWeek, most: int) -> HeatRow:
    unread = summary.not_seen.nights_missing
    cells = (
        Cell(NOT_READ if day in unread and not count else f"{count:,}", level(count, most))
        for day, count in zip(summary.days, queue.incidents, strict=True)
    )
    return HeatRow(
        queue=queue_name(queue.queue_arn),
        place=place_in(summary, queue.queue_arn),
        cells=tuple(cells),
        total=f"{sum(queue.incidents):,}",
        calls=counted(queue.failed_calls, "failed call"),
        not_healed=f"{queue.not_healed:,} not healed" if queue.not_healed else "all healed",
    )


def level(count: int, most: int) -> int:
    """By orders of size, because one bad day must not make all the others look like none."""
    if not count:
        return 0
    return max(1, ceil(LEVELS * log(count + 1) / log(most + 1) - 1e-9))


def _caption(summary: Summary, queues: list[QueueWeek]) -> str:
    counts = [sum(each.incidents) for each in queues]
    most = max(counts)
    leaders = [each for each, count in zip(queues, counts, strict=True) if count == most]
    total = counted(summary.totals.incidents, "incident")
    if len(leaders) > 1 and most == 1:
        return "No queue had more than one incident."
    if len(leaders) > 1:
        return f"{counted(len(leaders), 'queue')} had the most: {most:,} of {total} each."
    if most == summary.totals.incidents:
        had = "the one incident" if most == 1 else f"all {total}"
        return f"{marked_queue(leaders[0].queue_arn)} had {had}."
    return f"{marked_queue(leaders[0].queue_arn)} had the most: {most:,} of {total}."


def _beyond(summary: Summary) -> str:
    days = summary.queue_days
    if not days.queues_left_out:
        return ""
    had = f"{counted(days.queues_left_out, 'more queue')} had"
    together = " together" if days.queues_left_out > 1 else ""
    return f"{had} {counted(days.incidents_left_out, 'incident')}{together}."
