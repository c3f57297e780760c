"""Every table of mutants; which tests kill them stands with them."""

from __future__ import annotations

from pathlib import Path

import yaml
from msgspec import convert

from tests.prove.mutants.mutant import Selection

TABLES = (
    "guardrails",
    "writes",
    "policies",
    "catalogue",
    "redrive",
    "nightly",
    "people",
    "templates",
)


def _selections(name: str) -> list[Selection]:
    text = Path(__file__).with_name(f"{name}.yaml").read_text()
    return convert(yaml.safe_load(text), list[Selection])


SELECTIONS = tuple(selection for name in TABLES for selection in _selections(name))
