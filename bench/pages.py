"""Store the measures, compare them with the goals, and make the text of docs/performance.md.

`make bench KEEP=1` writes the page. Its figures are those of one machine on one day, so `make
check` does not compare them with anything.
"""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bench.rounds import ROOT, Measure

PAGE_PATH = ROOT / "docs" / "performance.md"
TEXTS_FOLDER = ROOT / "bench" / "texts"
MEASURES_PATH = ROOT / "build" / "bench" / "measures.json"
SCHEMA_VERSION = 3


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit for one figure of a measure, or for its ratio to another variant's figure.

    Args:
        text: The goal in words.
        measure: The name of the measure.
        variant: The name of the variant that the goal is about.
        bound: The limit.
        of: The figure: the name of a field of `Cost`.
        against: The name of the other variant if the goal limits a ratio; empty if it limits the
            figure itself.
        is_least: True if `bound` is a minimum, False if it is a maximum.
        unit: The unit, with a space before it, such as ` ms`. ` x` for a ratio.
    """

    text: str
    measure: str
    variant: str
    bound: float
    of: str = "wall_ms"
    against: str = ""
    is_least: bool = False
    unit: str = " x"

    @property
    def bound_text(self) -> str:
        """The limit as the table of goals shows it, such as `≤ 1.3 x`."""
        comparison_sign = "≥" if self.is_least else "≤"
        return f"{comparison_sign} {self.add_unit(self.bound)}"

    def find_result(self, measure_by_name: Mapping[str, Measure]) -> float | None:
        """Return the measured figure or ratio; None if it was not measured."""
        measure = measure_by_name.get(self.measure)
        if measure is None or self.variant not in measure.costs:
            return None
        if self.against and self.against not in measure.costs:
            return None
        if self.against:
            return measure.ratio(self.variant, self.of, self.against)
        return measure.median_cost(self.variant, self.of)

    def verdict(self, result: float) -> str:
        """Return `met` if the result is within the limit, otherwise `missed`."""
        is_met = result >= self.bound if self.is_least else result <= self.bound
        return "met" if is_met else "missed"

    def add_unit(self, amount: float) -> str:
        """Return an amount with its unit, as text."""
        return f"{amount:,.4g}{self.unit}" if amount < 1000 else f"{amount:,.0f}{self.unit}"

    def make_goal_row(self, measure_by_name: Mapping[str, Measure]) -> tuple[str, str, str, str]:
        """Return the goal's row in the table of goals: goal, limit, result and verdict.

        If the result is a ratio of wall times, it also shows the ratio of CPU times.
        """
        result = self.find_result(measure_by_name)
        if result is None:
            return (self.text, self.bound_text, "not measured", "")
        result_text = self.add_unit(result)
        if self.against and self.of == "wall_ms":
            cpu_ratio = msgspec.structs.replace(self, of="cpu_ms").find_result(measure_by_name)
            result_text += f" (CPU {self.add_unit(cpu_ratio or 0)})"
        return (self.text, self.bound_text, result_text, self.verdict(result))


_GOAL_TABLES = tomllib.loads((TEXTS_FOLDER / "goals.toml").read_text())["goals"]
GOALS = msgspec.convert(_GOAL_TABLES, list[Goal])


class PartMeasures(Struct, frozen=True):
    """The measures of one part of the bench: of the handler or of the nightly job."""

    taken_at: str  # for people
    machine: str  # for people: cores, processor, memory, system and Python
    measures: dict[str, Measure]


def make_part_measures(measures: Iterable[Measure]) -> PartMeasures:
    """Return a part with these measures, the present time and a description of this machine."""
    cpu_lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu_models = [
        line.partition(":")[2].strip() for line in cpu_lines if line.startswith("model name")
    ]
    memory_gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cpu_model = [*cpu_models, platform.machine()][0]
    machine_text = (
        f"{os.cpu_count()} cores of {cpu_model}, {memory_gigabytes:.0f} GB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )
    taken_at = datetime.now(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
    return PartMeasures(taken_at, machine_text, {measure.name: measure for measure in measures})


def load_measures_by_part_name(path: Path = MEASURES_PATH) -> dict[str, PartMeasures]:
    """Return the stored parts by name.

    Empty if the file is missing or was written with another SCHEMA_VERSION.
    """
    if not path.exists():
        return {}
    document = json.loads(path.read_text())
    if document.get("schema") != SCHEMA_VERSION:
        return {}
    return msgspec.convert(document["parts"], dict[str, PartMeasures])


def store_measures_by_part_name(
    measures_by_part_name: Mapping[str, PartMeasures], path: Path = MEASURES_PATH
) -> None:
    """Store the parts in a JSON file.

    A later run that measures only one part takes the other part from this file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded_document = msgspec.json.encode(
        {"schema": SCHEMA_VERSION, "parts": dict(measures_by_part_name)}
    )
    path.write_bytes(msgspec.json.format(encoded_document, indent=2) + b"\n")


