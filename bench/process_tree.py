"""What a process and all that it started hold and use, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.rounds import Cost

SAMPLE_SECONDS = 0.1
_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class _Process(NamedTuple):
    pid: int
    parent: int
    cpu_seconds: float
    resident_bytes: int


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, its ended and reaped processes included."""
    return sum(each.cpu_seconds for each in _tree(root))


@dataclass
class Peak:
    """The most that was resident and used at any sample."""

    bytes: int = 0
    cpu_seconds: float = 0


@contextmanager
def sampled(root: int) -> Iterator[Peak]:
    """Samples of the tree while the block runs; pages that its processes share count in each."""
    peak, ended = Peak(), threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            tree = _tree(root)
            peak.bytes = max(peak.bytes, sum(each.resident_bytes for each in tree))
            peak.cpu_seconds = max(peak.cpu_seconds, sum(each.cpu_seconds for each in tree))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def measured(go: Callable[[], None]) -> Cost:
    """What `go` takes here and in every process that this one started."""
    cpu, wall = cpu_seconds(os.getpid()), time.perf_counter()
    go()
    wall_ms = 1000 * (time.perf_counter() - wall)
    return Cost(wall_ms, 1000 * (cpu_seconds(os.getpid()) - cpu))


def _tree(root: int) -> list[_Process]:
    every = list(_processes())
    children: dict[int, list[_Process]] = {}
    for each in every:
        children.setdefault(each.parent, []).append(each)
    found = [each for each in every if each.pid == root]
    for each in found:  # grows while it is walked
        found += children.get(each.pid, [])
    return found


def _processes() -> Iterator[_Process]:
    for name in filter(str.isdecimal, (each.name for each in os.scandir(_PROC))):
        try:
            text = (_PROC / name / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        # The command's name may hold spaces and brackets; the third field comes after the last.
        fields = text.rpartition(")")[2].split()
        cpu = sum(map(int, fields[11:15])) / _TICKS
        yield _Process(int(name), int(fields[1]), cpu, int(fields[21]) * _PAGE_BYTES)
