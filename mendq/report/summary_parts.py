"""The structure of a week's `summary.json`: one class for each kind of row.

The fields have the names of the document, which docs/summary.md explains. A field with a default
may be missing in a document of an older release. Other fields of a document are ignored.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

UNRESOLVED_QUEUE = "unresolved"
HEALED_OUTCOME = "healed"
APPROVED_OUTCOME = "approved"
# Outcomes of fixed and verified incidents: fixed automatically, or after a person approved it.
FIXED_OUTCOMES = frozenset({HEALED_OUTCOME, APPROVED_OUTCOME})
NOT_SEEN_OUTCOME = "not_seen"
COUNT_ONLY_REASON = "count_only"
POSSIBLE_RACE_REASON = "may_be_a_race"
# This symptom stands for all unknown error codes that have no row of their own in the summary.
OTHER_CODES_SYMPTOM = "unknown_code"
# Verdict on a nightly run that ran before its day was over.
READ_BEFORE_DAY_END_VERDICT = "partial"
DAYS_PER_WEEK = 7
# Limit for symptoms, accounts and regions: far more than a week has, and still quick to sort.
MAXIMUM_NAMES_IN_LIST = 1_000
# Lengths of the nightly job's lists, at most (docs/summary.md). The page has room for them.
MAXIMUM_INCIDENTS = 50
MAXIMUM_NOTIFIED_CASES = 50
MAXIMUM_QUEUES = 20
MAXIMUM_RECOMMENDATIONS = 10
MAXIMUM_UNREADABLE_FILES = 20
MAXIMUM_OPEN_CASES = 50
MAXIMUM_HEAL_CANDIDATES = 10
MAXIMUM_PREVIOUS_WEEKS = 7
MAXIMUM_MEMBER_ACCOUNTS = 200
MAXIMUM_QUEUES_NEEDING_A_PERSON = 10
MAXIMUM_STANDING_VALUES = 50
MAXIMUM_TIMELINE_POINTS = 12
MAXIMUM_TIME_SPANS = 7
MAXIMUM_TIMES_TO_HEAL = 200
# Values of `found_by`: what found an incident.
FOUND_BY_FAILED_CALLS = "failed_calls"
FOUND_BY_SCAN = "scan"
# The largest value of Spark's type long.
LARGEST_SPARK_LONG = 2**63 - 1

WholeNumber = Annotated[int, Meta(ge=0, le=LARGEST_SPARK_LONG)]
Number = Annotated[float, Meta(ge=0, le=LARGEST_SPARK_LONG)]
AwareDatetime = Annotated[datetime, Meta(tz=True)]
CountByName = Annotated[dict[str, WholeNumber], Meta(max_length=MAXIMUM_NAMES_IN_LIST)]
Names = Annotated[tuple[str, ...], Meta(max_length=MAXIMUM_NAMES_IN_LIST)]


def find_monday(week: str) -> date:
    """Return the first day of a week such as `2026-W46`.

    Raises ValueError if the text has another form, or if the calendar has no such week.
    """
    with suppress(ValueError):
        first_day = datetime.strptime(f"{week}-1", "%G-W%V-%u").replace(tzinfo=UTC)
        if f"{first_day:%G-W%V}" == week:
            return first_day.date()
    raise ValueError("`week` must be a week such as 2026-W46")


class SummaryPart(Struct, frozen=True):
    """Base class of all parts of the summary. It converts all times to UTC.

    The constructor raises ValueError if a time cannot be converted.
    """

    def __post_init__(self) -> None:
        for field_name in self.__struct_fields__:
            value = getattr(self, field_name)
            if isinstance(value, datetime):
                try:
                    force_setattr(self, field_name, value.astimezone(UTC))
                except OverflowError:
                    raise ValueError(f"`{field_name}` is no time of this calendar") from None


class WeekSums(SummaryPart, frozen=True):
    """The sums of one week, over all incidents. The list of incidents may leave some out."""

    incidents: WholeNumber
    failed_calls: WholeNumber
    healed: WholeNumber
    # Incidents about which people were notified.
    notified: WholeNumber
    # Median time of the healed incidents whose time is known; None if there are none.
    median_seconds_to_heal: Number | None = None
    # Healed incidents whose time is known.
    healed_with_time: WholeNumber = 0
    # Incidents that paged people.
    urgent: WholeNumber = 0
    urgent_notifications: WholeNumber = 0
    # Urgent notifications that were sent at night or at the weekend.
    out_of_hours: WholeNumber = 0


class Totals(WeekSums, frozen=True, kw_only=True):
    """The sums of the summary's own week."""

    queues: WholeNumber


