"""What Mendq costs, in ratios taken in one run: `python -m bench`. Measures, and never judges."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.endpoint import endpoint
from bench.measures import Bench, cold_ways, storm_ways, warm_ways
from bench.rounds import ROOT, Cost, Way, interleaved, middle, paired_ratio
from tests.prove.heal_lambda import heal_lambda

MEASURES = ROOT / "build" / "bench" / "measures.json"
COLD_ROUNDS, WARM_ROUNDS, STORM_ROUNDS = 11, 21, 5
# Goals, beside what was measured; a machine that misses one is told so and nothing fails.
GOALS = {
    "heal, one mended queue": "wall <= 1.4 x the client with one call",
    "mended queue": "<= 6 AWS calls",
    "healthy queue": "1 AWS call",
    "10,000 events of one queue": "no more calls a batch than for 10",
}
Costs = dict[str, list[Cost]]


def wall(cost: Cost) -> float:
    return cost.wall_ms


def cpu(cost: Cost) -> float:
    return cost.cpu_ms


def aws_calls(cost: Cost) -> float:
    return cost.aws_calls


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else 120)
    with endpoint(), tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
        bench = Bench(Path(folder))
        cold = _measure("cold starts", cold_ways(bench), COLD_ROUNDS, console)
        with heal_lambda(bench.account) as lambda_:
            warm = _measure("warm", warm_ways(bench, lambda_), WARM_ROUNDS, console)
            storm = _measure("storms", storm_ways(bench, lambda_), STORM_ROUNDS, console)
    console.print(_table("Cold: a whole process, from start to end", cold, floor=1))
    console.print(_table("Warm: one invocation, three events of one queue", warm, floor=0))
    console.print(_table("Storms: batches of at most 1,000 events, warm", storm, floor=0))
    _keep({"cold": cold, "warm": warm, "storm": storm})
    console.print(f"measures: {MEASURES}")
    return 0


def _measure(title: str, ways: tuple[Way, ...], rounds: int, console: Console) -> Costs:
    with console.status(f"measuring {title}") as status:
        costs = interleaved(ways, rounds, lambda text: status.update(f"{title}: {text}"))
    console.print(f"measured {title}: {rounds} interleaved rounds of {len(ways)}, one more dropped")
    return costs


def _table(title: str, costs: Costs, floor: int) -> Table:
    """Ratios against the way with that number."""
    table = Table(title=title)
    table.add_column("medians")
    for heading in ("wall ms", "ratio", "CPU ms", "ratio", "AWS calls"):
        table.add_column(heading, justify="right")
    table.add_column("goal", overflow="fold")
    against = list(costs.values())[floor]
    for name, each in costs.items():
        calls = middle(each, aws_calls)
        table.add_row(
            name,
            f"{middle(each, wall):.1f}",
            f"{paired_ratio(each, against, wall):.2f}",
            f"{middle(each, cpu):.1f}",
            f"{paired_ratio(each, against, cpu):.2f}",
            f"{calls:g}" if calls else "",
            GOALS.get(name, ""),
        )
    return table


def _keep(measures: dict[str, Costs]) -> None:
    document = {
        "schema": 1,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "goals": GOALS,
        **{
            title: {name: [asdict(each) for each in costs] for name, costs in measure.items()}
            for title, measure in measures.items()
        },
    }
    MEASURES.parent.mkdir(parents=True, exist_ok=True)
    MEASURES.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
