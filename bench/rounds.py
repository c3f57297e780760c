"""Measure several variants of one task, in rounds.

Each round runs every variant once, so that a machine that slows down slows all of them. By default,
the first round only warms up and is dropped. Figures are medians of the counted rounds.
"""

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
from typing import NamedTuple

from msgspec import Struct
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_INTERVAL_SECONDS = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Cost(Struct, frozen=True):
    """The cost of one run of a variant. A figure that was not measured is 0."""

    wall_ms: float
    cpu_ms: float
    aws_calls: float = 0
    peak_mb: float = 0
    raw_bytes: float = 0  # unpacked bytes of the files that were read

    @property
    def raw_rate(self) -> float:
        """Unpacked megabytes that were read per second."""
        return self.raw_bytes / self.wall_ms / 1000


class Measure(Struct, frozen=True):
    """The costs of several variants of one task.

    Args:
        name: The name by which goals refer to the measure.
        title: The title for people.
        floor: The name of the variant with which the others are compared.
        costs: The costs of each counted round, by the variant's name.
    """

    name: str
    title: str
    floor: str
    costs: dict[str, list[Cost]]

    def median_cost(self, variant_name: str, figure_name: str) -> float:
        """Return the median of one figure of a variant over all counted rounds.

        `figure_name` is the name of a field or property of `Cost`.
        """
        return float(median(getattr(cost, figure_name) for cost in self.costs[variant_name]))

    def ratio(self, variant_name: str, figure_name: str, baseline_name: str = "") -> float:
        """Return the ratio of a variant's figure to the same figure of the variant `baseline_name`.

        It is the median of the rounds' ratios. A ratio to 0 counts as 0. `figure_name` names a
        field or property of `Cost`. If `baseline_name` is empty, the measure's own `floor` is used.
        """
        ratios: list[float] = []
        for cost, baseline_cost in zip(
            self.costs[variant_name], self.costs[baseline_name or self.floor], strict=True
        ):
            variant_figure = getattr(cost, figure_name)
            baseline_figure = getattr(baseline_cost, figure_name)
            ratios.append(variant_figure / baseline_figure if baseline_figure else 0)
        return float(median(ratios))


class Variant(Struct, frozen=True):
    """One way to do a task.

    `run` prepares the task, does it, and returns its cost without the cost of the preparation.
    """

    name: str
    run: Callable[[], Cost]


def measure_variants(  # noqa: PLR0913 - a measure has as many sides
    console: Console,
    name: str,
    title: str,
    variants: Sequence[Variant],
    counted_rounds: int,
    *,
    baseline_position: int = 0,
    dropped_rounds: int = 1,
) -> Measure:
    """Run all variants in rounds. Return a measure with the costs of the counted rounds.

    Args:
        console: Shows the progress.
        name: The name of the measure.
        title: The title for people.
        variants: The variants.
        counted_rounds: The number of rounds that count.
        baseline_position: The position in `variants` of the variant with which the others are
            compared.
        dropped_rounds: The number of rounds before those that count. 0 for variants that start a
            whole process, which has nothing to warm up.
    """
    costs: dict[str, list[Cost]] = {variant.name: [] for variant in variants}
    with console.status(title) as progress_status:
        for round_number in range(1 - dropped_rounds, counted_rounds + 1):
            is_counted = round_number > 0
            round_text = (
                f"round {round_number} of {counted_rounds}"
                if is_counted
                else "a round to warm up, dropped"
            )
            for variant in variants:
                progress_status.update(f"{name}: {round_text}: {variant.name}")
                cost = variant.run()
                if is_counted:
                    costs[variant.name].append(cost)
    console.print(f"measured {name}: {counted_rounds} interleaved rounds of {len(variants)}")
    return Measure(name, title, variants[baseline_position].name, costs)


