"""What a process and all that it started hold and use, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.rounds import Cost

SAMPLE_SECONDS = 0.1
_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """`children_seconds` is of those that ended and were waited for, and of theirs."""

    pid: int
    parent: int
    own_seconds: float
    children_seconds: float
    resident_bytes: int

    @property
    def cpu_seconds(self) -> float:
        return self.own_seconds + self.children_seconds


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
            found = tree(root)
            peak.bytes = max(peak.bytes, sum(each.resident_bytes for each in found))
            peak.cpu_seconds = max(peak.cpu_seconds, sum(each.cpu_seconds for each in found))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def measured(go: Callable[[], None]) -> Cost:
    """What `go` takes here and in every process that this one started."""
    before, wall = tree(os.getpid()), time.perf_counter()
    go()
    wall_ms = 1000 * (time.perf_counter() - wall)
    return Cost(wall_ms, 1000 * used_between(before, tree(os.getpid())))


def used_between(before: Sequence[Process], after: Sequence[Process]) -> float:
    """CPU seconds that a tree used from one look to the next.

    Whoever ended in between takes along what it had used before, which is nobody's use now. Of a
    process whose parent does not wait for it, what it used in between is lost.
    """
    was = {each.pid: each for each in before}
    ended: dict[int, float] = defaultdict(float)
    for pid in was.keys() - {each.pid for each in after}:
        ended[was[pid].parent] += was[pid].cpu_seconds
    used = 0.0
    for each in after:
        earlier = was.get(each.pid, Process(each.pid, each.parent, 0, 0, 0))
        waited_for = each.children_seconds - earlier.children_seconds
        used += each.own_seconds - earlier.own_seconds + max(0, waited_for - ended[each.pid])
    return used


def tree(root: int) -> list[Process]:
    """The process and all that it started and that is still there; empty where it is gone."""
    every = list(_processes())
    children: dict[int, list[Process]] = {}
    for each in every:
        children.setdefault(each.parent, []).append(each)
    found = [each for each in every if each.pid == root]
    for each in found:  # grows while it is walked
        found += children.get(each.pid, [])
    return found


def _processes() -> Iterator[Process]:
    for name in filter(str.isdecimal, (each.name for each in os.scandir(_PROC))):
        try:
            text = (_PROC / name / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        # The command's name may hold spaces and brackets; the third field comes after the last.
        fields = text.rpartition(")")[2].split()
        own, children = (sum(map(int, fields[at : at + 2])) / _TICKS for at in (11, 13))
        memory_bytes = int(fields[21]) * _PAGE_BYTES
        yield Process(int(name), int(fields[1]), own, children, memory_bytes)
