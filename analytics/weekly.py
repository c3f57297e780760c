"""Read the nightly tables and the case bucket, and write a week's summary.json.

For an organization, the summary also has the sums of all its members. A member is the stack of one
account and region. It copies its tables to a central bucket:
`account=A/region=R/incidents/week=W/DAY.parquet`. If one trail has the files of all accounts, the
stack's own tables already have all incidents, and nothing is copied.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Any

from analytics.cases import (
    MAXIMUM_ACCEPTED_COUNT,
    MAXIMUM_NAME_CHARACTERS,
    QUARTER_DAYS,
    CaseFiles,
    load_case_files,
    shorten,
)
from analytics.days import PREVIOUS_WEEKS, Days, parse_week_days
from analytics.members import (
    LATE_STATE,
    REPORTED_STATE,
    SILENT_STATE,
    MemberTables,
    describe_unread_tables,
    list_members,
    list_members_of_one_trail,
    stage_member_tables,
)
from analytics.nightly import NightlyRunResult, read_last_findings, read_last_measurements
from analytics.own_incidents import remove_own_incidents
from analytics.packed_table import UNREADABLE_REASON
from analytics.storage import RootUnusable, Storage, unpack_snappy
from analytics.tables import SUM_COLUMNS, OrganizationSums, Tables, read_members
from analytics.week import WeekInput, make_summary
from analytics.week_parts import Row, list_rows, make_incident
from mendq.model.json_text import replace_nan
from mendq.nightly.verdict import (
    ACCOUNT_OBJECT_NAME,
    NIGHTLY_FOLDER,
    NightlyCounts,
    make_member_prefix,
    make_nightly_counts_key,
    name_of_week,
    parse_day,
    read_nightly_counts,
)
from mendq.notifications.text import format_count

# The number of earlier days whose tables are also read, because the summary compares the week with
# the weeks before it.
_DAYS_BEFORE_WEEK = 7 * PREVIOUS_WEEKS


def load_week_cases(case_storage: Storage, scan_storage: Storage | None, week: str) -> CaseFiles:
    """Read the cases from 13 weeks before a week until now, and the scans' findings and figures.

    The findings are those of the week's last scan; the measured figures are the newest. If
    `scan_storage` is None, because the place of the scans is not known, both are empty.
    """
    days = parse_week_days(week)
    case_files = load_case_files(case_storage, days, QUARTER_DAYS)
    if scan_storage is None:
        return case_files
    return replace(
        case_files,
        findings=read_last_findings(scan_storage, days),
        measured_figures_by_queue=read_last_measurements(scan_storage),
    )


@dataclass(frozen=True)
class OrganizationTables:
    """The tables of the accounts that an organization's summary covers.

    Attributes:
        root: The storage with the accounts' tables.
        expected_accounts: Accounts that are reported as silent if they have no tables.
        has_one_trail: True if one trail has the files of all accounts. `root` then has this stack's
            own tables, with rows of all accounts.
    """

    root: Storage
    expected_accounts: frozenset[str] = frozenset()
    has_one_trail: bool = False


def write_week(  # noqa: PLR0913 - the input, the output, and three times
    case_files: CaseFiles | None,
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
        case_files: The cases; None for a summary without fields about cases.
        tables: The nightly tables, below whose root the summary is written.
        week: The week, such as `2026-W46`.
        made_at: The present time.
        scheduled_at: The time for which the schedule started this run; None if a person started it.
        zone: The time zone that decides which notifications were out of hours.
        organization: The organization to sum up, or None.

    Returns:
        The number of the week's days that have tables.
    """
    days = parse_week_days(week)
    week_input = _load_week_input(days, case_files, tables)
    summary_document = make_summary(week, week_input, made_at, scheduled_at, zone)
    if organization:
        if organization.has_one_trail:
            members = list_members_of_one_trail(week, week_input.quality_by_day)
        else:
            members = list_members(organization.root, week)
        summary_document["organization"] = summarize_organization(
            days, tables, members, organization
        )
    path = f"summary/week={week}/summary.json"
    tables.table_storage.write(path, to_json_bytes(summary_document))
    nightly_run_count = sum(day in week_input.quality_by_day for day in days)
    if case_files:
        case_count_text = format_count(len(case_files.timelines), "case")
        tables.say(f"{case_count_text} since {case_files.first_fully_read_day}")
    incident_count_text = format_count(summary_document["totals"]["incidents"], "incident")
    tables.say(
        f"{path}: {incident_count_text} from {format_count(nightly_run_count, 'nightly run')}"
    )
    if not summary_document["not_seen"]["week_is_over"]:
        tables.say(f"{week} is not over: its report will be made, but not sent")
    return nightly_run_count