def measure_process(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run Python in a new process. Return the cost of it and of all processes that it starts.

    Args:
        arguments: The arguments of the Python executable.
        environment: Variables that are added to the environment.

    Raises:
        RuntimeError: with the end of the output, if the process fails.
    """
    with tempfile.TemporaryFile() as output_file:
        command = [sys.executable, *arguments]
        environment = {**os.environ, **(environment or {})}
        children_seconds_before = _read_children_seconds()
        started_at = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdout=output_file, stderr=output_file, cwd=ROOT
        )
        with sample_processes(process.pid) as peak_usage:
            process.wait()
        wall_ms = 1000 * (time.perf_counter() - started_at)
        if process.returncode:
            output_file.seek(0)
            output_end = output_file.read().decode()[-2_000:]
            raise RuntimeError(
                f"{' '.join(arguments)} ended with {process.returncode}:\n{output_end}"
            )
    # The children's sum lacks processes that were not waited for. The samples lack processes that
    # ended between two samples. So the larger figure is closer.
    cpu_seconds = max(peak_usage.cpu_seconds, _read_children_seconds() - children_seconds_before)
    return Cost(wall_ms, 1000 * cpu_seconds, peak_mb=peak_usage.resident_bytes / 1e6)


def _read_children_seconds() -> float:
    """Return the CPU seconds of all processes that this one has started and waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_call(measured_function: Callable[[], object]) -> Cost:
    """Call a function and return its cost.

    The CPU time includes that of every process that this process has started, also before the call.
    """
    usage_before = read_process_tree(os.getpid())
    started_at = time.perf_counter()
    measured_function()
    wall_ms = 1000 * (time.perf_counter() - started_at)
    usage_after = read_process_tree(os.getpid())
    cpu_seconds = max(0.0, usage_after.cpu_seconds - usage_before.cpu_seconds)
    return Cost(wall_ms, 1000 * cpu_seconds)


class ProcessUsage(NamedTuple):
    """CPU seconds and resident memory of a process and of all processes that it started."""

    cpu_seconds: float
    resident_bytes: float


class PeakUsage:
    """The highest CPU seconds and the highest resident memory in all samples."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.resident_bytes = 0.0

    def add_sample(self, usage: ProcessUsage) -> None:
        """Take a sample into account."""
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds)
        self.resident_bytes = max(self.resident_bytes, usage.resident_bytes)


@contextmanager
def sample_processes(root_process_id: int) -> Iterator[PeakUsage]:
    """Measure a process and its children again and again while the block runs.

    Yield the highest usage that was measured so far; it is updated until the block ends. A memory
    page that several processes share is counted once for each of them.
    """
    peak_usage = PeakUsage()
    sampling_must_end = threading.Event()

    def take_samples() -> None:
        while not sampling_must_end.wait(SAMPLE_INTERVAL_SECONDS):
            peak_usage.add_sample(read_process_tree(root_process_id))

    sampling_thread = threading.Thread(target=take_samples, daemon=True)
    sampling_thread.start()
    try:
        yield peak_usage
    finally:
        sampling_must_end.set()
        sampling_thread.join()


class _Process(NamedTuple):
    """A running process, as /proc shows it."""

    parent_id: int
    cpu_seconds: float
    resident_bytes: float


def read_process_tree(root_process_id: int) -> ProcessUsage:
    """Return the usage of a process and of all processes that it started, from /proc.

    The CPU time of a process that has ended is counted with the process that waited for it.
    """
    process_by_id: dict[int, _Process] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        process = _read_process(folder)
        if process:
            process_by_id[int(folder.name)] = process
    tree_process_ids = [root_process_id] if root_process_id in process_by_id else []
    for process_id in tree_process_ids:  # the list grows in the loop
        tree_process_ids.extend(
            child_id
            for child_id, process in process_by_id.items()
            if process.parent_id == process_id
        )
    return ProcessUsage(
        sum(process_by_id[process_id].cpu_seconds for process_id in tree_process_ids),
        sum(process_by_id[process_id].resident_bytes for process_id in tree_process_ids),
    )


def _read_process(folder: Path) -> _Process | None:
    """Read a process from its folder in /proc. Return None if the process has ended meanwhile."""
    try:
        stat_text = (folder / "stat").read_text()
    except OSError:
        return None
    # The second field is the command in brackets. It may contain spaces and brackets itself, so the
    # third field begins after the last bracket.
    stat_fields = stat_text.rpartition(")")[2].split()
    # utime, stime, and both of the children that were waited for.
    cpu_ticks = sum(int(stat_field) for stat_field in stat_fields[11:15])
    return _Process(
        int(stat_fields[1]), cpu_ticks / _TICKS_PER_SECOND, int(stat_fields[21]) * _PAGE_BYTES
    )
