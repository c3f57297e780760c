"""Read the nightly tables and the case bucket, and write a week's summary.json.

For an organization, the summary also has the sums of all its accounts and regions. Each member, the
stack of one account and region, copies its tables to a central bucket:
`account=A/region=R/incidents/week=W/DAY.parquet`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from analytics.cases import (
    MAXIMUM_COUNT,
    MAXIMUM_NAME_CHARACTERS,
    QUARTER_DAYS,
    CaseFiles,
    load_case_files,
    shorten,
)
from analytics.days import PREVIOUS_WEEKS, Days, days_of, list_weeks_before
from analytics.nightly import NightlyRunResult, read_last_findings, read_last_measurements
from analytics.storage import Storage
from analytics.tables import SUMS, Tables, path_of, read_members
from analytics.week import WeekInput, make_summary
from analytics.week_parts import ByDay, Row, list_rows, make_incident, remove_own_incidents
from mendq.model.json_text import without_nan
from mendq.nightly.verdict import (
    ACCOUNT_OBJECT_NAME,
    NIGHTLY_FOLDER,
    NightlyRead,
    member_prefix,
    name_of_week,
    nightly_key,
    parse_day,
    read_nightly,
    shared_table_prefix,
)
from mendq.notifications.text import format_count

# The summary compares the week with those before it, so their tables are read too.
_DAYS_BEFORE = 7 * PREVIOUS_WEEKS


def load_week_cases(cases: Storage, findings: Storage | None, week: str) -> CaseFiles:
    """Read the cases of a week and of the 13 weeks before it, and what the last scans found.

    `findings` is the storage of the scans; None if its place is not known.
    """
    days = days_of(week)
    case_files = load_case_files(cases, days, QUARTER_DAYS)
    if findings is None:
        return case_files
    return replace(
        case_files,
        findings=read_last_findings(findings, days),
        measurements=read_last_measurements(findings),
    )


@dataclass(frozen=True)
class OrganizationTables:
    """The accounts that an organization's summary covers.

    Attributes:
        root: The storage with their tables.
        expected: Accounts that are reported as silent if they have no tables.
        has_one_trail: True if one trail has the files of all accounts. Then `root` holds the hub's
            own tables, with the rows of all accounts.
    """

    root: Storage
    expected: frozenset[str] = frozenset()
    has_one_trail: bool = False


def write_week(  # noqa: PLR0913 - the input, the output, and three times
    cases: CaseFiles | None,
    tables: Tables,
    week: str,
    made_at: datetime,
    scheduled_at: datetime | None = None,
    *,
    zone: tzinfo = UTC,
    organization: OrganizationTables | None = None,
) -> int:
    """Write the summary of a week, even if there are no tables.

    Args:
        cases: The cases. None: the summary has no fields about cases.
        tables: The nightly tables, and the place of the summary.
        week: The week, such as `2026-W46`.
        made_at: The time now.
        scheduled_at: The time for which the schedule started this run; None if a person did.
        zone: The time zone that decides which notifications came out of hours.
        organization: The organization to sum up, or None.

    Returns:
        The number of the week's days that have tables.
    """
    days = days_of(week)
    week_input = _load_week_input(days, cases, tables)
    document = make_summary(week, week_input, made_at, scheduled_at, zone)
    if organization:
        if organization.has_one_trail:
            members = list_members_of_one_trail(week, week_input.quality)
        else:
            members = list_members(organization.root, week)
        document["organization"] = summarize_organization(
            days, organization.root, tables.spark, members, organization.expected
        )
    path = f"summary/week={week}/summary.json"
    tables.out.put(path, to_json_bytes(document))
    number_of_nights = sum(day in week_input.quality for day in days)
    if cases:
        tables.say(f"{format_count(len(cases.timelines), 'case')} since {cases.since}")
    incidents = format_count(document["totals"]["incidents"], "incident")
    tables.say(f"{path}: {incidents} from {format_count(number_of_nights, 'nightly run')}")
    if not document["not_seen"]["week_is_over"]:
        tables.say(f"{week} is not over: its report will be made, but not sent")
    return number_of_nights


def write_backtest_incidents(
    tables: Tables, requested: Days, result: NightlyRunResult, made_at: datetime
) -> None:
    """Write what `mendq backtest` reads: the summaries of the weeks, and incidents.json.

    incidents.json has each incident with the first calls that were enough evidence for heal. A
    backtest reads no cases.

    Args:
        tables: The tables of the backtest.
        requested: The days of the backtest.
        result: The result of its nightly run, with evidence.
        made_at: The time now.
    """
    weeks = sorted({name_of_week(day) for day in requested})
    for week in weeks:
        write_week(None, tables, week, made_at)
    by_day = tables.read_rows("incidents", [nightly.day for nightly in result.nightly_runs])
    incidents: list[dict[str, Any]] = []
    for row in list_rows(remove_own_incidents(by_day)):
        evidence = result.evidence.get(row["incident_id"], [])
        incidents.append({**make_incident(row), "evidence": evidence})
    days = [str(day) for day in sorted(by_day)]
    content = to_json_bytes({"weeks": weeks, "days": days, "incidents": incidents})
    tables.out.put("incidents.json", content)


def _load_week_input(days: Days, cases: CaseFiles | None, tables: Tables) -> WeekInput:
    """Read the tables of a week and of the weeks before it.

    A day counts only if both its tables, `incidents` and `quality`, can be read.
    """
    all_days = days.widen(_DAYS_BEFORE, 0)
    incidents = tables.read_rows("incidents", all_days)
    quality = tables.read_rows("quality", all_days)
    days_with_both = sorted(incidents.keys() & quality.keys())
    return WeekInput(
        incidents={day: incidents[day] for day in days_with_both},
        quality={day: quality[day] for day in days_with_both},
        cases=cases,
        nights=_read_nights(tables.out, all_days),
        first_day=_find_first_day(tables.out),
    )


def _find_first_day(out: Storage) -> date | None:
    """Return the first day for which a nightly run wrote tables or counts, or None."""
    days: list[date] = []
    for folder in [*out.folders("quality"), *out.folders(NIGHTLY_FOLDER)]:
        day = parse_day(folder.removeprefix("dt="))
        if day:
            days.append(day)
    return min(days, default=None)


def _read_nights(out: Storage, days: Days) -> dict[date, NightlyRead]:
    """Return the counts in each day's `nightly.json`. A file that names another day is ignored."""
    nights: dict[date, NightlyRead] = {}
    for day in days:
        night = read_nightly(out.read(nightly_key(day)) or b"")
        if night and night.day == day:
            nights[day] = night
    return nights


