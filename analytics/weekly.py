"""A week's summary.json, from the tables of its nightly runs, their own accounts and the case
bucket.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from analytics.cases import (
    MOST_COUNTED,
    MOST_NAME,
    STANDING_DAYS,
    CaseFiles,
    case_files,
    shortened,
)
from analytics.days import PREVIOUS_WEEKS, Days, days_of, weeks_before
from analytics.nightly import NightlyResult, read_last_findings, read_last_measurements
from analytics.storage import Storage
from analytics.tables import SUMS, Tables, path_of, read_members
from analytics.week import Observation, summary
from analytics.week_parts import ByDay, Row, listed, rows_of, without_own
from mendq.model.json_text import without_nan
from mendq.nightly.verdict import (
    ABOUT,
    NIGHTLY_RUNS,
    NightlyRead,
    day_named,
    member_key,
    nightly_key,
    read_nightly,
    shared_folder,
    week_named,
)
from mendq.notifications.text import format_count

# The weeks before that this one is compared with.
_DAYS_BEFORE = 7 * PREVIOUS_WEEKS


def case_bucket(cases: Storage, findings: Storage | None, week: str) -> CaseFiles:
    """What the case bucket says of the week, and of what was before it."""
    days = days_of(week)
    found = read_last_findings(findings, days) if findings else ()
    queues = read_last_measurements(findings) if findings else {}
    return replace(case_files(cases, days, STANDING_DAYS), found=found, queues=queues)


def write_week(  # noqa: PLR0913 - what is seen, where it goes, and three things of the clock
    cases: CaseFiles | None,
    tables: Tables,
    week: str,
    made_at: datetime,
    scheduled_at: datetime | None = None,
    *,
    zone: tzinfo = UTC,
    about: Callable[[Days, ByDay], dict[str, Any]] | None = None,
) -> int:
    """How many nightly runs of the week exist; the document is written in any case.

    Without `cases` it says nothing about them, and without `about` nothing of an organization.
    """
    days = days_of(week)
    seen = _seen(days, cases, tables)
    document = summary(week, seen, made_at, scheduled_at, zone)
    if about:
        document["organization"] = about(days, seen.quality)
    path, say = f"summary/week={week}/summary.json", tables.say
    tables.out.put(path, as_json(document))
    nightly_runs = sum(day in seen.quality for day in days)
    if seen.cases:
        say(f"{format_count(len(seen.cases.lives), 'case')} since {seen.cases.since}")
    incidents = format_count(document["totals"]["incidents"], "incident")
    say(f"{path}: {incidents} from {format_count(nightly_runs, 'nightly run')}")
    if not document["not_seen"]["week_is_over"]:
        say(f"{week} is not over: its page will be made, and nothing sent")
    return nightly_runs


def write_incidents(
    tables: Tables, requested: Days, written: NightlyResult, made_at: datetime
) -> None:
    """Write what `mendq backtest` reads: the weeks, and the incidents with what would be believed.

    Nobody's cases are known.
    """
    weeks = sorted({week_named(day) for day in requested})
    for week in weeks:
        write_week(None, tables, week, made_at)
    by_day = tables.rows("incidents", [each.day for each in written.nightly_runs])
    incidents = [
        listed(row) | {"evidence": written.evidence.get(row["incident_id"], [])}
        for row in rows_of(without_own(by_day))
    ]
    days = [str(each) for each in sorted(by_day)]
    content = as_json({"weeks": weeks, "days": days, "incidents": incidents})
    tables.out.put("incidents.json", content)


def _seen(days: Days, cases: CaseFiles | None, tables: Tables) -> Observation:
    reach = days.widened(_DAYS_BEFORE, 0)
    incidents, quality = (tables.rows(name, reach) for name in ("incidents", "quality"))
    both = sorted(incidents.keys() & quality.keys())
    return Observation(
        {day: incidents[day] for day in both},
        {day: quality[day] for day in both},
        cases,
        _reads(tables.out, reach),
        _began(tables.out),
    )


def _began(out: Storage) -> date | None:
    """The first day that a nightly run wrote tables of, or that it read nothing."""
    names = [*out.folders("quality"), *out.folders(NIGHTLY_RUNS)]
    return min(filter(None, (day_named(each.removeprefix("dt=")) for each in names)), default=None)


def _reads(out: Storage, days: Days) -> dict[date, NightlyRead]:
    """What nightly runs said of themselves; what tells of another day is not believed."""
    reads = {day: read_nightly(out.read(nightly_key(day)) or b"") for day in days}
    return {day: read for day, read in reads.items() if read and read.day == day}


@dataclass(frozen=True)
class Member:
    """A stack of the organization: the days of the week that it told of, where, and what is unread.

    `is_expected` where it told of anything in the weeks before; `unread` has paths with a reason.
    """

    account: str
    region: str = ""
    days: Mapping[date, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    is_expected: bool = True

    def state(self, days: Days) -> str:
        """Who was there before owes every day of the week; who was not, those since its first."""
        there = self.days.keys() | {_day_of(path) for path in self.unread}
        if not there:
            return SILENT
        due = [day for day in days if self.is_expected or day >= min(filter(None, there))]
        return REPORTED if there.issuperset(due) else LATE


SILENT, LATE, REPORTED = "silent", "late", "reported"
# Who told of nothing for longer is gone, unless settings name it.
EXPECTED_WEEKS = 4
MOST_TABLE_BYTES = 20_000_000
MOST_ABOUT_BYTES = 1_000
MOST_MEMBERS, MOST_UNREAD, MOST_REGIONS = 200, 20, 40
_AT_ONCE = 16
_ACCOUNT = re.compile("account=([0-9]{12})")
_REGION = re.compile("region=([a-z]{2}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2})")
_ALIAS = re.compile("[a-z0-9-]{3,63}")


def members(central: Storage, week: str) -> list[Member]:
    """Who told of anything in the week, or in EXPECTED_WEEKS before it.

    Three listings for each, whatever it has stored; names that are none of ours are passed over.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(partial(_of_account, central, week), central.folders(""))
        return [each for of_account in found for each in of_account]


