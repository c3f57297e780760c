"""Read the `summary.json` of a week (schema 2). A document with any mistake is refused."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from mendq.report.summary_parts import (
    APPROVED_OUTCOME,
    DAYS_PER_WEEK,
    MAXIMUM_HEAL_CANDIDATES,
    MAXIMUM_INCIDENTS,
    MAXIMUM_NAMES_IN_LIST,
    MAXIMUM_OPEN_CASES,
    MAXIMUM_PREVIOUS_WEEKS,
    MAXIMUM_RECOMMENDATIONS,
    MAXIMUM_STANDING_VALUES,
    READ_BEFORE_DAY_END_VERDICT,
    AwareDatetime,
    CountByName,
    DayCount,
    EarlierWeek,
    HealCandidate,
    Incident,
    IncidentsByFinder,
    MessageImpact,
    Names,
    NotifiedCases,
    OpenCaseSummary,
    Organization,
    QueueDays,
    Recommendation,
    ReportCoverage,
    SummaryPart,
    SymptomComparison,
    TimesToHeal,
    Totals,
    ValueStillSet,
    WholeNumber,
    find_monday,
)

SCHEMA = 2
_NOTIFIED_CASES_NOT_READ = NotifiedCases((), 0, 0)


class Week(SummaryPart, frozen=True, kw_only=True):
    """The fields of a summary about its week: days, accounts, regions, and earlier weeks' sums."""

    week: str
    made_at: AwareDatetime
    first_day: date = field(name="from")
    last_day: date = field(name="to")
    accounts: Names
    regions: Names
    accounts_left_out: WholeNumber = 0
    regions_left_out: WholeNumber = 0
    previous_weeks: Annotated[tuple[EarlierWeek, ...], Meta(max_length=MAXIMUM_PREVIOUS_WEEKS)]
    time_zone: str = "UTC"
    organization: Organization | None = None


class CaseSummary(Week, frozen=True, kw_only=True):
    """The fields of a summary that the nightly job fills from the cases in the case bucket.

    Exception: `had_mendq_in` belongs to a backtest.
    """

    reached_a_person: NotifiedCases = _NOTIFIED_CASES_NOT_READ
    # Cases that wait for a person, the most pressing first.
    open_now: Annotated[tuple[OpenCaseSummary, ...], Meta(max_length=MAXIMUM_OPEN_CASES)] = ()
    open_now_left_out: WholeNumber = 0
    impact: MessageImpact = MessageImpact()
    earned: Annotated[tuple[HealCandidate, ...], Meta(max_length=MAXIMUM_HEAL_CANDIDATES)] = ()
    do_this_week: Annotated[
        tuple[Recommendation, ...], Meta(max_length=MAXIMUM_RECOMMENDATIONS)
    ] = ()
    do_this_week_left_out: WholeNumber = 0
    standing: Annotated[tuple[ValueStillSet, ...], Meta(max_length=MAXIMUM_STANDING_VALUES)] = ()
    standing_left_out: WholeNumber = 0
    # The mode of a backtest, whose incidents have the outcomes that they would have had. Empty for
    # a real week.
    had_mendq_in: str = ""

    @property
    def cases_were_read(self) -> bool:
        """True if the nightly job read the case bucket.

        If False, all fields about cases are empty, although there may be cases. Then the sums
        `urgent_notifications` and `out_of_hours` of this and earlier weeks are not known either.
        """
        return self.reached_a_person is not _NOTIFIED_CASES_NOT_READ


