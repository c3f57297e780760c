"""Find the tables that the members of an organization share, and check them before they are read.

A member is the stack of one account and region. It copies its `incidents` tables to the central
bucket: `account=A/region=R/incidents/week=W/DAY.parquet`. If one trail has the files of all
accounts, nothing is copied, and the hub's own tables have the rows of all members.

An account can write anything below its own `account=A/`, and nothing elsewhere. So everything here
has a limit for each account, and an account that exceeds a limit loses only its own tables:

1. Only names that the hub expects are looked up: one table for each day. Other keys are not listed.
   To find an account's regions, the first MAXIMUM_ACCOUNT_ENTRIES entries of its folder are listed.

2. Each table is measured before it is unpacked (`analytics/packed_table.py`). All tables of an
   account for a week share one allowance, over all its regions, because an account may invent
   regions.

3. Spark reads a copy of the measured bytes, which the account cannot replace.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import groupby

from analytics.days import Days, list_weeks_before, parse_week_days
from analytics.packed_table import (
    TOO_MUCH_REASON,
    UNREADABLE_REASON,
    PackedTableRefused,
    UnpackedSize,
    measure_packed_table,
)
from analytics.storage import RootUnusable, Storage
from analytics.tables import SUMMED_COLUMNS, make_table_path
from analytics.week_parts import RowsByDay
from mendq.nightly.verdict import make_shared_table_prefix, parse_day
from mendq.notifications.text import format_count

# The states of a member.
SILENT_STATE = "silent"
LATE_STATE = "late"
REPORTED_STATE = "reported"
# A member that had no tables for this number of weeks is left out, unless the settings expect it.
WEEKS_TO_EXPECT_MEMBER = 4
# Reasons in the summary for a table that is not read. analytics/packed_table.py has the others.
EMPTY_REASON = "empty"
TOO_LARGE_REASON = "too_large"
# Limits on what one account may share. For comparison: a thousand queues that fail again every hour
# make 168,000 rows in a week, and ten thousand queues with three incidents a day make 210,000.
MAXIMUM_ACCOUNT_ROWS = 250_000
# A row that the nightly job writes takes about 240 bytes unpacked, and 500 with the longest names.
MAXIMUM_ACCOUNT_UNPACKED_BYTES = 128_000_000
# A packed row takes 100 to 170 bytes. The table of a day may have at most 20 MB.
MAXIMUM_ACCOUNT_PACKED_BYTES = 64_000_000
MAXIMUM_TABLE_BYTES = 20_000_000
MAXIMUM_REGIONS = 40
MAXIMUM_ACCOUNT_ENTRIES = 1_000
# The number of accounts whose folders are listed at the same time.
_ACCOUNTS_LISTED_AT_ONCE = 16
# The number of accounts whose tables are measured at the same time. Each has one table in memory.
_ACCOUNTS_READ_AT_ONCE = 4
_ACCOUNT_FOLDER_PATTERN = re.compile("account=([0-9]{12})")
_REGION_FOLDER_PATTERN = re.compile("region=([a-z]{2,8}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2})")


@dataclass(frozen=True)
class MemberTables:
    """The `incidents` tables of one member of the organization, an account and region, for a week.

    Attributes:
        account: The account.
        region: The region; empty for an expected account that has no tables at all.
        path_by_day: The path of each day's table, without the tables that are not read.
        unread_reason_by_path: Why a table is not read, by its path. docs/nightly-job.md explains
            the reasons.
        is_expected: True if the member has tables of the weeks before, or if the settings expect
            it.
    """

    account: str
    region: str = ""
    path_by_day: Mapping[date, str] = field(default_factory=dict)
    unread_reason_by_path: Mapping[str, str] = field(default_factory=dict)
    is_expected: bool = True

    def list_present_days(self) -> set[date]:
        """Return the days for which the member has a table, readable or not."""
        present_days = set(self.path_by_day)
        for path in self.unread_reason_by_path:
            day = _parse_day_of_path(path)
            if day:
                present_days.add(day)
        return present_days

    def find_reporting_state(self, days: Days) -> str:
        """Return `silent` (no table), `late` (a table is missing) or `reported` (none is missing).

        An expected member must have a table for every day of the week, a new member for every day
        since its first table.
        """
        present_days = self.list_present_days()
        if not present_days:
            return SILENT_STATE
        due_days = [day for day in days if self.is_expected or day >= min(present_days)]
        return REPORTED_STATE if present_days.issuperset(due_days) else LATE_STATE


def list_members(central_storage: Storage, week: str) -> list[MemberTables]:
    """Return the members that have tables of the week or of recent weeks, sorted by account.

    Recent weeks are the WEEKS_TO_EXPECT_MEMBER weeks before `week`. The number of requests for an
    account does not depend on what it stores. Leave out folders that do not name an account or
    region, and an account's regions after the first MAXIMUM_REGIONS.
    """
    with ThreadPoolExecutor(_ACCOUNTS_LISTED_AT_ONCE) as thread_pool:
        members: list[MemberTables] = []
        for account_members in thread_pool.map(
            partial(_list_members_of_account, central_storage, week),
            central_storage.list_folders(""),
        ):
            members.extend(account_members)
    return members


def _list_members_of_account(
    central_storage: Storage, week: str, account_folder: str
) -> list[MemberTables]:
    """Return a member for each region with tables of the week or of recent weeks.

    `account_folder` is the folder of an account.
    """
    account_match = _ACCOUNT_FOLDER_PATTERN.fullmatch(account_folder)
    if not account_match:
        return []
    regions: list[str] = []
    for folder in central_storage.list_first_folders(account_folder, MAXIMUM_ACCOUNT_ENTRIES):
        region_match = _REGION_FOLDER_PATTERN.fullmatch(folder)
        if region_match:
            regions.append(region_match[1])
    members: list[MemberTables] = []
    for region in regions[:MAXIMUM_REGIONS]:
        member = _find_member_tables(central_storage, week, account_match[1], region)
        if member.path_by_day or member.unread_reason_by_path or member.is_expected:
            members.append(member)
    return members


def _find_member_tables(
    central_storage: Storage, week: str, account: str, region: str
) -> MemberTables:
    """Return the tables of this account and region for a week. The result may have no table."""
    path_by_day: dict[date, str] = {}
    unread_reason_by_path: dict[str, str] = {}
    for day in parse_week_days(week):
        path = f"{make_shared_table_prefix(account, region, 'incidents', week)}/{day}.parquet"
        try:
            size_bytes = central_storage.find_file_size(path)
        except RootUnusable:  # for example, the account encrypted the file with its own KMS key
            unread_reason_by_path[path] = UNREADABLE_REASON
            continue
        if size_bytes is None:
            continue
        if size_bytes == 0:
            unread_reason_by_path[path] = EMPTY_REASON
        elif size_bytes > MAXIMUM_TABLE_BYTES:
            unread_reason_by_path[path] = TOO_LARGE_REASON
        else:
            path_by_day[day] = path
    is_expected = any(
        central_storage.has_folder(
            make_shared_table_prefix(account, region, "incidents", earlier_week)
        )
        for earlier_week in list_weeks_before(week, WEEKS_TO_EXPECT_MEMBER)
    )
    return MemberTables(account, region, path_by_day, unread_reason_by_path, is_expected)


def _parse_day_of_path(path: str) -> date | None:
    """Return the day in a path such as `.../week=2026-W46/2026-11-16.parquet`, or None."""
    return parse_day(path.rpartition("/")[2].removesuffix(".parquet"))


def list_members_of_one_trail(week: str, quality_by_day: RowsByDay) -> list[MemberTables]:
    """Return the members that have files in an organization's one trail.

    Files of the week or of the WEEKS_TO_EXPECT_MEMBER weeks before it count. A member counts as
    having a table for each day on which the trail has its files.

    Args:
        week: The week.
        quality_by_day: The rows of the table `quality`, by day.
    """
    days = parse_week_days(week)
    first_expected_day = parse_week_days(
        list_weeks_before(week, WEEKS_TO_EXPECT_MEMBER)[0]
    ).first_day
    days_by_member = defaultdict[tuple[str, str], set[date]](set)
    for day, rows in quality_by_day.items():
        for row in rows:
            days_by_member[row["account"], row["region"]].add(day)
    members: list[MemberTables] = []
    for (account, region), present_days in sorted(days_by_member.items()):
        if max(present_days) < first_expected_day:
            continue
        path_by_day = {
            day: make_table_path("incidents", day) for day in days if day in present_days
        }
        is_expected = min(present_days) < days.first_day
        members.append(MemberTables(account, region, path_by_day, is_expected=is_expected))
    return members


def stage_member_tables(
    central_storage: Storage,
    staging: Storage,
    members: Sequence[MemberTables],
    unpack_snappy: Callable[[bytes], bytes],
) -> list[MemberTables]:
    """Copy the tables that Spark may read to `staging`, at the same paths.

    Args:
        central_storage: The storage with the members' tables.
        staging: The storage for the copies. Other accounts must not be able to write there.
        members: The members, with those of one account next to each other.
        unpack_snappy: Unpacks bytes, or raises ValueError.

    Returns:
        The members. A table that was not copied has its reason in `unread_reason_by_path`.
    """
    members_of_accounts = [
        list(account_members)
        for _, account_members in groupby(members, key=lambda member: member.account)
    ]
    staged_members: list[MemberTables] = []
    with ThreadPoolExecutor(_ACCOUNTS_READ_AT_ONCE) as thread_pool:
        for members_of_account in thread_pool.map(
            partial(_stage_tables_of_account, central_storage, staging, unpack_snappy),
            members_of_accounts,
        ):
            staged_members.extend(members_of_account)
    return staged_members


def _stage_tables_of_account(
    central_storage: Storage,
    staging: Storage,
    unpack_snappy: Callable[[bytes], bytes],
    members: Sequence[MemberTables],
) -> list[MemberTables]:
    """Copy the tables of one account's members, as long as its allowance lasts."""
    allowance = _Allowance()
    staged_members: list[MemberTables] = []
    for member in members:
        path_by_day: dict[date, str] = {}
        unread_reason_by_path = dict(member.unread_reason_by_path)
        for day, path in sorted(member.path_by_day.items()):
            try:
                content = allowance.read_table(central_storage, path, unpack_snappy)
            except PackedTableRefused as error:
                unread_reason_by_path[path] = str(error)
                continue
            staging.write(path, content)
            path_by_day[day] = path
        staged_members.append(
            replace(member, path_by_day=path_by_day, unread_reason_by_path=unread_reason_by_path)
        )
    return staged_members


