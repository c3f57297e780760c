"""Interleaved rounds: every way once a round, the first round dropped, medians of the others."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from msgspec import Struct
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_SECONDS = 0.1
_PAGE_BYTES, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Cost(Struct, frozen=True):
    """What one go took and, where a go reads, how many bytes; 0 is what was not looked at."""

    wall_ms: float
    cpu_ms: float
    aws_calls: float = 0
    peak_mb: float = 0
    raw_bytes: float = 0

    @property
    def raw_rate(self) -> float:
        """MB a second, inflated."""
        return self.raw_bytes / self.wall_ms / 1000


class Measure(Struct, frozen=True):
    """The costs of several ways by their names; `floor` is the way that ratios are against."""

    name: str
    title: str
    floor: str
    costs: dict[str, list[Cost]]

    def middle(self, way: str, of: str) -> float:
        """The median of one thing that a way costs."""
        return float(median(getattr(each, of) for each in self.costs[way]))

    def ratio(self, way: str, of: str, floor: str = "") -> float:
        """The median of the ratios within each round; 0 where the floor costs nothing."""
        floors = [getattr(each, of) for each in self.costs[floor or self.floor]]
        costs = [getattr(each, of) for each in self.costs[way]]
        return float(median(a / b if b else 0 for a, b in zip(costs, floors, strict=True)))


class Way(Struct, frozen=True):
    """One thing that is measured; `go` prepares, then measures."""

    name: str
    go: Callable[[], Cost]


def take(  # noqa: PLR0913 - a measure has as many sides
    console: Console,
    name: str,
    title: str,
    ways: Sequence[Way],
    rounds: int,
    *,
    floor: int = 0,
    dropped: int = 1,
) -> Measure:
    """Measure ways in turns; a machine that slows down slows all ways of a round.

    `floor` is the number of the way to compare with. A whole process has nothing to warm up: then
    `dropped` is 0.
    """
    costs: dict[str, list[Cost]] = {each.name: [] for each in ways}
    with console.status(title) as status:
        for turn in range(1 - dropped, rounds + 1):
            which = f"round {turn} of {rounds}" if turn > 0 else "a round to warm up, dropped"
            for each in ways:
                status.update(f"{name}: {which}: {each.name}")
                cost = each.go()
                costs[each.name] += [cost] if turn > 0 else []
    console.print(f"measured {name}: {rounds} interleaved rounds of {len(ways)}")
    return Measure(name, title, ways[floor].name, costs)


def process_cost(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """The cost of a Python process with all that it starts; raise RuntimeError where it fails."""
    with tempfile.TemporaryFile() as said:
        command, env = [sys.executable, *words], {**os.environ, **(environment or {})}
        before, started = _children_seconds(), time.perf_counter()
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, cwd=ROOT)
        with sampled(process.pid) as peak:
            process.wait()
        wall_ms = 1000 * (time.perf_counter() - started)
        if process.returncode:
            said.seek(0)
            text = said.read().decode()[-2_000:]
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}:\n{text}")
    # What ended unwaited for is in the samples alone, what was quick in the children's sum.
    cpu = max(peak["seconds"], _children_seconds() - before)
    return Cost(wall_ms, 1000 * cpu, peak_mb=peak["bytes"] / 1e6)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(go: Callable[[], object]) -> Cost:
    """What `go` takes here and in every process that this one started."""
    before, started = tree(os.getpid())[0], time.perf_counter()
    go()
    wall_ms = 1000 * (time.perf_counter() - started)
    return Cost(wall_ms, 1000 * max(0.0, tree(os.getpid())[0] - before))


@contextmanager
def sampled(root: int) -> Iterator[dict[str, float]]:
    """Sample a tree while the block runs; give the most `seconds` and `bytes` at any sample.

    Pages that its processes share count in each.
    """
    peak, ended = {"seconds": 0.0, "bytes": 0.0}, threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            for name, found in zip(peak, tree(root), strict=True):
                peak[name] = max(peak[name], found)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def tree(root: int) -> tuple[float, float]:
    """CPU seconds and resident bytes of a process and of all that it started, from /proc.

    Whoever has ended counts in the one that waited for it.
    """
    found: dict[int, tuple[int, float, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        # The command's name may hold spaces and brackets; the third field comes after the last.
        fields = text.rpartition(")")[2].split()
        seconds = sum(map(int, fields[11:15])) / _TICKS
        found[int(folder.name)] = int(fields[1]), seconds, int(fields[21]) * _PAGE_BYTES
    pids = [root] if root in found else []
    for pid in pids:  # grows while it is walked
        pids += [each for each, (parent, _, _) in found.items() if parent == pid]
    return sum(found[pid][1] for pid in pids), sum(found[pid][2] for pid in pids)
