"""Decide whether a nightly run read as much as usual.

A nightly run stores in `nightly.json` how many files, records and failed calls of a day it read. If
the trail has stopped or its log files are lost, the day's table looks like that of a quiet day. So
Mendq compares each day's counts with those of earlier days. `watch_nightly` sends metrics about the
verdict, which alarms use, and the weekly report shows the verdict.

Rules of `judge_nightly_run`; the first one that fits decides:

1. Nothing was stored: `failed` if the run failed, otherwise `missing` (the trail began later, or an
   earlier run has read the day).
2. The tables do not have as many rows as were counted: `torn`. A run died after it had written the
   tables and before it wrote the counts.
3. The day was not over when it was read: `partial`. Its counts prove nothing.
4. No record and no failed call: `nothing_read`. A working trail has at least the probe's calls,
   every hour.
5. Less than a fifth of the usual records: `far_fewer`. The usual number is the median of the 14
   days before. If the same weekday had fewer records in both weeks before, the larger of these two
   numbers is used (or the only one that is known): a quiet Sunday is no fault. Days without
   records, and days that were not over when they were read, do not count. With fewer than 3 days
   that count, or fewer than 1,000 usual records, chance decides more than the trail, and no day is
   called `far_fewer`.
6. Otherwise: `read`.

The module makes no AWS call and reads no clock. Lambdas, the report and the Spark job use it.
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

from mendq.model.time_text import format_time

NIGHTLY_SCHEMA = 1
NIGHTLY_FOLDER = "nightly"
# The tables that a stack shares with its organization each day, and the name of the shared object
# with the stack's account alias.
TABLES_SHARED_WITH_ORGANIZATION = ("incidents", "failed_calls", "quality")
ACCOUNT_OBJECT_NAME = "account.json"
# The two readers of trail files. Both give the same rows. The fallback needs no native wheel and is
# slower.
NATIVE_READER = "native"
FALLBACK_READER = "standard_library"
# The largest share of unreadable bytes with which the job still succeeds.
MAXIMUM_UNREADABLE_SHARE = 0.01
# A day is compared with this many days before it. At least MINIMUM_COMPARED_DAYS of them must be
# known (rule 5).
COMPARED_DAYS = 14
MINIMUM_COMPARED_DAYS = 3
# Below this, chance decides more than the trail (rule 5).
MINIMUM_USUAL_RECORDS = 1_000
# A day has far fewer records if it has less than a fifth of the usual number (rule 5).
FAR_FEWER_DIVISOR = 5
_ONE_DAY = timedelta(days=1)
_ONE_WEEK = timedelta(days=7)
# The last nightly run of a week starts after the week's end, by default two hours later.
LAST_NIGHTLY_RUN_DELAY = timedelta(hours=3)
# A count in `nightly.json` must be below this.
_COUNT_LIMIT = 10**15
# A trail's days must be between these years. Before them, SQS did not exist; after them, computing
# with days could raise an error.
_YEAR_BEFORE_SQS = 2004
_YEAR_AFTER_POSSIBLE_DAYS = 9000


class Verdict(StrEnum):
    """The result of `judge_nightly_run`. The module's docstring explains each value.

    Only code that knows how the run ended, such as `watch_nightly`, gives the verdict `failed`.
    """

    READ = "read"
    PARTIAL = "partial"
    FAR_FEWER = "far_fewer"
    NOTHING_READ = "nothing_read"
    MISSING = "missing"
    FAILED = "failed"
    TORN = "torn"


# Verdicts that are a reason to check the trail.
DOUBTFUL_VERDICTS = frozenset({Verdict.FAR_FEWER, Verdict.NOTHING_READ})


@dataclass(frozen=True)
class NightlyCounts:
    """Counts of one UTC day, as a nightly run stores them in `nightly.json`.

    Files, bytes and records belong to the day on which CloudTrail published them, failed calls to
    the day on which they were made.

    Args:
        day: The day that was read.
        made_at: When the run wrote these counts.
        reader: NATIVE_READER or FALLBACK_READER.
        why_fallback: Why the slower reader was used; empty if it was not used.
        incidents: The number of incidents that the weekly report counts.
        own_incidents: The number of incidents that Mendq or its operators caused. None in counts by
            an older version, whose `incidents` includes them.
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
    own_incidents: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the content of `nightly.json`."""
        text_by_field = {"day": str(self.day), "made_at": format_time(self.made_at)}
        return {"schema": NIGHTLY_SCHEMA, **asdict(self), **text_by_field}

    @property
    def incident_row_count(self) -> int:
        """The number of rows that the table `incidents` has for the day."""
        return self.incidents + (self.own_incidents or 0)

    @property
    def has_read_nothing(self) -> bool:
        """True if the day has no record and no failed call.

        Such a day is a fault and not a quiet day: a working trail has at least the probe's calls.
        """
        return not (self.records or self.failed_calls)

    @property
    def was_day_over(self) -> bool:
        """True if the day was over when these counts were written."""
        return self.made_at.astimezone(UTC).date() > self.day


# The names of the fields that are counts.
COUNT_FIELDS = tuple(field.name for field in fields(NightlyCounts) if field.default == 0)


def read_nightly_counts(content: bytes) -> NightlyCounts | None:
    """Read the content of a `nightly.json`. Return None if Mendq cannot have written it.

    Never raise an error.
    """
    try:
        document = json.loads(content)
        day = date.fromisoformat(document["day"])
        made_at = datetime.fromisoformat(document["made_at"])
        reader_texts = [document[name] for name in ("reader", "why_fallback")]
        count_by_field = {name: document[name] for name in COUNT_FIELDS}
        if document.get("own_incidents") is not None:
            count_by_field["own_incidents"] = document["own_incidents"]
        has_known_schema = (
            document["schema"] == NIGHTLY_SCHEMA
            and document["schema"] is not True
            and made_at.tzinfo is not None
        )
        nightly_counts = NightlyCounts(
            day, made_at.astimezone(UTC), *reader_texts, **count_by_field
        )
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return None
    are_reader_texts_valid = all(isinstance(text, str) for text in reader_texts)
    are_counts_valid = all(
        type(count) is int and 0 <= count < _COUNT_LIMIT for count in count_by_field.values()
    )
    return (
        nightly_counts if has_known_schema and are_reader_texts_valid and are_counts_valid else None
    )


@dataclass(frozen=True)
class NightlyJudgement:
    """A verdict about one day, and the day's usual number of records.

    `usual_records` is None if too few other days are known, or if nothing was stored for the day.
    """

    verdict: Verdict
    usual_records: float | None = None


def judge_nightly_run(
    nightly_counts: NightlyCounts | None,
    counts_of_other_days: Iterable[NightlyCounts],
    *,
    has_run_failed: bool = False,
    has_wrong_counts: bool = False,
) -> NightlyJudgement:
    """Return the verdict about a nightly run's counts of a day, by the module's rules.

    Args:
        nightly_counts: The counts of the day, or None if nothing was stored.
        counts_of_other_days: The counts of other days, in any order. Only earlier days are used.
        has_run_failed: True if the run that should have stored the counts failed.
        has_wrong_counts: True if the day's tables do not have as many rows as were counted.
    """
    if nightly_counts is None:
        return NightlyJudgement(Verdict.FAILED if has_run_failed else Verdict.MISSING)
    usual_record_count = find_usual_record_count(nightly_counts.day, counts_of_other_days)
    return NightlyJudgement(
        _choose_verdict(nightly_counts, usual_record_count, has_wrong_counts=has_wrong_counts),
        usual_record_count,
    )


def _choose_verdict(
    nightly_counts: NightlyCounts, usual_record_count: float | None, *, has_wrong_counts: bool
) -> Verdict:
    """Return the verdict about counts that were stored: rules 2 to 6."""
    if has_wrong_counts:
        return Verdict.TORN
    if not nightly_counts.was_day_over:
        return Verdict.PARTIAL
    if nightly_counts.has_read_nothing:
        return Verdict.NOTHING_READ
    if (
        usual_record_count is not None
        and usual_record_count >= MINIMUM_USUAL_RECORDS
        and nightly_counts.records * FAR_FEWER_DIVISOR < usual_record_count
    ):
        return Verdict.FAR_FEWER
    return Verdict.READ


def find_usual_record_count(
    day: date, counts_of_other_days: Iterable[NightlyCounts]
) -> float | None:
    """Return the usual number of records of a day, or None if too few days are known (rule 5)."""
    record_count_by_day: dict[date, int] = {}
    for nightly_counts in counts_of_other_days:
        days_ago = (day - nightly_counts.day).days
        if 0 < days_ago <= COMPARED_DAYS and nightly_counts.records and nightly_counts.was_day_over:
            record_count_by_day[nightly_counts.day] = nightly_counts.records
    if len(record_count_by_day) < MINIMUM_COMPARED_DAYS:
        return None
    median_record_count = median(record_count_by_day.values())
    same_weekday_record_counts = [
        record_count_by_day[earlier_day]
        for earlier_day in (day - _ONE_WEEK, day - 2 * _ONE_WEEK)
        if earlier_day in record_count_by_day
    ]
    if not same_weekday_record_counts:
        return median_record_count
    return min(median_record_count, max(same_weekday_record_counts))


def is_week_over(last_day: date, made_at: datetime, *, may_last_run_still_come: bool) -> bool:
    """Return True if a summary that is made at `made_at` covers the whole week.

    Args:
        last_day: The week's last day.
        made_at: The time at which the summary is made.
        may_last_run_still_come: True if the week's last nightly run is missing and may still come.
            The week then counts as over only LAST_NIGHTLY_RUN_DELAY after its end.
    """
    week_end = datetime.combine(last_day + _ONE_DAY, time(), UTC)
    if may_last_run_still_come:
        week_end += LAST_NIGHTLY_RUN_DELAY
    return made_at >= week_end


def is_too_much_unreadable(unreadable_bytes: int, all_bytes: int) -> bool:
    """Return True if so much could not be read that the job must end with exit code 3.

    Args:
        unreadable_bytes: The bytes that could not be read.
        all_bytes: All bytes, including the unreadable ones.
    """
    return unreadable_bytes > MAXIMUM_UNREADABLE_SHARE * all_bytes


def is_possible_trail_year(year: int) -> bool:
    """Return True if a trail can have records of this year, and days around it can be computed."""
    return _YEAR_BEFORE_SQS < year < _YEAR_AFTER_POSSIBLE_DAYS


def name_of_week(day: date) -> str:
    """Return the name of a day's ISO week, such as `2026-W46`."""
    year, week_number, _ = day.isocalendar()
    return f"{year:04}-W{week_number:02}"


def parse_day(text: str) -> date | None:
    """Read a day from a text such as `2026-11-16`.

    Return None for any other text, and for a year that `is_possible_trail_year` excludes.
    """
    with suppress(ValueError):
        day = date.fromisoformat(text)
        if str(day) == text and is_possible_trail_year(day.year):
            return day
    return None


def make_member_prefix(account: str, region: str) -> str:
    """Return the S3 prefix of the objects that a stack shares with its organization."""
    return f"account={account}/region={region}"


def make_shared_table_prefix(account: str, region: str, table: str, week: str) -> str:
    """Return the S3 prefix of one week of a table that a stack shares with its organization.

    One listing of this prefix finds all days of the week.
    """
    return f"{make_member_prefix(account, region)}/{table}/week={week}"


def make_nightly_counts_key(day: date) -> str:
    """Return the S3 key of a day's `nightly.json`, below the root of the tables."""
    return f"{NIGHTLY_FOLDER}/dt={day}/nightly.json"
