"""What was measured, as build/bench/measures.json keeps it: each part as it was last taken."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.rounds import ROOT, Cost, Measure

MEASURES = ROOT / "build" / "bench" / "measures.json"
SCHEMA = 2


@dataclass(frozen=True)
class Part:
    """The handler's or the night's measures; `taken_at` and `machine` are for people."""

    taken_at: str
    command: str
    machine: str
    measures: Mapping[str, Measure]


def part(measures: Iterable[Measure], command: str) -> Part:
    now = datetime.now(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
    return Part(now, command, machine(), {each.name: each for each in measures})


def machine() -> str:
    """Cores, their model, memory, Python."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    model = models[0] if models else platform.machine()
    return (
        f"{os.cpu_count()} cores of {model}, {gigabytes:.0f} GB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def read(path: Path = MEASURES) -> dict[str, Part]:
    """Nothing where there is no file, or one of another schema."""
    document = json.loads(path.read_text()) if path.exists() else {}
    if document.get("schema") != SCHEMA:
        return {}
    return {name: _part(**each) for name, each in document["parts"].items()}


def write(parts: Mapping[str, Part], path: Path = MEASURES) -> None:
    document = {"schema": SCHEMA, "parts": {name: asdict(each) for name, each in parts.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def _part(measures: dict[str, dict[str, Any]], **of_part: str) -> Part:
    return Part(**of_part, measures={name: _measure(**each) for name, each in measures.items()})


def _measure(costs: dict[str, list[dict[str, float]]], **of_measure: str) -> Measure:
    read = {way: [Cost(**each) for each in some] for way, some in costs.items()}
    return Measure(**of_measure, costs=read)