def _of_account(central: Storage, week: str, folder: str) -> list[Member]:
    if not (account := _ACCOUNT.fullmatch(folder)):
        return []
    regions = filter(None, map(_REGION.fullmatch, central.folders(folder)[:MOST_REGIONS]))
    found = (_member(central, week, account[1], region[1]) for region in regions)
    return [each for each in found if each.days or each.unread or each.is_expected]


def _member(central: Storage, week: str, account: str, region: str) -> Member:
    folder = shared_folder(account, region, "incidents", week)
    there, unread = dict[date, str](), dict[str, str]()
    for path, size in central.files(folder).items():
        day = _day_of(path)
        if day is None or week_named(day) != week or not path.endswith(".parquet"):
            continue
        if 0 < size <= MOST_TABLE_BYTES:
            there[day] = path
        else:
            unread[path] = "too_large" if size else "empty"
    before = {f"week={each}" for each in weeks_before(week, EXPECTED_WEEKS)}
    is_expected = bool(before.intersection(central.folders(folder.rpartition("/")[0])))
    return Member(account, region, there, unread, is_expected)


def _day_of(path: str) -> date | None:
    return day_named(path.rpartition("/")[2].removesuffix(".parquet"))


def members_of_one_trail(week: str, quality: ByDay) -> list[Member]:
    """Who has files in the trail that serves all; the tables of a day are everybody's."""
    days, seen = days_of(week), defaultdict[tuple[str, str], set[date]](set)
    first = weeks_before(week, EXPECTED_WEEKS)[0]
    for day, rows in quality.items():
        for row in rows:
            seen[row["account"], row["region"]].add(day)
    return [
        Member(
            *place,
            {day: path_of("incidents", day) for day in days if day in there},
            is_expected=min(there) < days.first,
        )
        for place, there in sorted(seen.items())
        if max(there) >= days_of(first).first
    ]


