"""Interleaved rounds: every way once a round, the first round dropped, medians of the others."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cost:
    """What one go took and, where a go reads, how many bytes; 0 is what was not looked at."""

    wall_ms: float
    cpu_ms: float
    aws_calls: float = 0
    peak_mb: float = 0
    compressed_bytes: float = 0
    raw_bytes: float = 0


Costs = dict[str, list[Cost]]


def wall(cost: Cost) -> float:
    return cost.wall_ms


def cpu(cost: Cost) -> float:
    return cost.cpu_ms


def aws_calls(cost: Cost) -> float:
    return cost.aws_calls


def peak(cost: Cost) -> float:
    return cost.peak_mb


def raw_rate(cost: Cost) -> float:
    """MB a second, inflated."""
    return cost.raw_bytes / cost.wall_ms / 1000


@dataclass(frozen=True)
class Measure:
    """The costs of several ways by their names; `floor` is the way that ratios are against."""

    name: str
    title: str
    floor: str
    costs: Costs


@dataclass(frozen=True)
class Way:
    """One thing that is measured; `go` prepares, then measures."""

    name: str
    go: Callable[[], Cost]


def interleaved(
    ways: tuple[Way, ...], rounds: int, tell: Callable[[str], None], *, dropped: int = 1
) -> Costs:
    """Costs by way; a machine that slows down slows all ways of a round."""
    costs: Costs = {each.name: [] for each in ways}
    for turn in range(1 - dropped, rounds + 1):
        which = f"round {turn} of {rounds}" if turn > 0 else "a round to warm up, dropped"
        for each in ways:
            tell(f"{which}: {each.name}")
            cost = each.go()
            if turn > 0:
                costs[each.name].append(cost)
    return costs


def middle(costs: list[Cost], of: Callable[[Cost], float]) -> float:
    return median(map(of, costs))


def paired_ratio(costs: list[Cost], floor: list[Cost], of: Callable[[Cost], float]) -> float:
    """The median of the ratios within each round."""
    return median(of(a) / of(b) for a, b in zip(costs, floor, strict=True))


def process_cost(module: str, *arguments: str, environment: Mapping[str, str]) -> Cost:
    """A whole Python process, from its start to its end.

    Without `site`: an editable install's finder would be in every start, and in no Lambda.
    """
    paths = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", module, *arguments],
        env={**os.environ, **environment, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall_ms = 1000 * (time.perf_counter() - started)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join((module, *arguments))} ended with {process.returncode}")
    cpu_ms = 1000 * (usage.ru_utime + usage.ru_stime)
    return Cost(wall_ms, cpu_ms)