@dataclass
class _Allowance:
    """The limits that one account has left. A refused table uses up only its packed bytes."""

    packed_bytes: int = field(default_factory=lambda: MAXIMUM_ACCOUNT_PACKED_BYTES)
    unpacked_size: UnpackedSize = field(
        default_factory=lambda: UnpackedSize(MAXIMUM_ACCOUNT_ROWS, MAXIMUM_ACCOUNT_UNPACKED_BYTES)
    )

    def read_table(
        self, storage: Storage, path: str, unpack_snappy: Callable[[bytes], bytes]
    ) -> bytes:
        """Return the bytes of a table. Raise PackedTableRefused if it must not be unpacked."""
        # A file may have grown since it was found.
        maximum_bytes = min(MAXIMUM_TABLE_BYTES, self.packed_bytes)
        try:
            content = storage.read(path, maximum_bytes + 1) or b""
        except RootUnusable as error:
            raise PackedTableRefused(UNREADABLE_REASON) from error
        if len(content) > maximum_bytes:
            is_table_too_large = maximum_bytes == MAXIMUM_TABLE_BYTES
            raise PackedTableRefused(TOO_LARGE_REASON if is_table_too_large else TOO_MUCH_REASON)
        self.packed_bytes -= len(content)
        size = measure_packed_table(content, SUMMED_COLUMNS, self.unpacked_size, unpack_snappy)
        self.unpacked_size = self.unpacked_size.subtract(size)
        return content


def describe_unread_tables(members: Sequence[MemberTables]) -> Iterator[str]:
    """Yield a line for the job's log for each account with tables that are not read."""
    for account, account_members in groupby(members, key=lambda member: member.account):
        reasons: list[str] = []
        for member in account_members:
            reasons.extend(member.unread_reason_by_path.values())
        if reasons:
            counts_text = ", ".join(
                f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons))
            )
            yield f"{account}: {format_count(len(reasons), 'table')} left out ({counts_text})"