def organization(
    days: Days, root: Storage, spark: SparkSession, found: Sequence[Member], expected: Iterable[str]
) -> dict[str, Any]:
    """What the members told of the week, each by itself and together (docs/summary.md)."""
    known = {each.account for each in found}
    every = [*found, *(Member(each) for each in sorted({*expected} - known))]
    paths = dict.fromkeys(path for each in every for path in each.days.values())
    (of_members, needy), bad = read_members(spark, root, [*paths])
    sums = {(row["of_account"], row["of_region"]): row for row in of_members}
    rows = [_reported(each, sums.get((each.account, each.region), {}), days, bad) for each in every]
    rows.sort(key=_neediest)
    for row in rows[:MOST_MEMBERS]:
        row["alias"] = _alias(root, row["account"], row["region"])
    unread = {path: why for each in every for path, why in each.unread.items()}
    unread |= dict.fromkeys(bad, "unreadable")
    return {
        "totals": {
            "accounts": len({row["account"] for row in rows}),
            **{state: sum(row["state"] == state for row in rows) for state in (SILENT, LATE)},
            **{name: sum(row[name] for row in rows) for name in (*SUMS, "files_unreadable")},
        },
        "members": rows[:MOST_MEMBERS],
        "members_left_out": len(rows[MOST_MEMBERS:]),
        "queues": [_needy(row) for row in needy],
        "unreadable_files": [
            {"file": path, "reason": unread[path]} for path in sorted(unread)[:MOST_UNREAD]
        ],
    }


def _reported(member: Member, sums: Row, days: Days, bad: Collection[str]) -> dict[str, Any]:
    there = [*member.days, *filter(None, map(_day_of, member.unread))]
    unreadable = len(member.unread) + sum(path in bad for path in member.days.values())
    return {
        "account": member.account,
        "region": member.region,
        "state": member.state(days),
        "last_day": str(max(there)) if there else None,
        **{name: min(int(sums.get(name) or 0), MOST_COUNTED) for name in SUMS},
        "files_unreadable": unreadable,
    }


def _neediest(row: Row) -> tuple[bool, int, int, bool, int, str, str]:
    is_odd = row["state"] != REPORTED or row["rows_left_out"] or row["files_unreadable"]
    waits = row["waiting"], row["urgent"] if row["waiting"] else 0
    return (
        not waits[0],
        -waits[0],
        -waits[1],
        not is_odd,
        -row["incidents"],
        row["account"],
        row["region"],
    )


def _needy(row: Row) -> dict[str, Any]:
    names = {"account": row["of_account"], "region": row["of_region"], "queue_arn": row["queue"]}
    worst = {each: shortened(row["worst"][each], MOST_NAME) for each in ("symptom", "outcome")}
    calls = min(int(row["failed_calls"]), MOST_COUNTED)
    counts = {"incidents": row["waiting"], "failed_calls": calls, "urgent": row["pages"] > 0}
    return {**names, **worst, **counts}


def _alias(root: Storage, account: str, region: str) -> str:
    """What people call the account, as it says itself; empty where that is no alias."""
    path = f"{member_key(account, region)}/{ABOUT}"
    size = root.files(member_key(account, region)).get(path, 0)
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        if 0 < size <= MOST_ABOUT_BYTES:
            alias = json.loads(root.read(path) or b"")["alias"]
            return str(alias) if _ALIAS.fullmatch(alias) else ""
    return ""


def as_json(document: Mapping[str, Any]) -> bytes:
    """In UTF-8, which is a third of JSON's own way to spell what hostile names may hold.

    Half a character, which UTF-8 cannot spell, is spelled in that way.
    """
    finite = without_nan(document)
    text = json.dumps(finite, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace")
