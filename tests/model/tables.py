"""Long tables of what is read and what is to be made of it, recorded in `tables.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TABLES: dict[str, list[Any]] = json.loads(Path(__file__).with_name("tables.json").read_text())


def table(name: str) -> list[Any]:
    return _TABLES[name]