# The states of a member.
SILENT = "silent"
LATE = "late"
REPORTED = "reported"
# A member that had no tables for this number of weeks is left out, unless it is expected.
EXPECTED_WEEKS = 4
# Limits on content that other accounts write.
MAXIMUM_TABLE_BYTES = 20_000_000
MAXIMUM_ABOUT_BYTES = 1_000
MAXIMUM_MEMBERS = 200
MAXIMUM_UNREAD_FILES = 20
MAXIMUM_REGIONS = 40
# The number of accounts whose folders are listed at the same time.
_PARALLEL_ACCOUNTS = 16
_ACCOUNT_FOLDER = re.compile("account=([0-9]{12})")
_REGION_FOLDER = re.compile("region=([a-z]{2}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2})")
_ALIAS = re.compile("[a-z0-9-]{3,63}")


@dataclass(frozen=True)
class MemberTables:
    """The `incidents` tables of one member of the organization, an account and region, for a week.

    Attributes:
        account: The account.
        region: The region. Empty for an expected account that has no tables at all.
        paths: The path of each day's table.
        unread: The reason for each table that is not read, by its path: `empty` or `too_large`.
        is_expected: True if the member has tables of the weeks before, or is expected by settings.
    """

    account: str
    region: str = ""
    paths: Mapping[date, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    is_expected: bool = True

    def list_present_days(self) -> set[date]:
        """Return the days for which the member has a table, readable or not."""
        present = set(self.paths)
        for path in self.unread:
            day = _day_in(path)
            if day:
                present.add(day)
        return present

    def state(self, days: Days) -> str:
        """Return SILENT (no table at all), LATE (a table is missing) or REPORTED (all are there).

        A member with tables of the weeks before must have one for every day of the week. A new
        member must have one for each day since its first.
        """
        present = self.list_present_days()
        if not present:
            return SILENT
        due = [day for day in days if self.is_expected or day >= min(present)]
        return REPORTED if present.issuperset(due) else LATE


def list_members(central: Storage, week: str) -> list[MemberTables]:
    """Return the members that have tables of the week or of the EXPECTED_WEEKS weeks before it.

    Each member costs three listings, however much is stored. Folders with other names are ignored.
    """
    with ThreadPoolExecutor(_PARALLEL_ACCOUNTS) as pool:
        members: list[MemberTables] = []
        for of_account in pool.map(partial(_list_regions, central, week), central.folders("")):
            members.extend(of_account)
    return members


def _list_regions(central: Storage, week: str, folder: str) -> list[MemberTables]:
    """Return a member for each region with tables in an account's folder."""
    account = _ACCOUNT_FOLDER.fullmatch(folder)
    if not account:
        return []
    members: list[MemberTables] = []
    for region_folder in central.folders(folder)[:MAXIMUM_REGIONS]:
        region = _REGION_FOLDER.fullmatch(region_folder)
        if not region:
            continue
        member = _find_tables(central, week, account[1], region[1])
        if member.paths or member.unread or member.is_expected:
            members.append(member)
    return members


def _find_tables(central: Storage, week: str, account: str, region: str) -> MemberTables:
    """Return the tables of this account and region for a week. There may be none."""
    folder = shared_table_prefix(account, region, "incidents", week)
    paths: dict[date, str] = {}
    unread: dict[str, str] = {}
    for path, size in central.files(folder).items():
        day = _day_in(path)
        if day is None or name_of_week(day) != week or not path.endswith(".parquet"):
            continue
        if size == 0:
            unread[path] = "empty"
        elif size > MAXIMUM_TABLE_BYTES:
            unread[path] = "too_large"
        else:
            paths[day] = path
    weeks_before = {f"week={earlier}" for earlier in list_weeks_before(week, EXPECTED_WEEKS)}
    week_folders = central.folders(folder.rpartition("/")[0])
    is_expected = bool(weeks_before.intersection(week_folders))
    return MemberTables(account, region, paths, unread, is_expected)


def _day_in(path: str) -> date | None:
    """Return the day in a path such as `.../week=2026-W46/2026-11-16.parquet`, or None."""
    return parse_day(path.rpartition("/")[2].removesuffix(".parquet"))


def list_members_of_one_trail(week: str, quality: ByDay) -> list[MemberTables]:
    """Return the accounts and regions that have files in the one trail of an organization.

    Files of the week or of the EXPECTED_WEEKS weeks before it count. A member has a table on each
    day on which the trail has files of it.

    Args:
        week: The week.
        quality: The rows of the table `quality`, by day.
    """
    days = days_of(week)
    first_expected_day = days_of(list_weeks_before(week, EXPECTED_WEEKS)[0]).first
    days_of_member = defaultdict[tuple[str, str], set[date]](set)
    for day, rows in quality.items():
        for row in rows:
            days_of_member[row["account"], row["region"]].add(day)
    members: list[MemberTables] = []
    for (account, region), present in sorted(days_of_member.items()):
        if max(present) < first_expected_day:
            continue
        paths = {day: path_of("incidents", day) for day in days if day in present}
        is_expected = min(present) < days.first
        members.append(MemberTables(account, region, paths, is_expected=is_expected))
    return members


def summarize_organization(
    days: Days,
    root: Storage,
    spark: SparkSession,
    members: Sequence[MemberTables],
    expected: Iterable[str],
) -> dict[str, Any]:
    """Return the field `organization` of the summary: sums of each member and of all members.

    Args:
        days: The week.
        root: The storage with the tables of the members.
        spark: The session that reads them.
        members: The members that have tables, or had in the weeks before.
        expected: Accounts that are reported as silent if they are not among the members.
    """
    all_members = [*members, *_list_missing_members(members, expected)]
    paths: dict[str, None] = {}  # without duplicates: members of one trail have the same tables
    for member in all_members:
        paths.update(dict.fromkeys(member.paths.values()))
    sums, unreadable = read_members(spark, root, list(paths))
    sums_of_member = {(row["of_account"], row["of_region"]): row for row in sums.members}
    rows: list[dict[str, Any]] = []
    for member in all_members:
        sums_of_this = sums_of_member.get((member.account, member.region), {})
        rows.append(_make_member_row(member, sums_of_this, days, unreadable))
    rows.sort(key=_rank_of_member)
    for row in rows[:MAXIMUM_MEMBERS]:
        row["alias"] = _read_alias(root, row["account"], row["region"])
    return {
        "totals": _sum_members(rows),
        "members": rows[:MAXIMUM_MEMBERS],
        "members_left_out": len(rows[MAXIMUM_MEMBERS:]),
        "queues": [_make_queue_row(row) for row in sums.queues],
        "unreadable_files": _list_unread_files(all_members, unreadable),
    }


def _list_missing_members(
    members: Iterable[MemberTables], expected: Iterable[str]
) -> Iterator[MemberTables]:
    """Yield a member without tables for each expected account that has no member."""
    present = {member.account for member in members}
    for account in sorted(set(expected) - present):
        yield MemberTables(account)


def _sum_members(rows: Sequence[Row]) -> dict[str, int]:
    """Return the sums over all members, and how many of them are silent or late."""
    totals = {"accounts": len({row["account"] for row in rows})}
    for state in (SILENT, LATE):
        totals[state] = sum(row["state"] == state for row in rows)
    for name in (*SUMS, "files_unreadable"):
        totals[name] = sum(row[name] for row in rows)
    return totals


def _list_unread_files(
    members: Iterable[MemberTables], unreadable: Iterable[str]
) -> list[dict[str, str]]:
    """Return at most MAXIMUM_UNREAD_FILES tables that were not read, sorted by path.

    Each has the fields `file` and `reason`.
    """
    reasons: dict[str, str] = {}
    for member in members:
        reasons.update(member.unread)
    for path in unreadable:
        reasons[path] = "unreadable"
    paths = sorted(reasons)[:MAXIMUM_UNREAD_FILES]
    return [{"file": path, "reason": reasons[path]} for path in paths]


def _make_member_row(
    member: MemberTables, sums: Row, days: Days, unreadable: Collection[str]
) -> dict[str, Any]:
    """Return the summary's row of a member: its state and its sums.

    Args:
        member: The member.
        sums: Its sums; empty if none of its tables was read.
        days: The week.
        unreadable: The paths that Spark could not read.
    """
    present = member.list_present_days()
    broken = [path for path in member.paths.values() if path in unreadable]
    row: dict[str, Any] = {
        "account": member.account,
        "region": member.region,
        "state": member.state(days),
        "last_day": str(max(present)) if present else None,
    }
    for name in SUMS:
        row[name] = min(int(sums.get(name) or 0), MAXIMUM_COUNT)
    row["files_unreadable"] = len(member.unread) + len(broken)
    return row


def _rank_of_member(row: Row) -> tuple[bool, int, int, bool, int, str, str]:
    """Return a sorting key: members with waiting incidents first, then those with odd tables."""
    is_odd = row["state"] != REPORTED or row["rows_left_out"] or row["files_unreadable"]
    urgent = row["urgent"] if row["waiting"] else 0
    return (
        not row["waiting"],
        -row["waiting"],
        -urgent,
        not is_odd,
        -row["incidents"],
        row["account"],
        row["region"],
    )


def _make_queue_row(row: Row) -> dict[str, Any]:
    """Return a queue with waiting incidents. `symptom` and `outcome` are its most pressing ones."""
    worst = row["worst"]
    return {
        "account": row["of_account"],
        "region": row["of_region"],
        "queue_arn": row["queue"],
        "symptom": shorten(worst["symptom"], MAXIMUM_NAME_CHARACTERS),
        "outcome": shorten(worst["outcome"], MAXIMUM_NAME_CHARACTERS),
        "incidents": row["waiting"],
        "failed_calls": min(int(row["failed_calls"]), MAXIMUM_COUNT),
        "urgent": row["urgent_waiting"] > 0,
    }


def _read_alias(root: Storage, account: str, region: str) -> str:
    """Return the account's alias from its own file, or an empty text if that is not a valid one."""
    folder = member_prefix(account, region)
    path = f"{folder}/{ACCOUNT_OBJECT_NAME}"
    size = root.files(folder).get(path, 0)
    if not 0 < size <= MAXIMUM_ABOUT_BYTES:
        return ""
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        alias = json.loads(root.read(path) or b"")["alias"]
        if _ALIAS.fullmatch(alias):
            return str(alias)
    return ""


def to_json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON in UTF-8.

    Characters are not escaped, because names made up by others would then be three times as long.
    Only a lone surrogate, which UTF-8 cannot encode, is escaped. Numbers that are not finite become
    null.
    """
    finite = without_nan(document)
    text = json.dumps(finite, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace")
