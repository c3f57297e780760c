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
    """What one go took: wall and CPU milliseconds, AWS calls."""

    wall_ms: float
    cpu_ms: float
    aws_calls: float = 0


@dataclass(frozen=True)
class Way:
    """One thing that is measured; `go` prepares, then measures."""

    name: str
    go: Callable[[], Cost]


def interleaved(
    ways: tuple[Way, ...], rounds: int, tell: Callable[[str], None]
) -> dict[str, list[Cost]]:
    """Costs by way; a machine that slows down slows all ways of a round."""
    costs: dict[str, list[Cost]] = {each.name: [] for each in ways}
    for turn in range(rounds + 1):
        tell(f"round {turn} of {rounds}" if turn else "a round to warm up, dropped")
        for each in ways:
            cost = each.go()
            if turn:
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
