"""Print the measures of each area beside their thresholds, and the worst places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.architecture.style.areas import TESTS, Area
from tests.architecture.style.measures import MEASURES, Measure, Measurement
from tests.architecture.style.source import SourceFile

LONGEST_TEXT = 100


@dataclass(frozen=True)
class Cell:
    """One measure in one area. `is_required` is false if it need not be ok."""

    measure: Measure
    area: Area
    measurement: Measurement
    is_required: bool

    @property
    def is_ok(self) -> bool:
        """True if the value is not above the threshold."""
        return self.measurement.value <= self.measure.threshold

    @property
    def fails_check(self) -> bool:
        """True if `make check` must fail because of this cell."""
        return self.area.is_gate and self.is_required and not self.is_ok

    def __str__(self) -> str:
        if not self.is_required:
            return f"{_number(self.measurement.value)}  - "
        return f"{_number(self.measurement.value)} {' ok' if self.is_ok else 'not'}"


def measure_areas(areas: Sequence[Area], files: list[SourceFile]) -> list[Cell]:
    """Return a cell for every measure in every area, in the order of MEASURES."""
    selected = [(area, area.select(files)) for area in areas]
    cells: list[Cell] = []
    for measure in MEASURES:
        for area, files_of_area in selected:
            is_required = measure.for_tests or area.name != TESTS.name
            cells.append(Cell(measure, area, measure.count(files_of_area), is_required))
    return cells


def table_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the table: a line for each measure, a column for each area."""
    areas = list(dict.fromkeys(cell.area.name for cell in cells))
    title_width = max(len(measure.title) for measure in MEASURES)
    widths = {name: max(len(name), len("100.00 not")) for name in areas}
    heads = [name.rjust(widths[name]) for name in areas]
    yield "   ".join(["measure".ljust(title_width), "at most", *heads])
    for measure in MEASURES:
        threshold = _number(measure.threshold).rjust(len("at most"))
        row = [cell for cell in cells if cell.measure is measure]
        values = [str(cell).rjust(widths[cell.area.name]) for cell in row]
        yield "   ".join([measure.title.ljust(title_width), threshold, *values])


def worst_lines(cells: Sequence[Cell], names: Sequence[str], most: int) -> Iterator[str]:
    """Yield the worst places of the named measures, and what to do about them.

    At most `most` places for each measure and area. What an area need not meet is left out.
    """
    for cell in cells:
        locations = cell.measurement.locations
        measure = cell.measure
        if measure.name not in names or not cell.is_required or not locations:
            continue
        yield ""
        yield f"{cell.area.name}: {measure.title}"
        limit = f"at most {_number(measure.threshold)}"
        places = "1 place" if len(locations) == 1 else f"{len(locations):,} places"
        yield f"  {_number(cell.measurement.value)}, {limit}; {places}"
        yield f"  {measure.advice}"
        for location in locations[:most]:
            yield f"  {location.path}:{location.line} {location.text[:LONGEST_TEXT]}"
        if len(locations) > most:
            yield f"  `make style NAMES={measure.name} WORST={len(locations)}` lists all"


def summary_line(cells: Sequence[Cell]) -> str:
    """Say in one line how many thresholds each area meets."""
    parts: list[str] = []
    for area in dict.fromkeys(cell.area for cell in cells):
        required = [cell for cell in cells if cell.area is area and cell.is_required]
        number = sum(cell.is_ok for cell in required)
        note = "" if area.is_gate else " (not a gate)"
        parts.append(f"{area.name} meets {number} of {len(required)}{note}")
    return f"style: {', '.join(parts)}; `make style` shows more"


def _number(value: float) -> str:
    return f"{value:.2f}"