def write_backtest_incidents(
    tables: Tables, requested_days: Days, nightly_run_result: NightlyRunResult, made_at: datetime
) -> None:
    """Write the files that `mendq backtest` reads: the summaries of the weeks, and incidents.json.

    incidents.json has the incidents of the written days, each with the first calls that were enough
    evidence for heal. Incidents that Mendq or its operators caused are left out. The summaries have
    no fields about cases.

    Args:
        tables: The tables of the backtest.
        requested_days: The days of the backtest.
        nightly_run_result: The result of its nightly run, with evidence.
        made_at: The present time.
    """
    weeks = sorted({name_of_week(day) for day in requested_days})
    for week in weeks:
        write_week(None, tables, week, made_at)
    incidents_by_day = tables.read_rows(
        "incidents",
        [nightly_counts.day for nightly_counts in nightly_run_result.counts_of_written_days],
    )
    incidents: list[dict[str, Any]] = []
    for row in list_rows(remove_own_incidents(incidents_by_day)):
        evidence = nightly_run_result.evidence_by_incident.get(row["incident_id"], [])
        incidents.append({**make_incident(row), "evidence": evidence})
    days = [str(day) for day in sorted(incidents_by_day)]
    json_bytes = to_json_bytes({"weeks": weeks, "days": days, "incidents": incidents})
    tables.table_storage.write("incidents.json", json_bytes)


def _load_week_input(days: Days, case_files: CaseFiles | None, tables: Tables) -> WeekInput:
    """Read the tables of a week and of the weeks before it.

    A day counts only if both its tables, `incidents` and `quality`, can be read.
    """
    days_with_weeks_before = days.widen(_DAYS_BEFORE_WEEK, 0)
    incidents_by_day = tables.read_rows("incidents", days_with_weeks_before)
    quality_by_day = tables.read_rows("quality", days_with_weeks_before)
    days_with_both_tables = sorted(incidents_by_day.keys() & quality_by_day.keys())
    return WeekInput(
        incidents_by_day={day: incidents_by_day[day] for day in days_with_both_tables},
        quality_by_day={day: quality_by_day[day] for day in days_with_both_tables},
        case_files=case_files,
        nightly_counts_by_day=_read_nightly_counts(tables.table_storage, days_with_weeks_before),
        first_day=_find_first_nightly_run_day(tables.table_storage),
    )


def _find_first_nightly_run_day(table_storage: Storage) -> date | None:
    """Return the first day for which a nightly run wrote tables or counts, or None."""
    days: list[date] = []
    for folder in [
        *table_storage.list_folders("quality"),
        *table_storage.list_folders(NIGHTLY_FOLDER),
    ]:
        day = parse_day(folder.removeprefix("dt="))
        if day:
            days.append(day)
    return min(days, default=None)


def _read_nightly_counts(table_storage: Storage, days: Days) -> dict[date, NightlyCounts]:
    """Return the counts in each day's `nightly.json`.

    A day is left out if it has no such file, or if the file is broken or names another day.
    """
    nightly_counts_by_day: dict[date, NightlyCounts] = {}
    for day in days:
        nightly_counts = read_nightly_counts(
            table_storage.read(make_nightly_counts_key(day)) or b""
        )
        if nightly_counts and nightly_counts.day == day:
            nightly_counts_by_day[day] = nightly_counts
    return nightly_counts_by_day


