"""The stories of the demo, as they ended: from the results that an earlier run has left.

`make demo STORY=all` writes `build/demo/<story>/result.json`; it takes minutes, so nothing runs it
here. Where no result lies there, there is nothing to record or to compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.before.operator_accounts import scrubbed

RESULTS = Path(__file__).resolve().parents[2] / "build" / "demo"
# How long a step took, and what was counted of it, differs from run to run.
_OF_ONE_RUN = ("seconds", "_at", "port", "elapsed", "took")


def record() -> Any:
    """Each story's claims and what became of them; None where no demo has run."""
    found = {
        each.parent.name: _without_times(json.loads(each.read_text()))
        for each in sorted(RESULTS.glob("*/result.json"))
    }
    return found or None


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            scrubbed(name): _without_times(each)
            for name, each in value.items()
            if not any(part in name for part in _OF_ONE_RUN)
        }
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    if isinstance(value, str):
        return scrubbed(value)
    return "number" if isinstance(value, float) else value
