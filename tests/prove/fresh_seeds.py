"""Scores of the scan with seeds that nobody had used: stored facts, and their text for the page.

`python -m tests.prove.false_alarms --fresh SEED` plays the fresh seeds that `make evidence
NAMES=false_alarms SEED=...` plays, and adds a run to `fresh_seeds.json`. A run is a fact about the
product of its date: later versions do not change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, json

from mendq.notifications.text import format_count
from tests.prove.exact_intervals import describe_share

RUNS_FILE = Path(__file__).with_name("fresh_seeds.json")


class FreshRun(Struct, frozen=True):
    """The score of one run with fresh seeds.

    Attributes:
        date: The day of the run, such as 2026-11-30.
        seed: The number from which the seeds of the simulations are drawn.
        fleets: The number of seeds with which the hidden faults were simulated.
        counts: Each measure with its hits and the number of queues.
        misses: What was not as it should be, such as a fault that another name came first for.
    """

    date: str
    seed: int
    fleets: int
    counts: dict[str, tuple[int, int]]
    misses: tuple[str, ...] = ()


def read_runs(path: Path = RUNS_FILE) -> list[FreshRun]:
    """Return the stored runs, the oldest first."""
    return json.decode(path.read_bytes(), type=list[FreshRun])


def store_run(run: FreshRun, path: Path = RUNS_FILE) -> None:
    """Add a run to the stored ones. A run with the same seed is replaced."""
    kept_runs = [stored for stored in read_runs(path) if stored.seed != run.seed]
    path.write_bytes(json.format(json.encode([*kept_runs, run])) + b"\n")


def describe_runs(runs: Sequence[FreshRun]) -> str:
    """Return the text for the page: the runs, the sum of each measure, and each miss."""
    if not runs:
        return ""
    run_texts = [f"{run.seed} on {run.date} ({run.fleets} fleets)" for run in runs]
    lines = [
        f"`SEED`: {', '.join(run_texts)}.",
        "",
        "| measure | queues | share |",
        "|---|---:|---:|",
    ]
    for measure, (hits, queues) in _add_counts(runs).items():
        share = describe_share(hits, queues) if queues else "-"
        lines.append(f"| {measure} | {hits} of {queues} | {share} |")
    times_by_miss = Counter(miss for run in runs for miss in run.misses)
    lines.append("")
    lines += [
        f"- {miss}: {format_count(times, 'time')}" for miss, times in sorted(times_by_miss.items())
    ]
    return "\n".join([*lines, ""] if times_by_miss else lines)


def _add_counts(runs: Iterable[FreshRun]) -> dict[str, tuple[int, int]]:
    """Return each measure with its hits and queues, over all runs."""
    sums: dict[str, tuple[int, int]] = {}
    for run in runs:
        for measure, (hits, queues) in run.counts.items():
            earlier_hits, earlier_queues = sums.get(measure, (0, 0))
            sums[measure] = (earlier_hits + hits, earlier_queues + queues)
    return sums
