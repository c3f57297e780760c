"""The incidents that a week's document lists: its `cases`, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from analytics.columns import INCIDENTS
from analytics.lives import MOST_NAME, shortened
from analytics.outcomes import MENDED
from analytics.week_rows import Row, time_text

MAXIMUM_CASES = 50
MOST_CODES = 10
# A queue's ARN names the other two.
_FIELDS = tuple(each for each in INCIDENTS if each not in {"account", "region"})


def worst(incidents: Iterable[Row], reasons: Mapping[str, object]) -> list[dict[str, Any]]:
    """At most MAXIMUM_CASES: those that were not mended first, then by failed calls.

    `reasons` is what each case said last; empty where its case is not known.
    """
    ranked = sorted(incidents, key=_worst_first)[:MAXIMUM_CASES]
    return [_listed(row) | {"reason": shortened(reasons.get(row["case_id"]))} for row in ranked]


def _worst_first(row: Row) -> tuple[bool, int, datetime, str]:
    return row["outcome"] in MENDED, -row["failed_calls"], row["first_failure"], row["incident_id"]


def _listed(row: Row) -> dict[str, Any]:
    said = {name: time_text(row[name]) for name in ("first_failure", "last_failure")}
    said["error_codes"] = row["error_codes"][:MOST_CODES]
    said["case_id"] = row["case_id"] and shortened(row["case_id"], MOST_NAME)
    return {name: said.get(name, row[name]) for name in _FIELDS}
