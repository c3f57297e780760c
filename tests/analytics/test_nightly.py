"""The nightly job as an operator runs it, on the files of one account."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from pyspark.sql import SparkSession

from analytics import job
from analytics.job import parse
from tests.analytics.authored import QUEUE_ARN, Account, burst, content, record, transition
from tests.analytics.conftest import RunNightly
from tests.real_records import detonations


def test_a_burst_is_one_incident_and_repeating_the_nightly_changes_nothing(
    account: Account, run_nightly: RunNightly
) -> None:
    records = [*burst("11-10 09:00"), *detonations()[:20]]
    file = account.publish("11-10", records)
    assert run_nightly("11-10") == 0
    [incident] = account.rows("incidents", "11-10")
    assert (incident["queue_arn"], incident["symptom"]) == (
        QUEUE_ARN,
        "visibility_timeout_too_short",
    )
    assert (incident["failed_calls"], incident["error_codes"]) == (3, ["MessageNotInflight"])
    [file_read] = account.rows("quality", "11-10")
    assert (file_read["file"], file_read["reason"]) == (file, None)
    assert file_read["records"] == len(records)
    first = account.written()
    assert set(first) == {
        "nightly/dt=2026-11-10/nightly.json",
        *(
            f"{table}/dt=2026-11-10/{table}.parquet"
            for table in ("failed_calls", "incidents", "quality")
        ),
    }
    assert run_nightly("11-10") == 0
    assert account.written() == first


def test_a_late_file_joins_bursts_and_fixes_every_day_they_touch(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", burst("11-10 23:50", calls=1))
    account.publish("11-11", burst("11-11 00:15", calls=1))
    assert run_nightly("11-10", "11-11") == 0
    assert len(account.rows("incidents", "11-11")) == 1
    account.publish("11-12", burst("11-11 00:02", calls=1))
    assert run_nightly("11-11") == 0
    [joined] = account.rows("incidents", "11-10")
    assert joined["failed_calls"] == 3
    assert account.rows("incidents", "11-11") == []
    assert len(account.rows("failed_calls", "11-11")) == 2


def hostile_files() -> dict[str, tuple[bytes, str | None]]:
    """Each with the reason that quality gives."""
    good = content(burst("11-10 09:00"))
    bomb = gzip.compress(bytes(51 * 1024 * 1024))
    return {
        "truncated.json.gz": (good[:-20], "truncated"),
        "html.json.gz": (b"<html><body>503</body></html>", "not_gzip"),
        "zipped-html.json.gz": (gzip.compress(b"<html>"), "not_json"),
        "empty.json.gz": (b"", "empty"),
        "shape.json.gz": (gzip.compress(b'{"digestS3Bucket": "b"}'), "not_a_trail_file"),
        "list.json.gz": (gzip.compress(b"[]"), "not_a_trail_file"),
        "deep.json.gz": (gzip.compress(b"[" * 200_000), "not_json"),
        "bomb.json.gz": (bomb, "too_large"),
        "_hidden.json.gz": (good, "not_read"),
        "plain.json": (b'{"Records": []}', "not_json_gz"),
        "two-members.json.gz": (gzip.compress(b'{"Records"') + gzip.compress(b": []}"), None),
        "types.json.gz": (content([None, 7, "x", [], {}, {"eventSource": 1}]), None),
        "surrogate.json.gz": (
            content([record("11-10 10:00", errorCode="\ud800", awsRegion="\udfff")]),
            None,
        ),
    }


def test_a_hostile_file_costs_itself_and_nothing_else(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    files = hostile_files()
    for name, (written, _) in files.items():
        account.publish("11-10", written, name=name)
    for kind in ("CloudTrail-Digest", "CloudTrail-Insight", "CloudTrail-NetworkActivity"):
        account.publish("11-10", burst("11-10 11:00"), kind=kind)
    account.publish("11-10", burst("11-10 11:00"), kind="CloudTrail-Aggregated")
    account.cases.joinpath("dt=2026-11-10").mkdir(parents=True)
    account.cases.joinpath("dt=2026-11-10", "x-1.json").write_text("{")
    assert run_nightly("11-10") == 3
    quality = {each["file"].rpartition("/")[2]: each for each in account.rows("quality", "11-10")}
    assert {name: quality[name]["reason"] for name in files} == {
        name: reason for name, (_, reason) in files.items()
    }
    assert len(quality) == len(files) + 1
    assert quality["types.json.gz"]["unreadable_records"] == [
        {"reason": "not_a_record", "records": 4}
    ]
    symptoms = {
        each["symptom"]: each["failed_calls"] for each in account.rows("incidents", "11-10")
    }
    assert symptoms == {"visibility_timeout_too_short": 3, "unknown:?": 1}


def test_what_only_bears_a_log_s_name_costs_itself_and_never_the_nightly(
    account: Account, run_nightly: RunNightly
) -> None:
    """A reader of a pipe waits until somebody writes into it: for ever, if nobody does."""
    good = account.publish("11-10", burst("11-10 09:00"))
    day = (account.trail / good).parent
    (account.folder / "elsewhere.json.gz").write_bytes(content(burst("11-10 12:00", calls=4)))
    (day / "linked.json.gz").symlink_to(account.folder / "elsewhere.json.gz")
    os.mkfifo(day / "pipe.json.gz")
    os.mkfifo(day / "pipe-of-another-name")
    (day / "to-nothing.json.gz").symlink_to("gone.json.gz")
    (day / "round.json.gz").symlink_to("round.json.gz")
    (day / "folder.json.gz").mkdir()
    os.mkfifo(day / "folder.json.gz" / "pipe.json.gz")
    (day / "folder.json.gz" / "deeper.json.gz").write_bytes(content(burst("11-10 15:00")))
    assert run_nightly("11-10") == 0
    reasons = {
        each["file"].rpartition("/")[2]: each["reason"] for each in account.rows("quality", "11-10")
    }
    strange = ("pipe.json.gz", "to-nothing.json.gz", "round.json.gz", "folder.json.gz")
    assert reasons == {
        Path(good).name: None,
        "linked.json.gz": None,
        **dict.fromkeys(strange, "no_file"),
    }
    found = account.rows("incidents", "11-10")
    assert [each["failed_calls"] for each in found] == [3, 4]
    assert account.nightly("11-10")["files_unreadable"] == len(strange)
    first = account.written()
    assert run_nightly("11-10") == 0
    assert account.written() == first


def test_a_week_is_written_from_the_nightly_runs_that_exist(
    account: Account, run_nightly: RunNightly, spark: SparkSession
) -> None:
    weekly = ["weekly", "--week", "2026-W46", f"--out={account.out}"]
    assert job.run(parse(weekly), spark) == 4
    account.publish("11-10", burst("11-10 09:00"))
    account.record_transitions(
        *(
            transition(n, state, f"11-10 09:0{n}", first_at="11-10 09:00", last_at="11-10 09:02")
            for n, state in ((2, "verified"), (1, "applied"))
        )
    )
    assert run_nightly("11-10") == 0
    assert job.run(parse(weekly), spark) == 0
    path = account.out / "summary" / "week=2026-W46" / "summary.json"
    document = json.loads(path.read_text())
    assert document["by_outcome"] == {"healed": 1}
    [case] = document["cases"]
    assert (case["seconds_to_heal"], case["notified"], case["why"]) == (120.0, False, None)
    assert len(document["not_seen"]["nightly_runs_missing"]) == 6