def format_duration(milliseconds: float) -> str:
    """Return a duration as text: `31.2 ms`, `312 ms` or `1.24 s`."""
    if milliseconds < 100:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.2f} s"


class _Column(NamedTuple):
    """A column in the table of a measure."""

    heading: str
    figure_name: str  # a field of `Cost`
    format_figure: Callable[[float], str]
    is_ratio: bool = False  # the ratio to the floor's figure instead of the figure

    def find_figure(self, measure: Measure, variant_name: str) -> float:
        """Return the figure that this column shows for a variant."""
        if self.is_ratio:
            return measure.ratio(variant_name, self.figure_name)
        return measure.median_cost(variant_name, self.figure_name)

    def has_figures(self, measure: Measure) -> bool:
        """Return True if at least one variant has a figure other than 0 in this column."""
        return any(self.find_figure(measure, variant_name) for variant_name in measure.costs)


_MEASURE_COLUMNS = (
    _Column("wall", "wall_ms", format_duration),
    _Column("ratio", "wall_ms", "{:.2f}".format, is_ratio=True),
    _Column("CPU", "cpu_ms", format_duration),
    _Column("ratio", "cpu_ms", "{:.2f}".format, is_ratio=True),
    _Column("inflated", "raw_rate", "{:,.0f} MB/s".format),
    _Column("AWS calls", "aws_calls", "{:g}".format),
    _Column("peak memory", "peak_mb", "{:,.0f} MB".format),
)


def make_headings_and_rows(measure: Measure) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings and the rows of a measure's table.

    A column in which all figures are 0 is left out.
    """
    variant_names = list(measure.costs)
    shown_columns = [column for column in _MEASURE_COLUMNS if column.has_figures(measure)]
    rows: list[tuple[str, ...]] = []
    for variant_name in variant_names:
        figure_texts = [
            column.format_figure(column.find_figure(measure, variant_name))
            for column in shown_columns
        ]
        rows.append((variant_name, *figure_texts))
    return ("medians", *(column.heading for column in shown_columns)), rows


def join_measures(measures_by_part_name: Mapping[str, PartMeasures]) -> dict[str, Measure]:
    """Return the measures of all parts by name."""
    measure_by_name: dict[str, Measure] = {}
    for part in measures_by_part_name.values():
        measure_by_name.update(part.measures)
    return measure_by_name


def make_performance_page(measures_by_part_name: Mapping[str, PartMeasures]) -> str:
    """Return the text of docs/performance.md.

    A part that is missing in `measures_by_part_name` is shown as not measured.
    """
    measure_by_name = join_measures(measures_by_part_name)
    note_by_measure_name = tomllib.loads((TEXTS_FOLDER / "notes.toml").read_text())
    goal_rows = [goal.make_goal_row(measure_by_name) for goal in GOALS]
    text_by_placeholder = {
        "goals": make_markdown_table(("goal", "asked", "measured", ""), goal_rows)
    }
    for part_name in ("nightly", "handler"):
        part = measures_by_part_name.get(part_name)
        if part is None:
            text_by_placeholder[f"{part_name}_taken"] = "Not measured."
            text_by_placeholder[part_name] = ""
            continue
        text_by_placeholder[f"{part_name}_taken"] = (
            f"Taken {part.taken_at} by `make bench` on {part.machine}."
        )
        sections = [
            _make_section(measure, note_by_measure_name.get(measure.name))
            for measure in part.measures.values()
        ]
        text_by_placeholder[part_name] = "\n\n".join(sections)
    return (TEXTS_FOLDER / "performance.md").read_text().format(**text_by_placeholder)


def _make_section(measure: Measure, note: str | None) -> str:
    """Return a measure's section of the page: title, note (if there is one) and table."""
    paragraphs = [f"### {measure.title}"]
    if note:
        paragraphs.append(note)
    paragraphs.append(make_markdown_table(*make_headings_and_rows(measure)))
    return "\n\n".join(paragraphs)


def make_markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. The first column is left-aligned, the others are right-aligned."""
    alignment_cells = ("---", *["---:"] * (len(headings) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, alignment_cells, *rows))
