"""What a week's nights read, and what they did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from analytics.days import Days
from analytics.labels import UNLABELLED
from analytics.lives import MOST_NAME, shortened
from analytics.week_names import MAXIMUM_LABELS, largest
from analytics.week_rows import NightRows, Nights, Row, incidents_of, quality_of
from functions.healing.nightly import NightRead, judged

MAXIMUM_UNREADABLE_FILES = 20
Reads = Mapping[date, NightRead]


def not_seen(days: Days, nights: Nights, reads: Reads) -> dict[str, Any]:
    """`reads` is what nights wrote of themselves, those of two weeks before among them."""
    quality = quality_of(days, nights)
    unreadable = [row for row in quality if row["reason"]]
    return {
        "nights_missing": [str(day) for day in days if day not in nights],
        "files_read": len(quality) - len(unreadable),
        "files_unreadable": len(unreadable),
        "bytes_read": sum(row["bytes"] for row in quality if not row["reason"]),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable),
        "records_read": sum(row["records"] for row in quality),
        **_unlabelled(incidents_of(days, nights)),
        "unreadable_files": _largest_first(unreadable),
        "nights": [_night(day, nights, reads) for day in days],
    }


def is_whole(day: date, nights: Nights, reads: Reads) -> bool:
    """Whether a day has tables, and they were written when it was over."""
    return day in nights and (day not in reads or reads[day].is_whole)


def _unlabelled(incidents: Sequence[Row]) -> dict[str, Any]:
    """Failed calls of each code, and of how many more."""
    found: Counter[str] = Counter()
    for row in incidents:
        if row["label"].startswith(UNLABELLED):
            found[row["label"]] += row["failed_calls"]
    codes = largest(found, MAXIMUM_LABELS)
    return {
        "unlabelled": codes.counts,
        "unlabelled_codes_left_out": codes.names_left_out,
        "unlabelled_calls_left_out": codes.count_left_out,
    }


def _largest_first(unreadable: Sequence[Row]) -> list[dict[str, str]]:
    ranked = sorted(unreadable, key=lambda row: (-row["bytes"], row["file"]))
    return [
        {name: shortened(row[name]) for name in ("file", "reason")}
        for row in ranked[:MAXIMUM_UNREADABLE_FILES]
    ]


def _night(day: date, nights: Nights, reads: Reads) -> dict[str, Any]:
    """A night that wrote nothing of itself, as an older Mendq's, is known by its tables alone."""
    read = reads.get(day)
    is_torn = read is not None and not _is_counted_in(read, nights.get(day))
    judgement = judged(read, reads.values(), is_torn=is_torn)
    records = sum(row["records"] for row in nights[day].quality) if day in nights else 0
    return {
        "day": str(day),
        "reader": shortened(read.reader, MOST_NAME) if read else "",
        "why_fallback": shortened(read.why_fallback) if read else "",
        "records": read.records if read else records,
        "usual_records": judgement.usual_records,
        "verdict": "read" if read is None and records else str(judgement.verdict),
    }


def _is_counted_in(read: NightRead, rows: NightRows | None) -> bool:
    """Whether the tables are those that the night counted; where there are none, nothing is."""
    incidents, quality = (rows.incidents, rows.quality) if rows else ((), ())
    sums = [sum(row[name] for row in quality) for name in ("bytes", "records")]
    found = (len(quality), *sums, len(incidents))
    return found == (read.files, read.bytes, read.records, read.incidents)