class Summary(CaseSummary, frozen=True, kw_only=True):
    """The summary of one week, as the nightly job writes it."""

    totals: Totals
    by_outcome: Annotated[dict[str, WholeNumber], Meta(max_length=30)]
    by_symptom: CountByName
    per_day: Annotated[tuple[DayCount, ...], Meta(max_length=DAYS_PER_WEEK * MAXIMUM_NAMES_IN_LIST)]
    # The worst incidents, the worst first.
    cases: Annotated[tuple[Incident, ...], Meta(max_length=MAXIMUM_INCIDENTS)]
    cases_left_out: WholeNumber
    not_seen: ReportCoverage
    times_to_heal: Annotated[tuple[TimesToHeal, ...], Meta(max_length=MAXIMUM_NAMES_IN_LIST)] = ()
    queue_days: QueueDays = QueueDays((), 0, 0)
    by_found_by: IncidentsByFinder = IncidentsByFinder()
    does_it_help: Annotated[
        tuple[SymptomComparison, ...], Meta(max_length=MAXIMUM_NAMES_IN_LIST)
    ] = ()
    symptoms_left_out: WholeNumber = 0
    # By symptom, a sentence about a queue that has it often.
    habits: Annotated[dict[str, str], Meta(max_length=MAXIMUM_NAMES_IN_LIST)] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_day - self.first_day != timedelta(days=DAYS_PER_WEEK - 1):
            raise ValueError("`to` must be six days after `from`")
        if self.first_day != find_monday(self.week):
            raise ValueError(f"`from` must be the Monday of {self.week}")
        mentioned_days = {day_count.day for day_count in self.per_day}
        mentioned_days |= {run.day for run in self.not_seen.nightly_runs}
        mentioned_days |= set(self.not_seen.nightly_runs_missing)
        days_outside_week = mentioned_days.difference(self.days)
        if days_outside_week:
            raise ValueError(f"{min(days_outside_week)} must be a day from `from` to `to`")

    @property
    def days(self) -> tuple[date, ...]:
        """The seven days of the week."""
        return tuple(
            self.first_day + timedelta(days=day_number) for day_number in range(DAYS_PER_WEEK)
        )

    @property
    def read_day_count(self) -> int:
        """Number of the week's days for which there are tables of the nightly run."""
        return sum(day not in self.not_seen.nightly_runs_missing for day in self.days)

    @property
    def is_whole(self) -> bool:
        """True if the week is over and each of its days was read after that day ended.

        Only whole weeks are compared with others. Some files may still be unreadable.
        """
        is_a_day_read_too_early = any(
            run.verdict == READ_BEFORE_DAY_END_VERDICT for run in self.not_seen.nightly_runs
        )
        return self.is_over and self.every_day_was_read and not is_a_day_read_too_early

    @property
    def is_over(self) -> bool:
        """True if the week was over and all its nightly runs were due when the summary was made."""
        return self.not_seen.week_is_over and not self.days_to_come

    @property
    def days_to_come(self) -> tuple[date, ...]:
        """Days without tables whose nightly run was not due yet when the summary was made."""
        unfinished_day = None if self.not_seen.week_is_over else self.last_day
        made_on_day = self.made_at.date()
        missing_days = self.not_seen.nightly_runs_missing
        return tuple(day for day in missing_days if day >= made_on_day or day == unfinished_day)

    @property
    def every_day_was_read(self) -> bool:
        """True if there are tables of the nightly run for all seven days."""
        return self.read_day_count == len(self.days)

    @property
    def fixed_count(self) -> int:
        """Number of incidents that Mendq fixed, automatically or after an approval."""
        return self.totals.healed + self.approved_count

    @property
    def approved_count(self) -> int:
        """Number of incidents that Mendq fixed after a person had approved it."""
        return self.by_outcome.get(APPROVED_OUTCOME, 0)

    @property
    def informed_count(self) -> int:
        """Number of incidents about which people were notified without an urgent notification."""
        return max(0, self.totals.notified - self.totals.urgent)

    @property
    def open_case_count(self) -> int:
        """Number of cases of any week that waited for a person when the summary was made."""
        return len(self.open_now) + self.open_now_left_out

    @property
    def has_other_news(self) -> bool:
        """True if the report has news besides incidents.

        This is the case if there are things to do, or cases that reached or wait for a person.
        """
        return bool(self.open_now or self.reached_a_person.total or self.do_this_week)

    @property
    def is_quiet(self) -> bool:
        """True if the whole week was read and there is nothing to report.

        An unreadable file is something to report.
        """
        unreadable_files = self.not_seen.files_unreadable or self.not_seen.case_files_unreadable
        has_news = self.totals.incidents or self.has_other_news or self.earned or unreadable_files
        return not has_news and self.is_whole and self.cases_were_read and not self.nothing_was_read

    @property
    def nothing_was_read(self) -> bool:
        """True if no trail file or no day was read, and no incident is known.

        Then it is not known whether there were incidents.
        """
        return not self.totals.incidents and not (self.not_seen.files_read and self.read_day_count)


# The largest week that was measured has 0.5 MB.
MOST_SUMMARY_BYTES = 5_000_000
# A JSON escape of a lone surrogate (half a character), which no text may contain. The group matches
# what must stay: any other escape, and a pair of surrogates.
_LONE_SURROGATE_REGEX = re.compile(
    rb"(\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..))|\\u[dD][89a-fA-F]..", re.DOTALL
)


class SummaryUnreadable(Exception):
    """A `summary.json` cannot be read. The message is one line with the mistake.

    It also has the place of the mistake, if that is known.
    """


class _SchemaField(msgspec.Struct):
    """Only the schema number of a summary. Every release writes it."""

    schema: Any = None


def read_summary(content: bytes) -> Summary:
    """Decode the bytes of a `summary.json` and check every field.

    A lone surrogate (half a character, which no text may contain) is replaced by U+FFFF. Raises
    SummaryUnreadable with the first mistake.
    """
    if len(content) > MOST_SUMMARY_BYTES:
        raise SummaryUnreadable(f"summary.json is larger than {MOST_SUMMARY_BYTES:,} bytes")
    content = _LONE_SURROGATE_REGEX.sub(lambda match: match[1] or rb"\uffff", content)
    try:
        schema = msgspec.json.decode(content, type=_SchemaField).schema
        if schema != SCHEMA or isinstance(schema, bool):
            raise SummaryUnreadable(
                f"summary.json has schema {ascii(schema)[:40]} and this report reads schema "
                f"{SCHEMA}; deploy the report and the nightly job of one release"
            )
        return msgspec.json.decode(content, type=Summary)
    except msgspec.ValidationError as error:
        mistake, _, field_path = str(error).partition(" - at `$")
        field_path = field_path.strip(".`")
        field_path_prefix = f"{field_path}: " if field_path else ""
        raise SummaryUnreadable(f"summary.json: {field_path_prefix}{mistake}") from None
    except (ValueError, RecursionError):
        raise SummaryUnreadable("summary.json is not a JSON document") from None


def read_stored_summary(key: str, content: bytes) -> Summary:
    """Decode the summary that is stored under an S3 key.

    Raises SummaryUnreadable if it has a mistake or if the key belongs to another week. A page made
    from it would replace the page of the wrong week.
    """
    summary = read_summary(content)
    if key != f"summary/week={summary.week}/summary.json":
        raise SummaryUnreadable(f"summary.json: week {summary.week} lies under another week's key")
    return summary
