"""Takes a measure while people watch, and tables it."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.table import Table

from bench.goals import Goal
from bench.rounds import (
    Measure,
    Way,
    aws_calls,
    cpu,
    interleaved,
    middle,
    paired_ratio,
    peak,
    raw_rate,
    wall,
)


class Take(Protocol):
    """Take the ways in interleaved rounds; `floor` is the number of the way to compare with.

    A whole process has nothing to warm up: then `dropped` is 0.
    """

    def __call__(  # noqa: PLR0913 - a measure has as many sides
        self,
        name: str,
        title: str,
        ways: tuple[Way, ...],
        rounds: int,
        *,
        floor: int = 0,
        dropped: int = 1,
    ) -> Measure: ...


def taker(console: Console) -> Take:
    """Shows on `console` what is being measured."""

    def take(  # noqa: PLR0913 - as Take has it
        name: str,
        title: str,
        ways: tuple[Way, ...],
        rounds: int,
        *,
        floor: int = 0,
        dropped: int = 1,
    ) -> Measure:
        with console.status(title) as status:

            def tell(text: str) -> None:
                status.update(f"{name}: {text}")

            costs = interleaved(ways, rounds, tell, dropped=dropped)
        more = ", one more dropped" if dropped else ""
        console.print(f"measured {name}: {rounds} interleaved rounds of {len(ways)}{more}")
        return Measure(name, title, ways[floor].name, costs)

    return take


def lasting(milliseconds: float) -> str:
    """`312 ms`, or `1.24 s` from a second on."""
    if milliseconds < 100:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def rows(measure: Measure) -> list[tuple[str, ...]]:
    """What HEADINGS say of each way; ratios are against the measure's floor."""
    against = measure.costs[measure.floor]
    return [
        (
            name,
            lasting(middle(costs, wall)),
            f"{paired_ratio(costs, against, wall):.2f}",
            lasting(middle(costs, cpu)),
            f"{paired_ratio(costs, against, cpu):.2f}" if middle(against, cpu) else "",
            _unless_none(middle(costs, raw_rate), "{:,.0f} MB/s"),
            _unless_none(middle(costs, aws_calls), "{:g}"),
            _unless_none(middle(costs, peak), "{:,.0f} MB"),
        )
        for name, costs in measure.costs.items()
    ]


HEADINGS = ("medians", "wall", "ratio", "CPU", "ratio", "inflated", "AWS calls", "peak memory")


def shown(measure: Measure) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(headings, rows) without the columns that are empty in every row."""
    whole = rows(measure)
    kept = [n for n in range(len(HEADINGS)) if any(row[n] for row in whole)]
    return tuple(HEADINGS[n] for n in kept), [tuple(row[n] for n in kept) for row in whole]


def table(measure: Measure) -> Table:
    headings, whole = shown(measure)
    made = Table(title=measure.title)
    made.add_column(headings[0])
    for heading in headings[1:]:
        made.add_column(heading, justify="right")
    for row in whole:
        made.add_row(*row)
    return made


def goal_table(goals: list[Goal], measures: dict[str, Measure]) -> Table:
    made = Table(title="Goals: a machine that misses one is told so, and nothing fails")
    for heading in ("goal", "measured", ""):
        made.add_column(heading, overflow="fold")
    for goal in goals:
        found = goal.found(measures)
        if found is not None:
            made.add_row(f"{goal.text}: {goal.bound}", goal.worded(found), goal.verdict(found))
    return made


def _unless_none(amount: float, form: str) -> str:
    return form.format(amount) if amount else ""