MAXIMUM_ACCOUNT_FILE_BYTES = 1_000
MAXIMUM_LISTED_MEMBERS = 200
MAXIMUM_UNREAD_FILES = 20
_ALIAS_PATTERN = re.compile("[a-z0-9-]{3,63}")


def summarize_organization(
    days: Days,
    tables: Tables,
    members: Sequence[MemberTables],
    organization: OrganizationTables,
) -> dict[str, Any]:
    """Return the field `organization` of the summary: the sums of each member and of all members.

    Args:
        days: The week.
        tables: The hub's own tables. Tables of members are temporarily copied to their storage.
        members: The members that have tables of this week or of the weeks before.
        organization: The members' tables. Its expected accounts are reported as silent if they are
            not among the members.
    """
    all_members, organization_sums, unreadable_paths = _sum_member_tables(
        tables,
        [*members, *_list_missing_members(members, organization.expected_accounts)],
        organization,
    )
    sums_by_member = {
        (row["of_account"], row["of_region"]): row for row in organization_sums.members
    }
    rows: list[dict[str, Any]] = []
    for member in all_members:
        member_sums = sums_by_member.get((member.account, member.region), {})
        rows.append(_make_member_row(member, member_sums, days, unreadable_paths))
    rows.sort(key=_rank_member)
    for row in rows[:MAXIMUM_LISTED_MEMBERS]:
        row["alias"] = _read_account_alias(organization.root, row["account"], row["region"])
    return {
        "totals": _sum_members(rows),
        "members": rows[:MAXIMUM_LISTED_MEMBERS],
        "members_left_out": len(rows[MAXIMUM_LISTED_MEMBERS:]),
        "queues": [_make_queue_row(row) for row in organization_sums.queues],
        "unreadable_files": _list_unread_files(all_members, unreadable_paths),
    }


def _sum_member_tables(
    tables: Tables, members: Sequence[MemberTables], organization: OrganizationTables
) -> tuple[Sequence[MemberTables], OrganizationSums, set[str]]:
    """Sum up the tables of the members.

    Returns:
        The members without the tables that must not be unpacked, the sums, and the paths of the
        tables that Spark could not read.
    """
    if organization.has_one_trail:
        # Several members have the same path. Only the hub writes there, so nothing is checked.
        paths = list(dict.fromkeys(_list_paths(members)))
        return members, *read_members(tables.spark, organization.root, paths)
    with tables.table_storage.staging() as staging:
        staged_members = stage_member_tables(
            organization.root, staging, members, partial(unpack_snappy, tables.spark)
        )
        for line in describe_unread_tables(staged_members):
            tables.say(line)
        sums_and_unreadable_paths = read_members(
            tables.spark, staging, list(_list_paths(staged_members))
        )
    return staged_members, *sums_and_unreadable_paths


def _list_paths(members: Iterable[MemberTables]) -> Iterator[str]:
    """Yield the paths of all members' tables."""
    for member in members:
        yield from member.path_by_day.values()


def _list_missing_members(
    members: Iterable[MemberTables], expected_accounts: Iterable[str]
) -> Iterator[MemberTables]:
    """Yield a member without tables for each expected account that has no member."""
    present_accounts = {member.account for member in members}
    for account in sorted(set(expected_accounts) - present_accounts):
        yield MemberTables(account)


def _sum_members(rows: Sequence[Row]) -> dict[str, int]:
    """Return the sums over all members, and the numbers of silent and late members."""
    totals = {"accounts": len({row["account"] for row in rows})}
    for state in (SILENT_STATE, LATE_STATE):
        totals[state] = sum(row["state"] == state for row in rows)
    for name in (*SUM_COLUMNS, "files_unreadable"):
        totals[name] = sum(row[name] for row in rows)
    return totals


