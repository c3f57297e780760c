"""The nightly job's tables, held against the plain count row by row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.analytics.recount.plain_count import IncidentCount, Row

MOST_PRINCIPALS = 10


def read_tables(out: Path) -> dict[str, dict[date, list[Row]]]:
    """Return the rows of each table by day."""
    return {name: _read_days(out, name) for name in ("incidents", "failed_calls")}


def _read_days(out: Path, name: str) -> dict[date, list[Row]]:
    days = {}
    for path in sorted((out / name).glob(f"dt=*/{name}.parquet")):
        day = date.fromisoformat(path.parent.name.removeprefix("dt="))
        days[day] = pq.read_table(path, partitioning=None).to_pylist()
    return days


def list_disagreements(out: Path, counted: IncidentCount) -> list[str]:
    """What the nightly job wrote other than was counted, of the days that it wrote."""
    found = read_tables(out)
    differing = [
        f"{day}: {len(rows)} failed calls, and not {counted.failed_calls.get(day, 0)}"
        for day, rows in found["failed_calls"].items()
        if len(rows) != counted.failed_calls.get(day, 0)
    ]
    for day, rows in found["incidents"].items():
        ours = {_key(row): row for row in counted.incidents.get(day, [])}
        theirs = {_key(row): _plain(row, ours.get(_key(row), {})) for row in rows}
        differing += [
            f"{day}: {theirs.get(key)}, and not {ours.get(key)}"
            for key in ours.keys() | theirs.keys()
            if ours.get(key) != theirs.get(key)
        ]
        if len(theirs) != len(rows):
            differing.append(f"{day}: a row is there twice")
    identifiers = [row["incident_id"] for rows in found["incidents"].values() for row in rows]
    if len(identifiers) != len(set(identifiers)):
        differing.append("an incident_id is there twice")
    return differing


def _plain(row: Row, counted: Row) -> Row:
    """A row as the count has it; of the principals any ten may be kept."""
    own = {name: _utc(value) for name, value in row.items() if name != "incident_id"}
    kept = own["principals"]
    every = counted.get("principals", [])
    if len(set(kept)) == len(kept) == min(len(every), MOST_PRINCIPALS) and set(kept) <= set(every):
        own["principals"] = every
    return {**own, "error_codes": sorted(own["error_codes"])}


def _key(row: Row) -> tuple[Any, ...]:
    names = ("account", "region", "queue_arn", "symptom")
    return (*(row[name] for name in names), _utc(row["first_failure"]))


def _utc(value: Any) -> Any:
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if is_naive else value
