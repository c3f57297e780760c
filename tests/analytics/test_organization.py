"""The weekly summary of an organization: complete, silent, late and unreliable accounts."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics import members, weekly
from analytics.days import parse_week_days
from analytics.job import parse_arguments, run_command
from analytics.members import list_members, list_members_of_one_trail, stage_member_tables
from analytics.storage import FolderStorage, RootUnusable, StorageEntry, unpack_snappy
from analytics.tables import Tables
from analytics.week import WeekInput
from analytics.weekly import OrganizationTables, summarize_organization
from mendq.nightly.verdict import make_shared_table_prefix, name_of_week
from mendq.report.summary import read_summary
from tests.analytics.builders import (
    ACCOUNT,
    REGION,
    SCHEMAS,
    NightlyFolders,
    make_burst,
    make_transition,
)
from tests.analytics.packed_bombs import pack, pack_copies
from tests.analytics.week_builders import (
    DAYS,
    MONDAY,
    WEEK,
    make_account_incident,
    make_file_row,
)

LIAR, SILENT, LATE, WHOLE, LISTED, FORMER = (f"{digit}" * 12 for digit in "123456")


class SharedBucket:
    """The organization's shared bucket as a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, account: str, day: date, *rows: dict[str, Any], week: str = WEEK) -> Path:
        path = (
            self.folder
            / make_shared_table_prefix(account, REGION, "incidents", week)
            / f"{day}.parquet"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows), SCHEMAS["incidents"]), path)
        return path

    def put_week(self, account: str, *rows: dict[str, Any]) -> None:
        for day in DAYS:
            self.put(account, day, *(rows if day == MONDAY else ()))

    def put_alias(self, account: str, alias: object) -> None:
        about = self.folder / f"account={account}" / f"region={REGION}" / "account.json"
        about.write_text(json.dumps({"schema": 1, "alias": alias}))

    def summarize(self, spark: SparkSession, *expected: str) -> dict[str, Any]:
        return self.summarize_and_log(spark, *expected)[0]

    def summarize_and_log(
        self, spark: SparkSession, *expected: str
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the summary and the lines of the job's log."""
        root = FolderStorage(str(self.folder))
        lines: list[str] = []
        tables = Tables(spark, FolderStorage(str(self.folder.with_name("hub"))), lines.append)
        organization = OrganizationTables(root, frozenset(expected))
        document = summarize_organization(
            parse_week_days(WEEK), tables, list_members(root, WEEK), organization
        )
        return document, lines


@pytest.fixture
def shared_bucket(tmp_path: Path) -> SharedBucket:
    return SharedBucket(tmp_path / "central")


class ListingRecorder(FolderStorage):
    """The shared bucket as a folder that records which folders are listed."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.listed_files: list[str] = []

    def list_entries(self, folder: str) -> list[StorageEntry]:
        """Record the folder, then list it."""
        self.listed_files.append(folder)
        return super().list_entries(folder)


def group_by_account(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {member["account"]: member for member in told["members"]}


@pytest.fixture
def organization_week(shared_bucket: SharedBucket, spark: SparkSession) -> dict[str, Any]:
    """Return the summary of five accounts: two reported, one is late and two are silent.

    One of the two that reported also sent three rows about other accounts, regions and queues. A
    sixth account sent its last day two months ago.
    """
    waits = make_account_incident(WHOLE, 2, outcome="escalated", urgent=True, failed_calls=7)
    shared_bucket.put_week(WHOLE, make_account_incident(WHOLE, outcome="healed"), waits)
    true = make_account_incident(LIAR, outcome="proposed")
    of_another = make_account_incident(WHOLE, 3, outcome="escalated")
    elsewhere = make_account_incident(LIAR, 4) | {"region": "eu-west-1"}
    another_queue = make_account_incident(LIAR, 5, outcome="escalated") | {
        "queue_arn": waits["queue_arn"]
    }
    shared_bucket.put_week(LIAR, true, of_another, elsewhere, another_queue)
    for day in DAYS[:5]:
        shared_bucket.put(LATE, day)
    shared_bucket.put(LATE, MONDAY - timedelta(days=7), week="2026-W45")
    shared_bucket.put(SILENT, MONDAY - timedelta(days=20), week="2026-W43")
    shared_bucket.put(FORMER, MONDAY - timedelta(days=60), week="2026-W37")
    return shared_bucket.summarize(spark, LISTED, WHOLE)


def test_organization_summary_names_accounts_that_reported_are_late_or_are_silent(
    organization_week: dict[str, Any],
) -> None:
    members = group_by_account(organization_week)
    assert {account: member["state"] for account, member in members.items()} == {
        WHOLE: "reported",
        LIAR: "reported",
        LATE: "late",
        SILENT: "silent",
        LISTED: "silent",
    }
    assert members[LATE]["last_day"] == str(DAYS[4])


def test_account_that_has_sent_nothing_for_two_months_is_no_member_of_the_summary(
    organization_week: dict[str, Any],
) -> None:
    assert FORMER not in group_by_account(organization_week)


def test_organization_summary_leaves_out_and_counts_rows_that_an_account_sent_about_others(
    organization_week: dict[str, Any],
) -> None:
    members = group_by_account(organization_week)
    assert (members[LIAR]["incidents"], members[LIAR]["rows_left_out"]) == (1, 3)
    assert (members[WHOLE]["incidents"], members[WHOLE]["rows_left_out"]) == (2, 0)


def test_organization_summary_counts_healed_waiting_and_urgent_incidents_of_an_account(
    organization_week: dict[str, Any],
) -> None:
    members = group_by_account(organization_week)
    assert [members[WHOLE][name] for name in ("healed", "waiting", "urgent")] == [1, 1, 1]


def test_organization_summary_lists_queues_that_need_a_person_and_totals_of_all_accounts(
    organization_week: dict[str, Any],
) -> None:
    queues = [
        (queue["account"], queue["outcome"], queue["failed_calls"])
        for queue in organization_week["queues"]
    ]
    assert queues == [(WHOLE, "escalated", 10), (LIAR, "proposed", 3)]
    assert organization_week["totals"] == {
        "accounts": 5,
        "silent": 2,
        "late": 1,
        "incidents": 3,
        "failed_calls": 13,
        "healed": 1,
        "urgent": 1,
        "waiting": 2,
        "rows_left_out": 3,
        "files_unreadable": 0,
    }


def test_organization_summary_of_only_silent_accounts_names_them_and_counts_nothing(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    """A report that failed here would hide that every account is silent."""
    shared_bucket.put(SILENT, MONDAY - timedelta(days=20), week="2026-W43")
    document = shared_bucket.summarize(spark, LISTED)
    states = {member["account"]: member["state"] for member in document["members"]}
    assert states == {SILENT: "silent", LISTED: "silent"}
    assert document["totals"]["silent"] == 2
    assert document["totals"]["incidents"] == document["totals"]["failed_calls"] == 0
    assert document["queues"] == []


def test_list_members_lists_one_folder_per_account_however_many_keys_are_stored(
    shared_bucket: SharedBucket,
) -> None:
    for account in (WHOLE, LATE):
        shared_bucket.put_week(account, make_account_incident(account))
        for weeks in range(1, 20):
            day = MONDAY - timedelta(weeks=weeks)
            shared_bucket.put(account, day, week=name_of_week(day))
    bucket = ListingRecorder(str(shared_bucket.folder))
    assert {member.account for member in list_members(bucket, WEEK)} == {WHOLE, LATE}
    accounts = [f"account={account}" for account in sorted((WHOLE, LATE))]
    assert sorted(bucket.listed_files) == ["", *accounts]


def test_unreadable_table_of_a_member_account_is_reported_and_its_other_days_are_counted(
    shared_bucket: SharedBucket, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAXIMUM_TABLE_BYTES", 100_000)
    shared_bucket.put_week(WHOLE, make_account_incident(WHOLE))
    shared_bucket.put_week(LIAR, make_account_incident(LIAR))
    torn, empty, large = (
        shared_bucket.put(LIAR, day, make_account_incident(LIAR, 2)) for day in DAYS[1:4]
    )
    torn.write_bytes(torn.read_bytes()[:-9])
    empty.write_bytes(b"")
    large.write_bytes(large.read_bytes() + b"0" * 100_000)
    other = pa.table({"account": [1.5], "region": [LIAR]})
    pq.write_table(other, shared_bucket.put(LIAR, DAYS[4]))
    told = shared_bucket.summarize(spark)
    found = group_by_account(told)
    assert found[WHOLE]["files_unreadable"] == 0
    assert found[WHOLE]["incidents"] == found[LIAR]["incidents"] == 1
    reasons = {Path(file["file"]).stem: file["reason"] for file in told["unreadable_files"]}
    assert reasons == {
        str(DAYS[1]): "unreadable",
        str(DAYS[2]): "empty",
        str(DAYS[3]): "too_large",
        str(DAYS[4]): "unreadable",
    }
    assert found[LIAR]["files_unreadable"] == 4
    assert found[LIAR]["state"] == "reported"


def test_greedy_account_loses_only_its_own_tables_and_the_report_and_the_log_name_it(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    """One table has too many rows, one unpacks to 5 GB, one is packed otherwise."""
    shared_bucket.put_week(WHOLE, make_account_incident(WHOLE))
    shared_bucket.put_week(LIAR, make_account_incident(LIAR))
    rows_bomb, text_bomb, packed_otherwise = (
        shared_bucket.put(LIAR, day, make_account_incident(LIAR)) for day in DAYS[1:4]
    )
    rows_bomb.write_bytes(pack_copies(make_account_incident(LIAR), 300_000))
    long_name = {"symptom": "s" * 500_000}
    text_bomb.write_bytes(pack_copies(make_account_incident(LIAR) | long_name, 10_000))
    packed_otherwise.write_bytes(pack([make_account_incident(LIAR)], compression="zstd"))
    assert max(path.stat().st_size for path in (rows_bomb, text_bomb)) < 100_000
    document, log = shared_bucket.summarize_and_log(spark)
    found = group_by_account(document)
    assert (found[WHOLE]["incidents"], found[WHOLE]["files_unreadable"]) == (1, 0)
    assert (found[LIAR]["incidents"], found[LIAR]["files_unreadable"]) == (1, 3)
    reasons = {Path(file["file"]).stem: file["reason"] for file in document["unreadable_files"]}
    assert reasons == {
        str(DAYS[1]): "too_much",
        str(DAYS[2]): "too_much",
        str(DAYS[3]): "unreadable",
    }
    assert log == [f"{LIAR}: 3 tables left out (2 too_much, 1 unreadable)"]


def test_each_account_has_its_own_limit_of_rows_for_all_its_days_and_regions_together(
    shared_bucket: SharedBucket, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAXIMUM_ACCOUNT_ROWS", 3)
    for account in (WHOLE, LIAR):
        for day in DAYS[:2]:
            shared_bucket.put(account, day, make_account_incident(account))
    first_region = shared_bucket.folder / f"account={LIAR}" / f"region={REGION}"
    other_region = first_region.with_name("region=us-west-2")
    shutil.copytree(first_region, other_region)
    document, _ = shared_bucket.summarize_and_log(spark)
    unread = {
        (member["account"], member["region"]): member["files_unreadable"]
        for member in document["members"]
    }
    assert unread == {(WHOLE, REGION): 0, (LIAR, REGION): 0, (LIAR, "us-west-2"): 1}


def test_tables_of_an_account_beyond_its_limit_of_packed_bytes_are_left_out_and_counted(
    shared_bucket: SharedBucket, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [
        shared_bucket.put(LIAR, day, make_account_incident(LIAR)).stat().st_size for day in DAYS[:3]
    ]
    monkeypatch.setattr(members, "MAXIMUM_ACCOUNT_PACKED_BYTES", sum(sizes) - 1)
    [member] = shared_bucket.summarize(spark)["members"]
    assert (member["incidents"], member["files_unreadable"]) == (2, 1)


def test_table_that_is_larger_than_the_limit_when_it_is_read_is_left_out(
    shared_bucket: SharedBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may grow after it was listed."""
    for day in DAYS[:3]:
        shared_bucket.put(LIAR, day, make_account_incident(LIAR))
    found_before = list_members(FolderStorage(str(shared_bucket.folder)), WEEK)
    monkeypatch.setattr(members, "MAXIMUM_TABLE_BYTES", 100)
    root = FolderStorage(str(shared_bucket.folder))
    staging = FolderStorage(str(shared_bucket.folder.with_name("stage")))
    [staged] = stage_member_tables(root, staging, found_before, bytes)
    assert [*staged.unread_reason_by_path.values()] == ["too_large"] * 3
    assert staging.list_folders("") == []


class RefusedFiles(FolderStorage):
    """A bucket in which one account encrypted its files with a key of its own."""

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        self._refuse(path)
        return super().read(path, maximum_bytes)

    def _refuse(self, path: str) -> None:
        if path.startswith(f"account={LIAR}/"):
            raise RootUnusable("AccessDenied")


class RefusedSizes(RefusedFiles):
    """The same, and S3 answers no question about these files without the key (SSE-C)."""

    def find_file_size(self, path: str) -> int | None:
        self._refuse(path)
        return super().find_file_size(path)


@pytest.mark.parametrize("storage_class", [RefusedFiles, RefusedSizes])
def test_account_whose_files_s3_refuses_has_unreadable_files_and_the_other_accounts_are_reported(
    shared_bucket: SharedBucket, spark: SparkSession, storage_class: type[FolderStorage]
) -> None:
    for account in (WHOLE, LIAR):
        shared_bucket.put_week(account, make_account_incident(account))
        shared_bucket.put_alias(account, "orders-prod")
    root = storage_class(str(shared_bucket.folder))
    tables = Tables(spark, FolderStorage(str(shared_bucket.folder.with_name("hub"))), print)
    document = summarize_organization(
        parse_week_days(WEEK), tables, list_members(root, WEEK), OrganizationTables(root)
    )
    found = group_by_account(document)
    assert (found[WHOLE]["incidents"], found[WHOLE]["alias"]) == (1, "orders-prod")
    assert (found[LIAR]["files_unreadable"], found[LIAR]["alias"]) == (7, "")


def test_table_that_its_account_replaces_after_it_was_measured_is_read_as_it_was_measured(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    shared_bucket.put(LIAR, MONDAY, make_account_incident(LIAR))
    root = FolderStorage(str(shared_bucket.folder))
    staging = FolderStorage(str(shared_bucket.folder.with_name("stage")))
    [member] = stage_member_tables(
        root, staging, list_members(root, WEEK), lambda packed: unpack_snappy(spark, packed)
    )
    measured = (shared_bucket.folder / member.path_by_day[MONDAY]).read_bytes()
    shared_bucket.put(LIAR, MONDAY).write_bytes(b"replaced")
    assert staging.read(member.path_by_day[MONDAY]) == measured


def test_list_of_unreadable_tables_has_20_entries_and_names_every_account_however_many_one_has(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    first_account = "0" * 12
    for region in ("eu-west-1", "eu-west-2", "eu-west-3"):
        for day in DAYS:
            path = shared_bucket.put(first_account, day)
            target = Path(str(path).replace(REGION, region))
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            target.write_bytes(b"")
    shared_bucket.put(WHOLE, MONDAY).write_bytes(b"")
    files = shared_bucket.summarize(spark)["unreadable_files"]
    assert len(files) == 20
    assert any(WHOLE in file["file"] for file in files)


def test_regions_of_an_account_beyond_the_limit_are_left_out_and_other_folders_do_not_count(
    shared_bucket: SharedBucket, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAXIMUM_REGIONS", 1)
    shared_bucket.put(LIAR, MONDAY, make_account_incident(LIAR))
    account_folder = shared_bucket.folder / f"account={LIAR}"
    shutil.copytree(account_folder / f"region={REGION}", account_folder / "region=us-west-2")
    (account_folder / "a").mkdir()
    assert [member["region"] for member in shared_bucket.summarize(spark)["members"]] == [REGION]


def test_organization_summary_leaves_out_and_counts_rows_with_impossible_values(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    odd: list[dict[str, Any]] = [
        *({"failed_calls": calls} for calls in (-1, 2**62, None)),
        *({"account": None}, {"outcome": None}),
    ]
    rows = (
        make_account_incident(LIAR, number) | row_fields for number, row_fields in enumerate(odd, 2)
    )
    shared_bucket.put(LIAR, MONDAY, make_account_incident(LIAR), *rows)
    (found,) = shared_bucket.summarize(spark)["members"]
    assert (found["incidents"], found["rows_left_out"]) == (1, 5)


def test_organization_summary_ignores_foreign_files_and_folders_in_the_shared_bucket(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    path = shared_bucket.put(WHOLE, MONDAY, make_account_incident(WHOLE))
    strays = ("notes.txt", "2026-11-20.parquet", "2026-11-10.json", "x.parquet")
    for stray in strays:
        (path.parent / stray).write_bytes(b"stray")
    for folder in ("account=1", "account=../x", f"account={LIAR}/region=nowhere", "elsewhere"):
        (shared_bucket.folder / folder).mkdir(parents=True)
    told = shared_bucket.summarize(spark)
    assert [member["account"] for member in told["members"]] == [WHOLE]
    assert told["unreadable_files"] == []


@pytest.mark.parametrize(
    ("alias", "shown"),
    [("orders-prod", "orders-prod"), ("<b>x</b>", ""), ("a" * 64, ""), (["a"], ""), ("a\n", "")],
)
def test_account_alias_is_shown_only_if_it_is_a_valid_iam_alias(
    shared_bucket: SharedBucket, spark: SparkSession, alias: object, shown: str
) -> None:
    shared_bucket.put(WHOLE, MONDAY)
    shared_bucket.put_alias(WHOLE, alias)
    assert shared_bucket.summarize(spark)["members"][0]["alias"] == shown


def test_organization_summary_excludes_incidents_of_the_probe_and_operators_own_looks(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    own = make_account_incident(WHOLE) | {
        "queue_arn": f"arn:aws:sqs:{REGION}:{WHOLE}:mendq-probe.fifo"
    }
    shared_bucket.put(WHOLE, MONDAY, own, make_account_incident(WHOLE, 2) | {"why": "own_look"})
    (found,) = shared_bucket.summarize(spark)["members"]
    assert (found["incidents"], found["rows_left_out"]) == (0, 0)


def test_member_account_that_joins_during_the_week_is_not_late(
    shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    for day in DAYS[3:]:
        shared_bucket.put(WHOLE, day)
    (found,) = shared_bucket.summarize(spark)["members"]
    assert found["state"] == "reported"


def test_organization_summary_above_its_limit_lists_members_that_wait_first_and_counts_the_others(
    shared_bucket: SharedBucket, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weekly, "MAXIMUM_LISTED_MEMBERS", 2)
    for account, outcome in ((LATE, "healed"), (LIAR, "healed"), (WHOLE, "escalated")):
        shared_bucket.put_week(account, make_account_incident(account, outcome=outcome))
    told = shared_bucket.summarize(spark)
    assert [member["account"] for member in told["members"]] == [WHOLE, LIAR]
    assert (told["members_left_out"], told["totals"]["incidents"]) == (1, 3)


def test_one_trail_for_the_organization_gives_each_account_its_state_and_incidents(
    account: NightlyFolders, spark: SparkSession
) -> None:
    """The hub's own tables hold the rows of all accounts."""
    files = [
        make_file_row(account_id, account=account_id, region=REGION) for account_id in (WHOLE, LATE)
    ]
    quality = {day: files if day == MONDAY else files[:1] for day in DAYS}
    quality[MONDAY - timedelta(days=9)] = [
        files[1],
        make_file_row("c", account=SILENT, region=REGION),
    ]
    for day in DAYS:
        account.put(
            "incidents",
            f"{day:%m-%d}",
            [make_account_incident(WHOLE), make_account_incident(LATE)] if day == MONDAY else [],
        )
    seen = WeekInput({}, quality)
    found = list_members_of_one_trail(WEEK, seen.quality_by_day)
    root = FolderStorage(str(account.out))
    tables = Tables(spark, root, print)
    organization = OrganizationTables(root, has_one_trail=True)
    told = group_by_account(
        summarize_organization(parse_week_days(WEEK), tables, found, organization)
    )
    states = {name: (member["state"], member["incidents"]) for name, member in told.items()}
    assert states == {WHOLE: ("reported", 1), LATE: ("late", 1), SILENT: ("silent", 0)}


def test_weekly_job_with_an_organization_writes_its_members_into_the_summary(
    account: NightlyFolders, shared_bucket: SharedBucket, spark: SparkSession
) -> None:
    shared_bucket.put_week(WHOLE, make_account_incident(WHOLE, outcome="escalated"))
    shared_bucket.put_alias(WHOLE, "orders-prod")
    arguments = ["weekly", "--week", WEEK, "--out", str(account.out)]
    where = ["--organization", str(shared_bucket.folder), "--expected", f"{LISTED},{WHOLE}"]
    assert (
        run_command(parse_arguments([*arguments, *where]), spark) == 4
    )  # the hub's own days are missing here
    content = (account.out / f"summary/week={WEEK}/summary.json").read_bytes()
    told = read_summary(content).organization
    assert told is not None
    assert {member.account: member.state for member in told.members} == {
        WHOLE: "reported",
        LISTED: "silent",
    }
    assert told.members[0].alias == "orders-prod"


def test_nightly_job_ignores_a_case_about_another_accounts_queue_and_a_missing_case_bucket(
    account: NightlyFolders, spark: SparkSession
) -> None:
    """One account's case bucket is missing. Another account wrote a case about a foreign queue."""
    gone = "9" * 12
    for account_id in (ACCOUNT, LIAR, gone):
        where: Any = {"recipientAccountId": account_id}
        path = account.trail / account.publish("11-10", make_burst("11-10 09:00", **where))
        there = Path(str(path).replace(f"/{ACCOUNT}/", f"/{account_id}/"))
        there.parent.mkdir(parents=True, exist_ok=True)
        path.rename(there)
    times = {"first_at": "11-10 09:00", "last_at": "11-10 09:02"}
    case = make_transition(1, "refused", "11-10 09:03", **times)
    lie = make_transition(
        1, "escalated", "11-10 09:04", **times, case_id=f"{case['case_id'][:-1]}0"
    )
    for account_id, told in ((ACCOUNT, case), (LIAR, lie)):
        path = account.folder / f"cases-{account_id}/cases/dt=2026-11-10/{told['case_id']}-1.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(told))
    (account.folder / f"cases-{gone}").write_text("no folder")
    roots = ["--trail", str(account.trail), "--out", str(account.out)]
    cases = ["--cases", f"{account.folder}/cases-{{account}}/cases"]
    assert (
        run_command(parse_arguments(["nightly", "--date", "2026-11-10", *roots, *cases]), spark)
        == 0
    )
    rows = {row["account"]: row["outcome"] for row in account.read_rows("incidents", "11-10")}
    assert rows == dict.fromkeys((ACCOUNT, LIAR, gone), "refused")
