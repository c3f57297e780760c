"""What a nightly run writes down of its own reading, and whether that is as much as usual."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from statistics import median
from typing import Any

from mendq.model.evidence import to_text

SCHEMA = 1
NIGHTLY_RUNS = "nightly"
# What a stack shares of a day, and beside its tables of itself.
SHARED_TABLES, ABOUT = ("incidents", "failed_calls", "quality"), "account.json"
# The second needs no native wheel: slower, the same rows.
NATIVE, FALLBACK = "native", "standard_library"
UNREADABLE_SHARE = 0.01
LOOKED_BACK_DAYS = 14
LEAST_NIGHTLY_RUNS = 3
# Below this a day's chance decides, not the trail.
LEAST_USUAL_RECORDS = 1_000
# Fewer than one in five.
FEWER_TIMES = 5
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
# After a week's end its last nightly run is still to come: by default it starts two hours later.
LAST_NIGHTLY_WITHIN = timedelta(hours=3)
_LARGEST = 10**15
_BEFORE_SQS, _TOO_FAR = 2004, 9000


class Verdict(StrEnum):
    """`missing`: nothing is there; `failed`, which only a run's end tells: it wrote nothing.

    `partial`: written before the day was over, by the nightly run of a day whose chain touched it.
    `torn`: the tables are not those that the nightly job counted, as a run leaves that ends in
    between.
    """

    READ = "read"
    PARTIAL = "partial"
    FAR_FEWER = "far_fewer"
    NOTHING_READ = "nothing_read"
    MISSING = "missing"
    FAILED = "failed"
    TORN = "torn"


DOUBTFUL = frozenset({Verdict.FAR_FEWER, Verdict.NOTHING_READ})


@dataclass(frozen=True)
class NightlyRead:
    """What one UTC day's nightly run read: files and records by publish day, calls by their own.

    `reader` read them; `why_fallback` is empty unless it is the slower one.
    """

    day: date
    made_at: datetime
    reader: str
    why_fallback: str
    files: int = 0
    files_unreadable: int = 0
    bytes: int = 0
    bytes_unreadable: int = 0
    records: int = 0
    failed_calls: int = 0
    incidents: int = 0

    def document(self) -> dict[str, Any]:
        """As `nightly.json` holds it."""
        texts = {"day": str(self.day), "made_at": to_text(self.made_at)}
        return {"schema": SCHEMA, **asdict(self), **texts}

    @property
    def read_nothing(self) -> bool:
        """A trail that works holds at least the probe's calls, so this is no quiet day."""
        return not (self.records or self.failed_calls)

    @property
    def is_whole(self) -> bool:
        """Whether its day was over when it was written."""
        return self.made_at.astimezone(UTC).date() > self.day


COUNTS = tuple(each.name for each in fields(NightlyRead) if each.default == 0)


def read_nightly(content: bytes) -> NightlyRead | None:
    """None where `content` is no nightly run of ours; nothing is raised."""
    try:
        document = json.loads(content)
        day, made_at = document["day"], datetime.fromisoformat(document["made_at"])
        texts = [document[name] for name in ("reader", "why_fallback")]
        counts = {name: document[name] for name in COUNTS}
        is_ours = (
            document["schema"] == SCHEMA
            and document["schema"] is not True
            and made_at.tzinfo is not None
        )
        found = NightlyRead(date.fromisoformat(day), made_at.astimezone(UTC), *texts, **counts)
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return None
    are_texts = all(isinstance(each, str) for each in texts)
    are_counts = all(type(it) is int and 0 <= it < _LARGEST for it in counts.values())
    return found if is_ours and are_texts and are_counts else None


@dataclass(frozen=True)
class Judged:
    """`usual_records` is what the nightly job was held to; None where too little is known of
    others.
    """

    verdict: Verdict
    usual_records: float | None = None


def judged(
    nightly: NightlyRead | None,
    before: Iterable[NightlyRead],
    *,
    run_failed: bool = False,
    is_torn: bool = False,
) -> Judged:
    """Whether a nightly run read as much as the nightly runs `before` it, in any order.

    `nightly` is None where nothing was written; then `run_failed` says whether a run was to do so.
    `is_torn` says of one that was that its tables are others than it counted.
    """
    if nightly is None:
        return Judged(Verdict.FAILED if run_failed else Verdict.MISSING)
    usual = usual_records(nightly.day, before)
    enough_known = usual is not None and usual >= LEAST_USUAL_RECORDS
    doubts = (
        (is_torn, Verdict.TORN),
        (not nightly.is_whole, Verdict.PARTIAL),
        (nightly.read_nothing, Verdict.NOTHING_READ),
        (enough_known and nightly.records * FEWER_TIMES < (usual or 0), Verdict.FAR_FEWER),
    )
    return Judged(next((verdict for holds, verdict in doubts if holds), Verdict.READ), usual)


def usual_records(day: date, before: Iterable[NightlyRead]) -> float | None:
    """The median of the 14 days before `day`, or what its weekday had, whichever is less.

    The weekday, because a quiet Sunday is no fault; the busier of its two, because one of them may
    have been. Nightly runs that read nothing, or a part of their day, tell nothing of what is
    usual.
    """
    earlier = {
        each.day: each.records
        for each in before
        if 0 < (day - each.day).days <= LOOKED_BACK_DAYS and each.records and each.is_whole
    }
    if len(earlier) < LEAST_NIGHTLY_RUNS:
        return None
    same_weekday = [earlier[each] for each in (day - _WEEK, day - 2 * _WEEK) if each in earlier]
    typical = median(earlier.values())
    return min(typical, max(same_weekday)) if same_weekday else typical


def week_is_over(last_day: date, at: datetime, *, last_nightly_may_come: bool) -> bool:
    """Whether a week that ends with `last_day` is summed up for good `at` a moment.

    A missing last nightly run is given some hours, where somebody may sum up again after it.
    """
    ended = datetime.combine(last_day + _DAY, time(), UTC)
    return at >= (ended + LAST_NIGHTLY_WITHIN if last_nightly_may_come else ended)


def too_much_unreadable(unreadable: int, of_bytes: int) -> bool:
    """More than can be passed over: the job ends with exit code 3."""
    return unreadable > UNREADABLE_SHARE * of_bytes


def is_in_reach(year: int) -> bool:
    """No trail is that old or that new, and days around it can be counted."""
    return _BEFORE_SQS < year < _TOO_FAR


def week_named(day: date) -> str:
    """The ISO week of a day, such as 2026-W46."""
    year, number, _ = day.isocalendar()
    return f"{year:04}-W{number:02}"


def day_named(text: str) -> date | None:
    """The day that is written like 2026-11-16; None of another text, and out of reach."""
    with suppress(ValueError):
        day = date.fromisoformat(text)
        if str(day) == text and is_in_reach(day.year):
            return day
    return None


def member_key(account: str, region: str) -> str:
    """Below which a stack puts what it shares with its organization."""
    return f"account={account}/region={region}"


def shared_folder(account: str, region: str, table: str, week: str) -> str:
    """Where a week of a stack's table lies: one listing finds all its days."""
    return f"{member_key(account, region)}/{table}/week={week}"


def nightly_key(day: date) -> str:
    """Where a nightly run's own account lies below the tables' root."""
    return f"{NIGHTLY_RUNS}/dt={day}/nightly.json"