class EarlierWeek(WeekSums, frozen=True, kw_only=True):
    """The sums of one earlier week. `nightly_runs` is the number of its days that were read."""

    week: str
    nightly_runs: WholeNumber = DAYS_PER_WEEK

    def __post_init__(self) -> None:
        super().__post_init__()
        find_monday(self.week)

    @property
    def is_whole(self) -> bool:
        """True if all seven days of the week were read."""
        return self.nightly_runs >= DAYS_PER_WEEK


class DayCount(SummaryPart, frozen=True):
    """The number of incidents of one symptom on one day.

    A day without incidents has one row, in which `symptom` is None.
    """

    symptom: str | None
    incidents: WholeNumber
    failed_calls: WholeNumber
    day: date = field(name="date")


class SummaryTimelinePoint(SummaryPart, frozen=True):
    """One point of a case's timeline: a new state of the case, or an event before it was opened."""

    at: AwareDatetime
    state: str
    # Numbers that belong to the point, in words.
    says: str = ""


class NamedTimeSpan(SummaryPart, frozen=True):
    """A duration with its name: the time that consumers need, or a visibility timeout."""

    # The source of the time, such as "timeout before".
    what: str
    seconds: Number


class QueueAndSymptom(SummaryPart, frozen=True):
    """Base class of the rows that are about one symptom on one queue."""

    queue_arn: str
    symptom: str


class AttributeChange(QueueAndSymptom, frozen=True):
    """Base class of the rows that are about a change of one queue attribute.

    Any text may be empty.
    """

    attribute: str
    before: str
    after: str
    # The CloudFormation stack that deploys the queue, or the caller that must be fixed.
    owner: str


class CaseWithPictures(QueueAndSymptom, frozen=True, kw_only=True):
    """Base class of the rows about a case: the case's code, and the data of its pictures.

    A field is empty if it is not known, or if an incident has no case.
    """

    code: str = ""
    timeline: Annotated[
        tuple[SummaryTimelinePoint, ...], Meta(max_length=MAXIMUM_TIMELINE_POINTS)
    ] = ()
    visibility: Annotated[tuple[NamedTimeSpan, ...], Meta(max_length=MAXIMUM_TIME_SPANS)] = ()


class Incident(CaseWithPictures, frozen=True):
    """One incident: a burst of failed calls, or a finding of a scan, on one queue."""

    error_codes: tuple[str, ...]
    first_failure: AwareDatetime
    last_failure: AwareDatetime
    failed_calls: WholeNumber
    principals: tuple[str, ...]
    outcome: str
    # Why there is no case; None if there is one.
    why: str | None
    case_id: str | None
    # None if the incident was not healed, or its time is not known.
    seconds_to_heal: Number | None
    notified: bool
    # The last reason that the case gave.
    reason: str = ""
    found_by: str = FOUND_BY_FAILED_CALLS
    urgent: bool = False

    @property
    def is_fixed(self) -> bool:
        """True if Mendq fixed it, automatically or after an approval."""
        return self.outcome in FIXED_OUTCOMES


class UnreadableFile(SummaryPart, frozen=True):
    """A file that the nightly job could not read, with the reason."""

    file: str
    reason: str


