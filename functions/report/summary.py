"""What a week's summary.json says, as frozen values under the document's own names."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from functions.report.summary_parts import (
    PARTIAL,
    Deed,
    Night,
    QueueDays,
    ReachedAPerson,
    Swept,
    TimesToHeal,
)

SCHEMA = 1
UNRESOLVED = "unresolved"
HEALED = "healed"
APPROVED = "approved"
# Healed by itself, or after a person approved it: `approved` says that it was verified.
MENDED = frozenset({HEALED, APPROVED})
NOT_SEEN = "not_seen"
COUNT_ONLY = "count_only"
# The label of the codes that a summary has no row of their own for.
FURTHER = "unlabelled"
WHOLE_WEEK_NIGHTS = 7

Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Totals:
    """The week's sums: exact, whatever the list of cases leaves out.

    The median is of the `healed_with_time` incidents whose healing was timed.
    """

    incidents: int
    failed_calls: int
    queues: int
    healed: int
    paged: int
    median_seconds_to_heal: float | None = None
    healed_with_time: int = 0


@dataclass(frozen=True)
class DayCount:
    """One day and label; a day without incidents has one with no label."""

    day: date
    label: str | None
    incidents: int
    failed_calls: int


@dataclass(frozen=True)
class EarlierWeek:
    """The sums of a week before this one, of so many of its seven nights."""

    week: str
    incidents: int
    failed_calls: int
    healed: int
    paged: int
    median_seconds_to_heal: float | None = None
    healed_with_time: int = 0
    nights: int = WHOLE_WEEK_NIGHTS

    @property
    def is_whole(self) -> bool:
        return self.nights >= WHOLE_WEEK_NIGHTS


@dataclass(frozen=True)
class Incident:
    """One incident of the list; `case_id` is empty where there was no case.

    `why` says why there is none, `reason` what the case said last.
    """

    incident_id: str
    queue_arn: str
    label: str
    error_codes: tuple[str, ...]
    first_failure: datetime
    last_failure: datetime
    failed_calls: int
    principals: tuple[str, ...]
    outcome: str
    why: str
    case_id: str
    seconds_to_heal: float | None
    paged: bool
    reason: str = ""

    @property
    def is_mended(self) -> bool:
        return self.outcome in MENDED

    @property
    def is_count_only(self) -> bool:
        """A mistake of the caller's: nothing in the queue could have mended it."""
        return self.why == COUNT_ONLY


@dataclass(frozen=True)
class UnreadableFile:
    """A trail file that could not be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class NotSeen:
    """What was read, and what was not; `began` is the first day of which anything exists."""

    nights_missing: tuple[date, ...]
    files_read: int
    files_unreadable: int
    bytes_read: int
    bytes_unreadable: int
    records_read: int
    unlabelled: Counts
    unreadable_files: tuple[UnreadableFile, ...]
    nights: tuple[Night, ...] = ()
    case_files_unreadable: int = 0
    week_is_over: bool = True
    began: date | None = None
    drill_incidents: int = 0
    unlabelled_codes_left_out: int = 0
    unlabelled_calls_left_out: int = 0


@dataclass(frozen=True)
class Summary:
    """One week; `cases` are its worst incidents, worst first.

    Where `cases_were_read` is false, nobody looked at the case bucket: what only it can tell,
    `reached_a_person`, `swept` and `do_this_week`, is empty and not known.
    """

    week: str
    first_day: date
    last_day: date
    made_at: datetime
    accounts: tuple[str, ...]
    regions: tuple[str, ...]
    totals: Totals
    by_outcome: Counts
    by_label: Counts
    per_day: tuple[DayCount, ...]
    previous_weeks: tuple[EarlierWeek, ...]
    cases: tuple[Incident, ...]
    cases_left_out: int
    not_seen: NotSeen
    times_to_heal: tuple[TimesToHeal, ...] = ()
    queue_days: QueueDays = field(default_factory=QueueDays)
    cases_were_read: bool = False
    reached_a_person: ReachedAPerson = field(default_factory=ReachedAPerson)
    swept: Swept = field(default_factory=Swept)
    do_this_week: tuple[Deed, ...] = ()
    do_this_week_left_out: int = 0
    accounts_left_out: int = 0
    regions_left_out: int = 0
    labels_left_out: int = 0

    @property
    def days(self) -> tuple[date, ...]:
        length_days = (self.last_day - self.first_day).days + 1
        return tuple(self.first_day + timedelta(days=each) for each in range(length_days))

    @property
    def days_read(self) -> int:
        return sum(each not in self.not_seen.nights_missing for each in self.days)

    @property
    def is_whole(self) -> bool:
        """Whether it can be compared with other weeks."""
        in_part = any(each.verdict == PARTIAL for each in self.not_seen.nights)
        return self.not_seen.week_is_over and self.every_day_was_read and not in_part

    @property
    def every_day_was_read(self) -> bool:
        return self.days_read == len(self.days)

    @property
    def mended(self) -> int:
        return self.totals.healed + self.approved

    @property
    def approved(self) -> int:
        return dict(self.by_outcome).get(APPROVED, 0)

    @property
    def nothing_was_read(self) -> bool:
        return not self.totals.incidents and not (self.not_seen.files_read and self.days_read)
