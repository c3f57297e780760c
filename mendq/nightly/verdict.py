"""Decide whether a nightly run read as much as usual.

A nightly run stores in `nightly.json` how many files, records and failed calls it read of a day. A
trail that has stopped, or that lost its log files, gives a table that looks like a quiet day. So
each day's counts are compared with those of the days before. `watch_nightly` raises alarms by the
verdict, and the weekly report shows it.

Rules of `judge`; the first one that fits decides:

1. Nothing was stored: `failed` if the run failed, otherwise `missing` (the trail began later, or an
   earlier run has read the day).
2. The tables are not those that were counted: `torn`. A run died between tables and counts.
3. The day was not over when it was read: `partial`. Its counts prove nothing.
4. No record and no failed call: `nothing_read`. A working trail has at least the probe's calls,
   every hour.
5. Less than a fifth of the usual records: `far_fewer`. Usual is the median of the 14 days before,
   or the busier of the same weekday's two if that is lower: a quiet Sunday is no fault. Days that
   read nothing, or were not over, do not count. With fewer than 3 such days, or fewer than 1,000
   usual records, chance decides more than the trail, and no day is called `far_fewer`.
6. Otherwise: `read`.

The module knows no AWS and no clock. It is shared by Lambda, report and Spark job.
"""

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
# Below this, chance decides more than the trail (rule 5).
LEAST_USUAL_RECORDS = 1_000
# Far fewer are less than one in five.
FEWER_TIMES = 5
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
# After a week's end its last nightly run is still to come: by default it starts two hours later.
LAST_NIGHTLY_WITHIN = timedelta(hours=3)
_LARGEST = 10**15
_BEFORE_SQS, _TOO_FAR = 2004, 9000


class Verdict(StrEnum):
    """The result of `judge`; the module's docstring explains each. `failed` needs a run's end."""

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
class NightlyJudgement:
    """A verdict, and the usual number of records if enough other days are known."""

    verdict: Verdict
    usual_records: float | None = None


def judge(
    nightly: NightlyRead | None,
    before: Iterable[NightlyRead],
    *,
    run_failed: bool = False,
    is_torn: bool = False,
) -> NightlyJudgement:
    """Judge what a nightly run read of a day.

    Args:
        nightly: The counts of the day, or None if nothing was stored.
        before: The counts of earlier days, in any order. Other days in it do not matter.
        run_failed: True if the run that should have stored them failed.
        is_torn: True if the day's tables do not have as many rows as were counted.
    """
    if nightly is None:
        return NightlyJudgement(Verdict.FAILED if run_failed else Verdict.MISSING)
    usual = usual_records(nightly.day, before)
    return NightlyJudgement(_verdict_of(nightly, usual, is_torn=is_torn), usual)


def _verdict_of(nightly: NightlyRead, usual: float | None, *, is_torn: bool) -> Verdict:
    if is_torn:
        return Verdict.TORN
    if not nightly.is_whole:
        return Verdict.PARTIAL
    if nightly.read_nothing:
        return Verdict.NOTHING_READ
    enough_known = usual is not None and usual >= LEAST_USUAL_RECORDS
    if enough_known and nightly.records * FEWER_TIMES < (usual or 0):
        return Verdict.FAR_FEWER
    return Verdict.READ


def usual_records(day: date, before: Iterable[NightlyRead]) -> float | None:
    """Return the usual number of records of a day, or None if too few days are known (rule 5)."""
    records_of_day: dict[date, int] = {}
    for nightly in before:
        days_ago = (day - nightly.day).days
        if 0 < days_ago <= LOOKED_BACK_DAYS and nightly.records and nightly.is_whole:
            records_of_day[nightly.day] = nightly.records
    if len(records_of_day) < LEAST_NIGHTLY_RUNS:
        return None
    typical = median(records_of_day.values())
    same_weekday = [
        records_of_day[weekday]
        for weekday in (day - _WEEK, day - 2 * _WEEK)
        if weekday in records_of_day
    ]
    if not same_weekday:
        return typical
    return min(typical, max(same_weekday))


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