class NightlyCoverage(SummaryPart, frozen=True):
    """The number of records that one nightly run read, and the verdict on the run."""

    day: date
    records: WholeNumber
    # None if there were too few runs before.
    usual_records: Number | None
    verdict: str


class ReportCoverage(SummaryPart, frozen=True):
    """Counts of the files, records and days that the nightly job read or could not read."""

    nightly_runs_missing: Annotated[tuple[date, ...], Meta(max_length=DAYS_PER_WEEK)]
    files_read: WholeNumber
    files_unreadable: WholeNumber
    bytes_read: WholeNumber
    bytes_unreadable: WholeNumber
    records_read: WholeNumber
    unknown_code: CountByName
    unreadable_files: Annotated[
        tuple[UnreadableFile, ...], Meta(max_length=MAXIMUM_UNREADABLE_FILES)
    ]
    nightly_runs: Annotated[tuple[NightlyCoverage, ...], Meta(max_length=DAYS_PER_WEEK)] = ()
    case_files_unreadable: WholeNumber = 0
    week_is_over: bool = True
    # The first day for which there are any data.
    began: date | None = None
    # Incidents of drills and of Mendq's own calls, which all sums leave out.
    own_incidents: WholeNumber = 0
    unknown_codes_left_out: WholeNumber = 0
    unknown_calls_left_out: WholeNumber = 0


class TimesToHeal(SummaryPart, frozen=True):
    """The times it took to heal the incidents of one symptom, in seconds."""

    symptom: str
    incidents: WholeNumber
    median_seconds: Number | None
    # 90th percentile; None if the incidents are few.
    p90_seconds: Number | None
    # All times, sorted; if they are many, a sample that is evenly spaced by rank.
    seconds: Annotated[tuple[Number, ...], Meta(max_length=MAXIMUM_TIMES_TO_HEAL)]


class QueueWeek(SummaryPart, frozen=True):
    """The number of a queue's incidents on each day of the week, from Monday.

    Incidents whose queue is not known are counted under the name `unresolved`.
    """

    queue_arn: str
    incidents: Annotated[
        tuple[WholeNumber, ...], Meta(min_length=DAYS_PER_WEEK, max_length=DAYS_PER_WEEK)
    ]
    failed_calls: WholeNumber
    not_healed: WholeNumber


class QueueDays(SummaryPart, frozen=True):
    """The queues with most incidents, the one with most first, and the sums of all other queues."""

    queues: Annotated[tuple[QueueWeek, ...], Meta(max_length=MAXIMUM_QUEUES)]
    queues_left_out: WholeNumber
    incidents_left_out: WholeNumber


class NotifiedCase(QueueAndSymptom, frozen=True):
    """A case about which people were notified this week."""

    case_id: str
    state: str
    opened_at: AwareDatetime
    # The first notification in this week.
    notified_at: AwareDatetime
    # Notifications about the case in this week.
    pages: WholeNumber
    reason: str
    ended_at: AwareDatetime | None
    # True if a scan found it, without a failed call.
    is_scanned: bool = field(name="scanned")
    code: str = ""


class NotifiedCases(SummaryPart, frozen=True):
    """The cases about which people were notified this week, sorted by their first notification.

    `cases` has at most MAXIMUM_NOTIFIED_CASES of all `total` cases.
    """

    cases: Annotated[tuple[NotifiedCase, ...], Meta(max_length=MAXIMUM_NOTIFIED_CASES)]
    cases_left_out: WholeNumber
    total: WholeNumber


class IncidentsByFinder(SummaryPart, frozen=True):
    """Number of incidents that failed calls showed, and number that a scan found."""

    failed_calls: WholeNumber = 0
    scan: WholeNumber = 0


class NextStep(SummaryPart, frozen=True):
    """What a person should do next about a case. Any of the texts may be empty."""

    sentence: str = ""
    command: str = ""
    runbook: str = ""


