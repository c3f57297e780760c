"""docs/performance.md, from what was measured.

`make bench KEEP=1` writes it; the figures are those of one machine on one day, so that nothing
checks them for staleness.
"""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.rounds import ROOT, Measure

PAGE, TEXTS = ROOT / "docs" / "performance.md", ROOT / "bench" / "texts"
MEASURES = ROOT / "build" / "bench" / "measures.json"
SCHEMA = 3


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """A way of a measure, by itself or against another, takes at most or at least so much."""

    text: str
    measure: str
    way: str
    bound: float
    of: str = "wall_ms"
    against: str = ""
    is_least: bool = False
    unit: str = " x"

    @property
    def asked(self) -> str:
        """The bound, as a table has it."""
        return f"{'≥' if self.is_least else '≤'} {self.worded(self.bound)}"

    def found(self, measures: Mapping[str, Measure]) -> float | None:
        """Return what was measured; None where nothing was."""
        measure = measures.get(self.measure)
        if measure is None or not {self.way, self.against or self.way} <= measure.costs.keys():
            return None
        if self.against:
            return measure.ratio(self.way, self.of, self.against)
        return measure.middle(self.way, self.of)

    def verdict(self, found: float) -> str:
        """Met, or missed."""
        is_met = found >= self.bound if self.is_least else found <= self.bound
        return "met" if is_met else "missed"

    def worded(self, amount: float) -> str:
        """An amount with its unit."""
        return f"{amount:,.4g}{self.unit}" if amount < 1000 else f"{amount:,.0f}{self.unit}"

    def row(self, measures: Mapping[str, Measure]) -> tuple[str, str, str, str]:
        """(goal, asked, measured, verdict)."""
        found = self.found(measures)
        if found is None:
            return (self.text, self.asked, "not measured", "")
        beside = ""
        if self.against and self.of == "wall_ms":  # a ratio of times
            cpu = msgspec.structs.replace(self, of="cpu_ms").found(measures)
            beside = f" (CPU {self.worded(cpu or 0)})"
        return (self.text, self.asked, self.worded(found) + beside, self.verdict(found))


_GOALS = tomllib.loads((TEXTS / "goals.toml").read_text())["goals"]
GOALS = msgspec.convert(_GOALS, list[Goal])


class Part(Struct, frozen=True):
    """The handler's or the nightly job's measures; `taken_at` and `machine` are for people."""

    taken_at: str
    machine: str
    measures: dict[str, Measure]


def part(measures: Iterable[Measure]) -> Part:
    """Measures with when and where they were taken."""
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = (
        f"{os.cpu_count()} cores of {[*models, platform.machine()][0]}, {gigabytes:.0f} GB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )
    now = datetime.now(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
    return Part(now, machine, {each.name: each for each in measures})


def read(path: Path = MEASURES) -> dict[str, Part]:
    """Return what was kept; nothing where there is no file, or one of another schema."""
    document = json.loads(path.read_text()) if path.exists() else {}
    is_ours = document.get("schema") == SCHEMA
    return msgspec.convert(document["parts"], dict[str, Part]) if is_ours else {}


def keep(parts: Mapping[str, Part], path: Path = MEASURES) -> None:
    """Keep each part as it was last taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.encode({"schema": SCHEMA, "parts": dict(parts)})
    path.write_bytes(msgspec.json.format(text, indent=2) + b"\n")


def lasting(milliseconds: float) -> str:
    """`312 ms`, or `1.24 s` from a second on."""
    if milliseconds < 100:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def shown(measure: Measure) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(headings, rows) of a measure, without the columns that are empty in every row."""
    middle, ratio = measure.middle, measure.ratio
    columns: Sequence[tuple[str, Callable[[str], float], Callable[[float], str]]] = (
        ("wall", lambda way: middle(way, "wall_ms"), lasting),
        ("ratio", lambda way: ratio(way, "wall_ms"), "{:.2f}".format),
        ("CPU", lambda way: middle(way, "cpu_ms"), lasting),
        ("ratio", lambda way: ratio(way, "cpu_ms"), "{:.2f}".format),
        ("inflated", lambda way: middle(way, "raw_rate"), "{:,.0f} MB/s".format),
        ("AWS calls", lambda way: middle(way, "aws_calls"), "{:g}".format),
        ("peak memory", lambda way: middle(way, "peak_mb"), "{:,.0f} MB".format),
    )
    seen = [each for each in columns if any(each[1](way) for way in measure.costs)]
    rows = [(way, *(said(of(way)) for _, of, said in seen)) for way in measure.costs]
    return ("medians", *(each[0] for each in seen)), rows


def measures_of(parts: Mapping[str, Part]) -> dict[str, Measure]:
    """All measures by name."""
    return {name: each for part in parts.values() for name, each in part.measures.items()}


def performance(parts: Mapping[str, Part]) -> str:
    """The page."""
    every = measures_of(parts)
    goals = [each.row(every) for each in GOALS]
    notes, said = tomllib.loads((TEXTS / "notes.toml").read_text()), dict[str, str]()

    def told(each: Measure) -> str:
        parts = (f"### {each.title}", notes.get(each.name), markdown_table(*shown(each)))
        return "\n\n".join(filter(None, parts))

    for name in ("nightly", "handler"):
        said |= {f"{name}_taken": "Not measured.", name: ""}
        if taken := parts.get(name):
            words = f"Taken {taken.taken_at} by `make bench` on {taken.machine}."
            said |= {f"{name}_taken": words, name: "\n\n".join(map(told, taken.measures.values()))}
    page = (TEXTS / "performance.md").read_text()
    table = markdown_table(("goal", "asked", "measured", ""), goals)
    return page.format(goals=table, **said)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is of words, and the others of figures."""
    rule = ("---", *["---:"] * (len(headings) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))