def _list_unread_files(
    members: Iterable[MemberTables], unreadable_paths: Iterable[str]
) -> list[dict[str, str]]:
    """Return at most MAXIMUM_UNREAD_FILES tables that were not read, sorted by path.

    Each has the fields `file` and `reason`. If there are more, the first tables of each account
    come first, so that no account can hide the tables of another.
    """
    reason_by_path: dict[str, str] = {}
    for member in members:
        reason_by_path.update(member.unread_reason_by_path)
    for path in unreadable_paths:
        reason_by_path[path] = UNREADABLE_REASON
    ranked_paths: list[tuple[int, str]] = []
    count_by_account = Counter[str]()
    for path in sorted(reason_by_path):
        account_folder = path.partition("/")[0]
        ranked_paths.append((count_by_account[account_folder], path))
        count_by_account[account_folder] += 1
    paths = sorted(path for _, path in sorted(ranked_paths)[:MAXIMUM_UNREAD_FILES])
    return [{"file": path, "reason": reason_by_path[path]} for path in paths]


def _make_member_row(
    member: MemberTables, member_sums: Row, days: Days, unreadable_paths: Collection[str]
) -> dict[str, Any]:
    """Return the summary's row of a member: its state and its sums.

    Args:
        member: The member.
        member_sums: The member's sums; empty if none of its tables was read.
        days: The week.
        unreadable_paths: The paths that Spark could not read.
    """
    present_days = member.list_present_days()
    unreadable_member_paths = [
        path for path in member.path_by_day.values() if path in unreadable_paths
    ]
    row: dict[str, Any] = {
        "account": member.account,
        "region": member.region,
        "state": member.find_reporting_state(days),
        "last_day": str(max(present_days)) if present_days else None,
    }
    for name in SUM_COLUMNS:
        row[name] = min(int(member_sums.get(name) or 0), MAXIMUM_ACCEPTED_COUNT)
    row["files_unreadable"] = len(member.unread_reason_by_path) + len(unreadable_member_paths)
    return row


def _rank_member(row: Row) -> tuple[bool, int, int, bool, int, str, str]:
    """Return a sorting key for members.

    Members with the most incidents that wait for a person come first. Among members with equal
    numbers, the order is: most urgent incidents (if any incident waits), missing or faulty tables,
    most incidents.
    """
    has_problem = row["state"] != REPORTED_STATE or row["rows_left_out"] or row["files_unreadable"]
    urgent_count = row["urgent"] if row["waiting"] else 0
    return (
        not row["waiting"],
        -row["waiting"],
        -urgent_count,
        not has_problem,
        -row["incidents"],
        row["account"],
        row["region"],
    )


def _make_queue_row(row: Row) -> dict[str, Any]:
    """Return the summary's row of a queue with waiting incidents.

    `symptom` and `outcome` are those of its most pressing incident.
    """
    worst_incident = row["worst"]
    return {
        "account": row["of_account"],
        "region": row["of_region"],
        "queue_arn": row["queue"],
        "symptom": shorten(worst_incident["symptom"], MAXIMUM_NAME_CHARACTERS),
        "outcome": shorten(worst_incident["outcome"], MAXIMUM_NAME_CHARACTERS),
        "incidents": row["waiting"],
        "failed_calls": min(int(row["failed_calls"]), MAXIMUM_ACCEPTED_COUNT),
        "urgent": row["urgent_waiting"] > 0,
    }


def _read_account_alias(root: Storage, account: str, region: str) -> str:
    """Return the account's alias from the file that the account shares.

    Return an empty text if the file is missing, or has no valid alias.
    """
    path = f"{make_member_prefix(account, region)}/{ACCOUNT_OBJECT_NAME}"
    with suppress(ValueError, LookupError, TypeError, RecursionError, RootUnusable):
        content = root.read(path, MAXIMUM_ACCOUNT_FILE_BYTES + 1) or b""
        if len(content) <= MAXIMUM_ACCOUNT_FILE_BYTES:
            alias = json.loads(content)["alias"]
            if _ALIAS_PATTERN.fullmatch(alias):
                return str(alias)
    return ""


def to_json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON in UTF-8.

    Non-ASCII characters are not escaped, because names that other accounts choose could then become
    three times as long. Only a lone surrogate, which UTF-8 cannot encode, is escaped. NaN and
    Infinity become null.
    """
    finite_document = replace_nan(document)
    json_text = json.dumps(finite_document, indent=1, ensure_ascii=False, allow_nan=False)
    return json_text.encode(errors="backslashreplace")
