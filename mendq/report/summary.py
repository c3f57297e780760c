"""What a week's summary.json says, as frozen values under the document's own names.

An older document lacks what has a default; what is not named here is passed over.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

SCHEMA = 1
UNRESOLVED = "unresolved"
HEALED = "healed"
APPROVED = "approved"
# Healed by itself, or after a person approved it: `approved` says that it was verified.
FIXED = frozenset({HEALED, APPROVED})
NOT_SEEN = "not_seen"
COUNT_ONLY, RACE = "count_only", "may_be_a_race"
# The symptom of the codes that a summary has no row of their own for.
FURTHER = "unknown_code"
# The verdict on a nightly run that was written before its day was over.
PARTIAL = "partial"
DAYS = 7
# Symptoms, accounts, regions: far more than a week has, and few enough to be counted and sorted.
MOST_NAMES = 1_000
# What the nightly job lists at most (docs/summary.md), and the page has room for.
MOST_CASES, MOST_NOTIFIED, MOST_QUEUES, MOST_RECOMMENDATIONS, MOST_FILES = 50, 50, 20, 10, 20
MOST_SECONDS = 200
# Spark's long.
LARGEST = 2**63 - 1

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Number = Annotated[float, Meta(ge=0, le=LARGEST)]
Time = Annotated[datetime, Meta(tz=True)]
Counts = Annotated[dict[str, Whole], Meta(max_length=MOST_NAMES)]
Names = Annotated[tuple[str, ...], Meta(max_length=MOST_NAMES)]


class Read(Struct, frozen=True):
    """A part of the document; its times are in UTC."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, datetime):
                try:
                    force_setattr(self, name, value.astimezone(UTC))
                except OverflowError:
                    raise ValueError(f"`{name}` is no time of this calendar") from None


class Sums(Read, frozen=True):
    """A week's sums: exact, whatever the list of cases leaves out.

    The median is of the `healed_with_time` incidents whose healing was timed.
    """

    incidents: Whole
    failed_calls: Whole
    healed: Whole
    notified: Whole
    median_seconds_to_heal: Number | None = None
    healed_with_time: Whole = 0


class Totals(Sums, frozen=True, kw_only=True):
    """The sums of this week."""

    queues: Whole


class EarlierWeek(Sums, frozen=True, kw_only=True):
    """The sums of a week before this one, of so many of its seven nightly runs."""

    nightly_runs: Whole = DAYS

    @property
    def is_whole(self) -> bool:
        return self.nightly_runs >= DAYS


class DayCount(Read, frozen=True):
    """One day and symptom; a day without incidents has one with no symptom."""

    symptom: str | None
    incidents: Whole
    failed_calls: Whole
    day: date = field(name="date")


class Incident(Read, frozen=True):
    """One incident of the list; `case_id` is None where there was no case.

    `why` says why there is none, `reason` what the case said last.
    """

    queue_arn: str
    symptom: str
    error_codes: tuple[str, ...]
    first_failure: Time
    last_failure: Time
    failed_calls: Whole
    principals: tuple[str, ...]
    outcome: str
    why: str | None
    case_id: str | None
    seconds_to_heal: Number | None
    notified: bool
    reason: str = ""

    @property
    def is_fixed(self) -> bool:
        return self.outcome in FIXED


class UnreadableFile(Read, frozen=True):
    """A trail file that could not be read, and why."""

    file: str
    reason: str


class Nightly(Read, frozen=True):
    """What one nightly run read; `usual_records` is None where too few came before."""

    day: date
    records: Whole
    usual_records: Number | None
    verdict: str


class NotSeen(Read, frozen=True):
    """What was read, and what was not; `began` is the first day of which anything exists."""

    nightly_runs_missing: Annotated[tuple[date, ...], Meta(max_length=DAYS)]
    files_read: Whole
    files_unreadable: Whole
    bytes_read: Whole
    bytes_unreadable: Whole
    records_read: Whole
    unknown_code: Counts
    unreadable_files: Annotated[tuple[UnreadableFile, ...], Meta(max_length=MOST_FILES)]
    nightly_runs: Annotated[tuple[Nightly, ...], Meta(max_length=DAYS)] = ()
    case_files_unreadable: Whole = 0
    week_is_over: bool = True
    began: date | None = None
    drill_incidents: Whole = 0
    unknown_codes_left_out: Whole = 0
    unknown_calls_left_out: Whole = 0


class TimesToHeal(Read, frozen=True):
    """How long the healed incidents of a symptom took; the 90th percentile is None of few.

    `seconds` are sorted: all of them, or, of many, some that are evenly spaced by rank.
    """

    symptom: str
    incidents: Whole
    median_seconds: Number | None
    p90_seconds: Number | None
    seconds: Annotated[tuple[Number, ...], Meta(max_length=MOST_SECONDS)]


class QueueWeek(Read, frozen=True):
    """One queue's incidents, day by day from Monday; `unresolved` is one as well."""

    queue_arn: str
    incidents: Annotated[tuple[Whole, ...], Meta(min_length=DAYS, max_length=DAYS)]
    failed_calls: Whole
    not_healed: Whole


class QueueDays(Read, frozen=True):
    """The queues with most incidents, most first, and what the others have together."""

    queues: Annotated[tuple[QueueWeek, ...], Meta(max_length=MOST_QUEUES)]
    queues_left_out: Whole
    incidents_left_out: Whole


