"""Starting EMR Serverless jobs. botocore's Stubber checks the request; nothing runs on EMR."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber
from msgspec.structs import replace

from mendq.aws.clients import Clients
from mendq.model.plan import Refusal
from mendq.model.settings import ORGANIZATION_SCOPE, StartNightlySettings
from mendq.nightly.jobs import (
    STATES_OF_ACTIVE_RUNS,
    Job,
    NightlyJobRoots,
    make_nightly_job,
    make_week_job,
    start_job,
)

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient

ROOTS = NightlyJobRoots("s3://trail", "s3://cases", "s3://out", "123456789012", "us-east-1")
AT = datetime(2026, 11, 16, 2, 0, tzinfo=UTC)
SETTINGS = StartNightlySettings(
    account="123456789012",
    application_id="00f1a2b3",
    job_role_arn="arn:aws:iam::123456789012:role/mendq-nightly-us-east-1",
    entry_point="s3://code/job.py",
    package="s3://code/package.zip",
    compiled_packages="s3://code/compiled.tgz",
    trail_root=ROOTS.trail_root,
    case_root=ROOTS.case_root,
    out_root=ROOTS.table_root,
    log_root="s3://out/logs/",
    maximum_executors=7,
)
# The StartJobRun request: the same Python and packages on driver and executors (the default of
# EMR is Python 3.9), and a maximum of executors (the default has no maximum).
REQUEST = json.loads(Path(__file__).with_name("start_job_run.json").read_text())


def test_nightly_job_covers_yesterday_and_the_day_before_again() -> None:
    job = make_nightly_job(AT, ROOTS)
    days = ("--from", "2026-11-14", "--to", "2026-11-15")
    roots = ("--trail", "s3://trail")
    assert job.arguments[:7] == ("backfill", *days, *roots)
    assert job.arguments[7:11] == ("--cases", "s3://cases", "--out", "s3://out")
    assert job.arguments[11:] == ("--account", "123456789012", "--region", "us-east-1")
    assert job.name == "nightly-2026-11-15"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (datetime(2026, 11, 16, 6, tzinfo=UTC), "2026-W46"),
        (datetime(2027, 1, 4, 6, tzinfo=UTC), "2026-W53"),
        (datetime(2024, 12, 30, 6, tzinfo=UTC), "2024-W52"),
    ],
)
def test_week_job_covers_the_last_complete_iso_week(at: datetime, expected: str) -> None:
    scheduled = ("--scheduled-at", f"{at:%Y-%m-%dT%H:%M:%S.000Z}", "--time-zone", "UTC")
    assert make_week_job(at, ROOTS).arguments[:7] == ("weekly", "--week", expected, *scheduled)
    assert make_week_job(at, ROOTS).name == f"week-{expected}"


ORGANIZATION_ROOTS = replace(ROOTS, organization_root="s3://central", expected_accounts=("1", "2"))


def test_organization_week_job_gets_the_shared_bucket_and_the_expected_accounts() -> None:
    assert make_week_job(AT, ORGANIZATION_ROOTS).arguments[-4:] == (
        "--organization",
        "s3://central",
        "--expected",
        "1,2",
    )


def test_nightly_job_reads_only_its_own_account_unless_the_trail_is_of_the_organization() -> None:
    organization_trail_roots = replace(ROOTS, scope=ORGANIZATION_SCOPE)
    assert "--account" in make_nightly_job(AT, ORGANIZATION_ROOTS).arguments
    assert "--account" not in make_nightly_job(AT, organization_trail_roots).arguments


def test_job_client_token_is_valid_for_emr_and_equal_only_for_the_same_scheduled_time() -> None:
    token = make_nightly_job(AT, ROOTS).make_client_token(AT)
    later = AT + timedelta(hours=1)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", token)
    assert token == make_nightly_job(AT, ROOTS).make_client_token(AT)
    assert make_nightly_job(later, ROOTS).make_client_token(later) != token


def make_job_run(name: str) -> dict[str, Any]:
    arn = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00f1a2b3/jobruns/run-1"
    who = dict.fromkeys(("createdBy", "executionRole"), SETTINGS.job_role_arn)
    what = {"applicationId": "00f1a2b3", "id": "run-1", "name": name, "arn": arn}
    state = {"state": "RUNNING", "stateDetails": "running", "releaseLabel": "emr-7.14.0"}
    return {**what, **who, **state, "createdAt": AT, "updatedAt": AT}


@contextmanager
def stub_emr(*active: str) -> Iterator[tuple[EMRServerlessClient, Stubber]]:
    """Yield EMR Serverless with these active runs, which answers one request for a new run."""
    clients = Clients(boto3.Session(region_name="us-east-1"))
    asked = {"applicationId": "00f1a2b3", "states": list(STATES_OF_ACTIVE_RUNS)}
    started = {"applicationId": "00f1a2b3", "jobRunId": "run-2", "arn": make_job_run("x")["arn"]}
    with Stubber(clients.emr) as emr:
        emr.add_response(
            "list_job_runs", {"jobRuns": [make_job_run(name) for name in active]}, asked
        )
        emr.add_response("start_job_run", started, REQUEST)
        yield clients.emr, emr


@pytest.mark.parametrize("job", [make_nightly_job(AT, ROOTS), make_week_job(AT, ROOTS)])
def test_start_job_is_refused_and_starts_nothing_while_a_run_of_the_same_kind_is_active(
    job: Job,
) -> None:
    with stub_emr(f"{job.kind}-2026-11-01") as (client, emr):
        refusal = start_job(client, SETTINGS, job, AT)
        assert isinstance(refusal, Refusal)
        assert refusal.code == "run_active"
        with pytest.raises(AssertionError, match="1 responses remaining"):
            emr.assert_no_pending_responses()


def test_start_job_starts_a_run_although_runs_of_other_kinds_are_active() -> None:
    with stub_emr("week-2026-W45", "adhoc") as (client, emr):
        assert start_job(client, SETTINGS, make_nightly_job(AT, ROOTS), AT) == "run-2"
        emr.assert_no_pending_responses()
