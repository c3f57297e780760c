"""The parts of a week's summary.json, as frozen values under the document's own names.

An older document lacks what has a default; what is not named here is passed over.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

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
MOST_OPEN, MOST_EARNED, MOST_PREVIOUS_WEEKS = 50, 10, 7
MOST_MEMBERS, MOST_NEEDY, MOST_STANDING = 200, 10, 50
MOST_POINTS, MOST_SPANS, MOST_SECONDS = 12, 7, 200
# What found an incident.
FAILED_CALLS, SCAN = "failed_calls", "scan"
# Spark's long.
LARGEST = 2**63 - 1

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Number = Annotated[float, Meta(ge=0, le=LARGEST)]
Time = Annotated[datetime, Meta(tz=True)]
Counts = Annotated[dict[str, Whole], Meta(max_length=MOST_NAMES)]
Names = Annotated[tuple[str, ...], Meta(max_length=MOST_NAMES)]


def monday(week: str) -> date:
    """The first day of `2026-W46`; raise ValueError where the calendar has no such week."""
    with suppress(ValueError):
        found = datetime.strptime(f"{week}-1", "%G-W%V-%u").replace(tzinfo=UTC)
        if f"{found:%G-W%V}" == week:
            return found.date()
    raise ValueError("`week` must be a week such as 2026-W46")


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

    The median is of the `healed_with_time` incidents whose healing was timed. `urgent` are
    incidents that paged; of the `urgent_notifications`, `out_of_hours` were sent at night or at
    the weekend.
    """

    incidents: Whole
    failed_calls: Whole
    healed: Whole
    notified: Whole
    median_seconds_to_heal: Number | None = None
    healed_with_time: Whole = 0
    urgent: Whole = 0
    urgent_notifications: Whole = 0
    out_of_hours: Whole = 0


class Totals(Sums, frozen=True, kw_only=True):
    """The sums of this week."""

    queues: Whole


class EarlierWeek(Sums, frozen=True, kw_only=True):
    """The sums of a week before this one, of so many of its seven nightly runs."""

    week: str
    nightly_runs: Whole = DAYS

    def __post_init__(self) -> None:
        super().__post_init__()
        monday(self.week)

    @property
    def is_whole(self) -> bool:
        return self.nightly_runs >= DAYS


class DayCount(Read, frozen=True):
    """One day and symptom; a day without incidents has one with no symptom."""

    symptom: str | None
    incidents: Whole
    failed_calls: Whole
    day: date = field(name="date")


class Moment(Read, frozen=True):
    """A point of a case's time line: a state, or what was seen before it; `says` its numbers."""

    at: Time
    state: str
    says: str = ""


class Span(Read, frozen=True):
    """How long consumers need by what says so, or the visibility timeout that they have."""

    what: str
    seconds: Number


class OfQueue(Read, frozen=True):
    """What each row about one symptom of one queue says of itself."""

    queue_arn: str
    symptom: str


class OfChange(OfQueue, frozen=True):
    """A row about one attribute: what it was and is to be, and by which template."""

    attribute: str
    before: str
    after: str
    owner: str


class Pictured(OfQueue, frozen=True, kw_only=True):
    """A case's code, and what its pictures are drawn of; empty where it is not known."""

    code: str = ""
    timeline: Annotated[tuple[Moment, ...], Meta(max_length=MOST_POINTS)] = ()
    visibility: Annotated[tuple[Span, ...], Meta(max_length=MOST_SPANS)] = ()


class Incident(Pictured, frozen=True):
    """One incident of the list; `case_id` is None where there was no case.

    `why` says why there is none, `reason` what the case said last.
    """

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
    found_by: str = FAILED_CALLS
    urgent: bool = False

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
    own_incidents: Whole = 0
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


class NotifiedCase(OfQueue, frozen=True):
    """A case that paged somebody this week; `is_scanned` where no failed call opened it."""

    case_id: str
    state: str
    opened_at: Time
    notified_at: Time
    pages: Whole
    reason: str
    ended_at: Time | None
    is_scanned: bool = field(name="scanned")
    code: str = ""


class ReachedAPerson(Read, frozen=True):
    """The cases that paged somebody this week, the earliest page first."""

    cases: Annotated[tuple[NotifiedCase, ...], Meta(max_length=MOST_NOTIFIED)]
    cases_left_out: Whole
    total: Whole


class FoundBy(Read, frozen=True):
    """How many incidents failed calls showed, and how many a scan found."""

    failed_calls: Whole = 0
    scan: Whole = 0


class NextStep(Read, frozen=True):
    """What a person does next about a case; any of it may be empty."""

    sentence: str = ""
    command: str = ""
    runbook: str = ""


class OpenCase(Pictured, frozen=True):
    """A case that waits for a person; `since` is when it came into its state.

    `backlog` and `oldest_age_seconds` are the queue's as the last scan measured them, None where
    none did.
    """

    case_id: str
    state: str
    opened_at: Time
    since: Time
    urgent: bool = False
    reason: str = ""
    next_step: NextStep = NextStep()
    backlog: Whole | None = None
    oldest_age_seconds: Whole | None = None


class Impact(Read, frozen=True):
    """What this week's incidents did to messages; each None where no case knows it."""

    delayed: Whole | None = None
    handled_twice: Whole | None = None
    dead: Whole | None = None
    lost: Whole | None = None


class Earned(OfQueue, frozen=True):
    """A queue whose last proposals for a symptom were `asked` and all `approved` as they were."""

    approved: Whole
    asked: Whole
    kind: str = "consider_heal"


class Comparison(Read, frozen=True):
    """The incidents of a symptom that Mendq `fixed`, and those that it left `untouched`.

    Of these, `recovered` failed no more; medians are None of none.
    """

    symptom: str
    fixed: Whole
    fixed_median_seconds: Number | None
    untouched: Whole
    recovered: Whole
    recovered_median_seconds: Number | None


class Member(Read, frozen=True):
    """A stack of an organization: what it told of the week, or whether it did not."""

    account: str
    region: str
    alias: str
    state: str
    last_day: date | None
    incidents: Whole
    failed_calls: Whole
    healed: Whole
    urgent: Whole
    waiting: Whole
    rows_left_out: Whole
    files_unreadable: Whole


class NeedyQueue(OfQueue, frozen=True):
    """A queue of a member's that waits for a person, in so many incidents of the week."""

    account: str
    region: str
    outcome: str
    incidents: Whole
    failed_calls: Whole
    urgent: bool


class Organization(Read, frozen=True):
    """The week of all accounts; `members` are those that need most first."""

    totals: Annotated[dict[str, Whole], Meta(max_length=30)]
    members: Annotated[tuple[Member, ...], Meta(max_length=MOST_MEMBERS)]
    members_left_out: Whole
    queues: Annotated[tuple[NeedyQueue, ...], Meta(max_length=MOST_NEEDY)]
    unreadable_files: Annotated[tuple[UnreadableFile, ...], Meta(max_length=MOST_FILES)]


class Standing(OfChange, frozen=True):
    """A value that Mendq set and that stands; `set_at` is empty where its writing was not read."""

    case_id: str
    set_at: str = ""


class Recommendation(OfChange, frozen=True):
    """Something for people to do; texts are empty where there is nothing to say.

    `incidents` and `failed_calls` are what it would have prevented this week, on `queues` queues.
    `reason` is what Mendq said of the case, `next_step` what it says that a person does, by the
    `command`.
    """

    kind: str
    why: str
    incidents: Whole
    failed_calls: Whole
    queues: Whole
    reason: str = ""
    next_step: str = ""
    command: str = ""
    case_id: str = ""