class NotifiedCase(Read, frozen=True):
    """A case that paged somebody this week; `is_scanned` where no failed call opened it."""

    case_id: str
    queue_arn: str
    symptom: str
    state: str
    opened_at: Time
    notified_at: Time
    pages: Whole
    reason: str
    ended_at: Time | None
    is_scanned: bool = field(name="scanned")


class ReachedAPerson(Read, frozen=True):
    """The cases that paged somebody this week, the earliest page first."""

    cases: Annotated[tuple[NotifiedCase, ...], Meta(max_length=MOST_NOTIFIED)]
    cases_left_out: Whole
    total: Whole


class Scanned(Read, frozen=True):
    """The cases of this week that a scan opened: no call failed, so they are no incidents."""

    cases: Whole
    by_symptom: Counts
    healed: Whole
    notified: Whole


class Recommendation(Read, frozen=True):
    """Something for people to do; texts are empty where there is nothing to say.

    `incidents` and `failed_calls` are what it would have prevented this week, on `queues` queues.
    `reason` is what Mendq said of the case.
    """

    kind: str
    queue_arn: str
    symptom: str
    attribute: str
    before: str
    after: str
    owner: str
    why: str
    incidents: Whole
    failed_calls: Whole
    queues: Whole
    reason: str = ""
    case_id: str = ""


_NOBODY_LOOKED = ReachedAPerson((), 0, 0)


class Week(Read, frozen=True, kw_only=True):
    """Which week, when it was summed up, where its calls came from, and the weeks before it."""

    week: str
    made_at: Time
    first_day: date = field(name="from")
    last_day: date = field(name="to")
    accounts: Names
    regions: Names
    accounts_left_out: Whole = 0
    regions_left_out: Whole = 0
    previous_weeks: Annotated[tuple[EarlierWeek, ...], Meta(max_length=4)]


class Summary(Week, frozen=True, kw_only=True):
    """One week; `cases` are its worst incidents, worst first.

    `habits` says, by symptom, what a queue keeps doing that has it often.
    """

    totals: Totals
    by_outcome: Annotated[dict[str, Whole], Meta(max_length=30)]
    by_symptom: Counts
    per_day: Annotated[tuple[DayCount, ...], Meta(max_length=DAYS * MOST_NAMES)]
    cases: Annotated[tuple[Incident, ...], Meta(max_length=MOST_CASES)]
    cases_left_out: Whole
    not_seen: NotSeen
    times_to_heal: Annotated[tuple[TimesToHeal, ...], Meta(max_length=MOST_NAMES)] = ()
    queue_days: QueueDays = QueueDays((), 0, 0)
    reached_a_person: ReachedAPerson = _NOBODY_LOOKED
    scanned: Scanned = Scanned(0, {}, 0, 0)
    do_this_week: Annotated[tuple[Recommendation, ...], Meta(max_length=MOST_RECOMMENDATIONS)] = ()
    do_this_week_left_out: Whole = 0
    symptoms_left_out: Whole = 0
    habits: Annotated[dict[str, str], Meta(max_length=MOST_NAMES)] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_day - self.first_day != timedelta(days=DAYS - 1):
            raise ValueError("`to` must be six days after `from`")
        if self.first_day != monday(self.week):
            raise ValueError(f"`from` must be the Monday of {self.week}")
        said = {each.day for each in self.per_day} | {
            each.day for each in self.not_seen.nightly_runs
        }
        if strays := said.union(self.not_seen.nightly_runs_missing).difference(self.days):
            raise ValueError(f"{min(strays)} must be a day from `from` to `to`")

    @property
    def cases_were_read(self) -> bool:
        """Whether anybody looked at the case bucket.

        Where not, `reached_a_person`, `scanned` and `do_this_week` are empty and not known.
        """
        return self.reached_a_person is not _NOBODY_LOOKED

    @property
    def days(self) -> tuple[date, ...]:
        return tuple(self.first_day + timedelta(days=each) for each in range(DAYS))

    @property
    def days_read(self) -> int:
        return sum(each not in self.not_seen.nightly_runs_missing for each in self.days)

    @property
    def is_whole(self) -> bool:
        """Whether it can be compared with other weeks."""
        in_part = any(each.verdict == PARTIAL for each in self.not_seen.nightly_runs)
        return self.not_seen.week_is_over and self.every_day_was_read and not in_part

    @property
    def every_day_was_read(self) -> bool:
        return self.days_read == len(self.days)

    @property
    def fixed(self) -> int:
        return self.totals.healed + self.approved

    @property
    def approved(self) -> int:
        return self.by_outcome.get(APPROVED, 0)

    @property
    def nothing_was_read(self) -> bool:
        return not self.totals.incidents and not (self.not_seen.files_read and self.days_read)


def monday(week: str) -> date:
    """The first day of `2026-W46`; raise ValueError where the calendar has no such week."""
    with suppress(ValueError):
        found = datetime.strptime(f"{week}-1", "%G-W%V-%u").replace(tzinfo=UTC)
        if f"{found:%G-W%V}" == week:
            return found.date()
    raise ValueError("`week` must be a week such as 2026-W46")
