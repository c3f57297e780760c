"""The nightly job's tables, held against the plain count row by row."""

from __future__ import annotations

from datetime import UTC, date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.analytics.outsider.plain_count import Count, Row

MOST_PRINCIPALS = 10


def tables(out: Path) -> dict[str, dict[date, list[Row]]]:
    """Each table's written days."""
    return {name: written(out, name) for name in ("incidents", "failed_calls")}


def written(out: Path, table: str) -> dict[date, list[Row]]:
    return {
        date.fromisoformat(day.name.removeprefix("dt=")): pq.read_table(
            day / f"{table}.parquet", partitioning=None
        ).to_pylist()
        for day in sorted((out / table).glob("dt=*"))
    }


def disagreements(out: Path, counted: Count) -> list[str]:
    """What the nightly job wrote other than was counted, of the days that it wrote."""
    found = tables(out)
    differing = [
        f"{day}: {len(rows)} failed calls, and not {counted.failed_calls.get(day, 0)}"
        for day, rows in found["failed_calls"].items()
        if len(rows) != counted.failed_calls.get(day, 0)
    ]
    for day, rows in found["incidents"].items():
        differing += differing_rows(day, rows, counted.incidents.get(day, []))
    identifiers = [each["incident_id"] for rows in found["incidents"].values() for each in rows]
    if len(identifiers) != len(set(identifiers)):
        differing.append("an incident_id is there twice")
    return differing


def differing_rows(day: date, rows: list[Row], counted: list[Row]) -> list[str]:
    ours, theirs = ({_key(each): each for each in side} for side in (counted, rows))
    differing = [f"{day}: not written: {each}" for key, each in ours.items() if key not in theirs]
    differing += [f"{day}: not counted: {each}" for key, each in theirs.items() if key not in ours]
    if len(theirs) != len(rows):
        differing.append(f"{day}: a row is there twice")
    for key in ours.keys() & theirs.keys():
        differing += [f"{day}: {key}: {each}" for each in _columns(ours[key], theirs[key])]
    return differing


def _columns(counted: Row, row: Row) -> list[str]:
    """The columns in which a row differs; of the principals any ten may be kept."""
    retained = row["principals"]
    right = len(retained) == len(set(retained)) == min(len(counted["principals"]), MOST_PRINCIPALS)
    if not right or not set(retained) <= set(counted["principals"]):
        return [f"principals {retained}, and not {counted['principals']}"]
    plain = {**row, "error_codes": sorted(row["error_codes"]), "principals": counted["principals"]}
    return [
        f"{name} {_utc(plain[name])!r}, and not {value!r}"
        for name, value in counted.items()
        if _utc(plain[name]) != value
    ]


def _key(row: Row) -> tuple[Any, ...]:
    names = ("account", "region", "queue_arn", "symptom")
    return (*(row[name] for name in names), _utc(row["first_failure"]))


def _utc(value: Any) -> Any:
    naive = hasattr(value, "tzinfo") and value.tzinfo is None
    return value.replace(tzinfo=UTC) if naive else value