class OpenCaseSummary(CaseWithPictures, frozen=True):
    """A case that waits for a person."""

    case_id: str
    state: str
    opened_at: AwareDatetime
    # When the case came into its state.
    since: AwareDatetime
    urgent: bool = False
    reason: str = ""
    next_step: NextStep = NextStep()
    # Number of waiting messages and age of the oldest, by the last scan. None if it measured none.
    backlog: WholeNumber | None = None
    oldest_age_seconds: WholeNumber | None = None


class MessageImpact(SummaryPart, frozen=True):
    """Number of messages that this week's incidents affected, by kind of harm.

    None if no case knows the number.
    """

    delayed: WholeNumber | None = None
    handled_twice: WholeNumber | None = None
    dead: WholeNumber | None = None
    lost: WholeNumber | None = None


class HealCandidate(QueueAndSymptom, frozen=True):
    """A queue and symptom for which the report suggests mode heal.

    In the last 13 weeks people approved each proposal that they answered, and no change was undone.
    """

    # Approved proposals, of `asked` proposals that people answered.
    approved: WholeNumber
    asked: WholeNumber
    kind: str = "consider_heal"


class SymptomComparison(SummaryPart, frozen=True):
    """How incidents of one symptom ended: those that Mendq fixed, and those it did not touch."""

    symptom: str
    fixed: WholeNumber
    # None if there is no such incident, as `recovered_median_seconds`.
    fixed_median_seconds: Number | None
    # Only incidents after which a whole day was read.
    untouched: WholeNumber
    # Untouched incidents after which calls failed no more.
    recovered: WholeNumber
    recovered_median_seconds: Number | None


class MemberAccount(SummaryPart, frozen=True):
    """The week of one Mendq stack of an organization, as the stack's account reported it."""

    account: str
    region: str
    alias: str
    # "reported", "silent" or "late".
    state: str
    # The last day that was reported.
    last_day: date | None
    incidents: WholeNumber
    failed_calls: WholeNumber
    healed: WholeNumber
    urgent: WholeNumber
    waiting: WholeNumber
    rows_left_out: WholeNumber
    files_unreadable: WholeNumber


class QueueNeedingPerson(QueueAndSymptom, frozen=True):
    """A queue of the organization with incidents that wait for a person.

    The numbers are those of these incidents. `symptom` and `outcome` are the most pressing ones.
    """

    account: str
    region: str
    outcome: str
    incidents: WholeNumber
    failed_calls: WholeNumber
    urgent: bool


class Organization(SummaryPart, frozen=True):
    """The week of all accounts of an organization.

    `members` and `queues` begin with those that most need a person.
    """

    totals: Annotated[dict[str, WholeNumber], Meta(max_length=30)]
    members: Annotated[tuple[MemberAccount, ...], Meta(max_length=MAXIMUM_MEMBER_ACCOUNTS)]
    members_left_out: WholeNumber
    queues: Annotated[
        tuple[QueueNeedingPerson, ...], Meta(max_length=MAXIMUM_QUEUES_NEEDING_A_PERSON)
    ]
    unreadable_files: Annotated[
        tuple[UnreadableFile, ...], Meta(max_length=MAXIMUM_UNREADABLE_FILES)
    ]


class ValueStillSet(AttributeChange, frozen=True):
    """A value that Mendq set in a queue and that is still set."""

    case_id: str
    # When Mendq set it (ISO 8601). Empty if the nightly job did not read that.
    set_at: str = ""


class Recommendation(AttributeChange, frozen=True):
    """One thing that people should do. Any of the texts may be empty."""

    kind: str
    # A state of the case, or the reason why there is no case.
    why: str
    # Incidents and failed calls of this week that it would have prevented, and on how many queues.
    incidents: WholeNumber
    failed_calls: WholeNumber
    queues: WholeNumber
    # The case's last reason, its next step, and the command for it.
    reason: str = ""
    next_step: str = ""
    command: str = ""
    case_id: str = ""
