"""A week's summary.json, version 2: read whole or refused."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from mendq.report.summary_parts import (
    APPROVED,
    DAYS,
    MOST_CASES,
    MOST_EARNED,
    MOST_NAMES,
    MOST_OPEN,
    MOST_PREVIOUS_WEEKS,
    MOST_RECOMMENDATIONS,
    MOST_STANDING,
    PARTIAL,
    Comparison,
    Counts,
    DayCount,
    EarlierWeek,
    Earned,
    FoundBy,
    Impact,
    Incident,
    Names,
    NotSeen,
    OpenCase,
    Organization,
    QueueDays,
    ReachedAPerson,
    Read,
    Recommendation,
    Standing,
    Time,
    TimesToHeal,
    Totals,
    Whole,
    monday,
)

SCHEMA = 2
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
    previous_weeks: Annotated[tuple[EarlierWeek, ...], Meta(max_length=MOST_PREVIOUS_WEEKS)]
    time_zone: str = "UTC"
    organization: Organization | None = None


class OfCases(Week, frozen=True, kw_only=True):
    """What the case bucket tells of a week; `open_now` are the most pressing cases first.

    `had_mendq_in` is the mode of a backtest, which says what would have become of each incident.
    """

    reached_a_person: ReachedAPerson = _NOBODY_LOOKED
    open_now: Annotated[tuple[OpenCase, ...], Meta(max_length=MOST_OPEN)] = ()
    open_now_left_out: Whole = 0
    impact: Impact = Impact()
    earned: Annotated[tuple[Earned, ...], Meta(max_length=MOST_EARNED)] = ()
    do_this_week: Annotated[tuple[Recommendation, ...], Meta(max_length=MOST_RECOMMENDATIONS)] = ()
    do_this_week_left_out: Whole = 0
    standing: Annotated[tuple[Standing, ...], Meta(max_length=MOST_STANDING)] = ()
    standing_left_out: Whole = 0
    had_mendq_in: str = ""

    @property
    def cases_were_read(self) -> bool:
        """Whether anybody looked at the case bucket.

        Where not, all these are empty and not known, and so are `urgent_notifications` and
        `out_of_hours` of this week and of those before.
        """
        return self.reached_a_person is not _NOBODY_LOOKED


class Summary(OfCases, frozen=True, kw_only=True):
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
    by_found_by: FoundBy = FoundBy()
    does_it_help: Annotated[tuple[Comparison, ...], Meta(max_length=MOST_NAMES)] = ()
    symptoms_left_out: Whole = 0
    habits: Annotated[dict[str, str], Meta(max_length=MOST_NAMES)] = field(default_factory=dict)

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
    def days(self) -> tuple[date, ...]:
        return tuple(self.first_day + timedelta(days=each) for each in range(DAYS))

    @property
    def days_read(self) -> int:
        return sum(each not in self.not_seen.nightly_runs_missing for each in self.days)

    @property
    def is_whole(self) -> bool:
        """Whether it can be compared with other weeks."""
        in_part = any(each.verdict == PARTIAL for each in self.not_seen.nightly_runs)
        return self.is_over and self.every_day_was_read and not in_part

    @property
    def is_over(self) -> bool:
        return self.not_seen.week_is_over and not self.to_come

    @property
    def to_come(self) -> tuple[date, ...]:
        """The days without tables whose nightly run could not have been when this was made."""
        last = None if self.not_seen.week_is_over else self.last_day
        missing, made_on = self.not_seen.nightly_runs_missing, self.made_at.date()
        return tuple(each for each in missing if each >= made_on or each == last)

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
    def informed(self) -> int:
        """The incidents of which people were notified, and not urgently."""
        return max(0, self.totals.notified - self.totals.urgent)

    @property
    def open_cases(self) -> int:
        """How many cases wait for a person, of any week."""
        return len(self.open_now) + self.open_now_left_out

    @property
    def has_other_news(self) -> bool:
        """Whether people are to hear of more than this week's incidents."""
        return bool(self.open_now or self.reached_a_person.total or self.do_this_week)

    @property
    def is_quiet(self) -> bool:
        """Whether all was read, and there is nothing to hear of."""
        unread = self.not_seen.files_unreadable or self.not_seen.case_files_unreadable
        news = self.totals.incidents or self.has_other_news or self.earned or unread
        return not news and self.is_whole and self.cases_were_read and not self.nothing_was_read

    @property
    def nothing_was_read(self) -> bool:
        return not self.totals.incidents and not (self.not_seen.files_read and self.days_read)


# The largest week that was tried has half of one megabyte.
MOST_BYTES = 5_000_000
# JSON's escape for half a character, which no text holds; the group is what stays: any other
# escape, and two halves together.
_HALF_A_CHARACTER = re.compile(
    rb"(\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..))|\\u[dD][89a-fA-F]..", re.DOTALL
)


class SummaryUnreadable(Exception):
    """A summary that this report cannot read; one line that names the place and what is wrong."""


class _Versioned(msgspec.Struct):
    """What every release's document says."""

    schema: Any = None


def read(content: bytes) -> Summary:
    """Read summary.json; half a character becomes one that nobody can see either.

    Raises SummaryUnreadable, one line, for the first thing that is wrong.
    """
    if len(content) > MOST_BYTES:
        raise SummaryUnreadable(f"summary.json is larger than {MOST_BYTES:,} bytes")
    content = _HALF_A_CHARACTER.sub(lambda found: found[1] or rb"\uffff", content)
    try:
        schema = msgspec.json.decode(content, type=_Versioned).schema
        if schema != SCHEMA or isinstance(schema, bool):
            raise SummaryUnreadable(
                f"summary.json has schema {ascii(schema)[:40]} and this report reads schema "
                f"{SCHEMA}; deploy the report and the nightly job of one release"
            )
        return msgspec.json.decode(content, type=Summary)
    except msgspec.ValidationError as error:
        wrong, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place.strip(".`") else ""
        raise SummaryUnreadable(f"summary.json: {where}{wrong}") from None
    except (ValueError, RecursionError):
        raise SummaryUnreadable("summary.json is not a JSON document") from None


def read_under(key: str, content: bytes) -> Summary:
    """The same of what lies under a key, whose week it is: another's page is not its to replace."""
    summary = read(content)
    if key != f"summary/week={summary.week}/summary.json":
        raise SummaryUnreadable(f"summary.json: week {summary.week} lies under another week's key")
    return summary
