"""The watch_nightly Lambda reads from EMR and S3 how a nightly or weekly run ended, and reports it.

botocore's Stubber answers for EMR Serverless. No test here ran on EMR.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from functions import watch_nightly
from mendq.nightly.verdict import (
    NATIVE_READER,
    TABLES_SHARED_WITH_ORGANIZATION,
    NightlyCounts,
    make_nightly_counts_key,
)
from tests.account.account import ACCOUNT, Account
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, sum_metrics
from tests.nightly.events import APPLICATION_ID, make_job_run_event

DAY = date(2026, 11, 15)
RUN_ID = "00f1cbn5g4bb0c01"


@dataclass
class WatchLambda:
    """The watch_nightly Lambda, an account's S3, and EMR Serverless as a Stubber."""

    account: Account
    capture: pytest.CaptureFixture[str]
    log: pytest.LogCaptureFixture
    # CloudWatch refuses metrics that are older than two weeks.
    created_at: datetime = field(
        default_factory=lambda: datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=9)
    )
    printed: str = ""

    def write_counts(self, day: date, records: int, **fields: Any) -> None:
        made_at = fields.pop("made_at", self.created_at + timedelta(minutes=1))
        nightly = NightlyCounts(
            day, made_at, NATIVE_READER, "", records=records, **{"files": 1, **fields}
        )
        self.put(make_nightly_counts_key(day), json.dumps(nightly.document()).encode())

    def put(self, key: str, content: bytes) -> None:
        self.account.clients.s3.put_object(Bucket="cases", Key=key, Body=content)

    def write_earlier_counts(self, days: int = 5) -> None:
        for n in range(1, days + 1):
            earlier = self.created_at - timedelta(days=n)
            self.write_counts(DAY - timedelta(days=n), 10_000, made_at=earlier)

    def make_job_run(self, state: str, name: str | None = "nightly-2026-11-15") -> dict[str, Any]:
        application_arn = (
            f"arn:aws:emr-serverless:us-east-1:123456789012:/applications/{APPLICATION_ID}"
        )
        arn = f"{application_arn}/jobruns/{RUN_ID}"
        role = "arn:aws:iam::123456789012:role/mendq-nightly-us-east-1"
        return ({} if name is None else {"name": name}) | {
            "applicationId": APPLICATION_ID,
            "jobRunId": RUN_ID,
            "arn": arn,
            "createdBy": role,
            "createdAt": self.created_at,
            "updatedAt": self.created_at + timedelta(minutes=5),
            "executionRole": role,
            "state": state,
            "stateDetails": 'Job failed. ExitCode: 1. {"forged": "\n"}',
            "releaseLabel": "emr-7.14.0",
            "jobDriver": {"sparkSubmit": {"entryPoint": "s3://code/job.py"}},
        }

    def end_run(self, state: str, name: str | None = "nightly-2026-11-15") -> dict[str, Any]:
        """Return the Lambda's answer if EMR says that the run has this state and this name.

        The event always says that the run failed.
        """
        expected_call = {"applicationId": APPLICATION_ID, "jobRunId": RUN_ID}
        with Stubber(self.account.clients.emr) as emr:
            emr.add_response(
                "get_job_run", {"jobRun": self.make_job_run(state, name)}, expected_call
            )
            answer: dict[str, Any] = watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)
            emr.assert_no_pending_responses()
        self.printed = self.capture.readouterr().out
        return answer

    @property
    def nonzero_metrics(self) -> dict[str, float]:
        return {name: value for name, value in sum_metrics(self.printed).items() if value}

    @property
    def log_line(self) -> dict[str, Any]:
        """The only line that the Lambda logged."""
        (record,) = self.log.records
        return {"level": record.levelname, **vars(record)}


@pytest.fixture
def watch_lambda(
    account: Account,
    deploy: Deploy,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> WatchLambda:
    deploy(watch_nightly.handler, account, application_id=APPLICATION_ID, report_bucket="cases")
    return WatchLambda(account, capsys, caplog)


def test_watch_nightly_sends_every_metric_of_a_successful_nightly_run(
    watch_lambda: WatchLambda,
) -> None:
    watch_lambda.write_earlier_counts()
    watch_lambda.write_counts(DAY, 9_000)
    watch_lambda.write_counts(DAY + timedelta(days=1), 1, bytes_unreadable=99)
    assert watch_lambda.end_run("SUCCESS") == {"day": "2026-11-15", "verdict": "read"}
    assert sum_metrics(watch_lambda.printed) == {
        "NightlyRunsFailed": 0, "NightlyRunsWritten": 1, "NightlyRunsDoubtful": 0,
        "NightlyRecordsRead": 9_000, "ReportsMissing": 0,
    }  # fmt: skip
    assert watch_lambda.log_line["level"] == "INFO"
    assert watch_lambda.log_line["usual_records"] == 10_000


def test_nightly_run_that_wrote_nothing_is_counted_as_failed_and_logged_once(
    watch_lambda: WatchLambda,
) -> None:
    watch_lambda.write_earlier_counts()
    watch_lambda.write_counts(DAY, 9_000, made_at=watch_lambda.created_at - timedelta(hours=1))
    assert watch_lambda.end_run("FAILED")["verdict"] == "failed"
    assert watch_lambda.nonzero_metrics == {"NightlyRunsFailed": 1}
    assert watch_lambda.log_line["level"] == "WARNING"
    assert watch_lambda.log_line["why"] == "the run ended FAILED and wrote nothing of 2026-11-15"


@pytest.mark.parametrize(
    "detail", [{"applicationId": "00f1another00app"}, {"jobRunId": None}, [], "SUCCESS", None]
)
def test_watch_nightly_ignores_malformed_events_and_other_applications_without_calling_emr(
    watch_lambda: WatchLambda, detail: object
) -> None:
    with Stubber(watch_lambda.account.clients.emr):
        answer = watch_nightly.handler(make_job_run_event(detail), LAMBDA_CONTEXT)
    assert "names no run" in answer["ignored"]
    assert '"_aws"' not in watch_lambda.capture.readouterr().out


def test_watch_nightly_ignores_a_job_run_that_emr_does_not_know_and_sends_no_metric(
    watch_lambda: WatchLambda,
) -> None:
    with Stubber(watch_lambda.account.clients.emr) as emr:
        emr.add_client_error("get_job_run", "ResourceNotFoundException", "no such run", 404)
        answer = watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)
    assert f"knows no run {RUN_ID}" in answer["ignored"]
    assert '"_aws"' not in watch_lambda.capture.readouterr().out


def test_watch_nightly_raises_if_emr_denies_access_so_that_lambda_retries(
    watch_lambda: WatchLambda,
) -> None:
    with Stubber(watch_lambda.account.clients.emr) as emr:
        emr.add_client_error("get_job_run", "AccessDeniedException", "no", 403)
        with pytest.raises(ClientError):
            watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)


@pytest.mark.parametrize("name", ["nightly-2026-11-15", "week-2026-W46"])
def test_watch_nightly_ignores_the_event_of_a_failed_run_that_emr_says_is_running(
    watch_lambda: WatchLambda, name: str
) -> None:
    assert "still RUNNING" in watch_lambda.end_run("RUNNING", name)["ignored"]
    assert '"_aws"' not in watch_lambda.printed


@pytest.mark.parametrize("name", ["week-2026-W4", None, "nightly-9999-12-31"])
def test_watch_nightly_ignores_a_failed_run_whose_name_is_of_no_day_or_week(
    watch_lambda: WatchLambda, name: str | None
) -> None:
    assert "is no nightly run" in watch_lambda.end_run("FAILED", name)["ignored"]
    assert '"_aws"' not in watch_lambda.printed


@pytest.mark.parametrize(
    ("summarized_week", "state", "verdict", "level"),
    [
        ("2026-W45", "FAILED", "failed", "WARNING"),
        ("2026-W46", "SUCCESS", "summed_up", "INFO"),
        # Exit code 3 means that many records were unreadable. EMR calls such a run failed.
        ("2026-W46", "FAILED", "summed_up", "INFO"),
    ],
)
def test_weekly_run_counts_as_failed_only_if_it_wrote_no_summary(
    watch_lambda: WatchLambda, summarized_week: str, state: str, verdict: str, level: str
) -> None:
    watch_lambda.put(f"summary/week={summarized_week}/summary.json", b"{}")
    assert watch_lambda.end_run(state, "week-2026-W46") == {"week": "2026-W46", "verdict": verdict}
    assert sum_metrics(watch_lambda.printed) == {"WeeksFailed": verdict == "failed"}
    assert watch_lambda.log_line["level"] == level
    if verdict == "failed":
        assert watch_lambda.log_line["why"] == f"the run ended {state} and did not sum up 2026-W46"


def test_report_counts_as_missing_after_eight_days_without_a_weekly_summary(
    watch_lambda: WatchLambda,
) -> None:
    """Counted only if the nightly runs go back that far. A summary of this week ends it."""
    watch_lambda.write_earlier_counts(7)
    watch_lambda.write_counts(DAY, 9_000)
    watch_lambda.end_run("SUCCESS")
    assert "ReportsMissing" not in watch_lambda.nonzero_metrics
    watch_lambda.write_earlier_counts(9)
    watch_lambda.end_run("SUCCESS")
    assert watch_lambda.nonzero_metrics["ReportsMissing"] == 1
    week = (watch_lambda.created_at - timedelta(days=7)).isocalendar()
    watch_lambda.put(f"summary/week={week.year}-W{week.week:02d}/summary.json", b"{}")
    watch_lambda.end_run("SUCCESS")
    assert "ReportsMissing" not in watch_lambda.nonzero_metrics


def read_shared_objects(watch_lambda: WatchLambda, bucket: str = "central") -> dict[str, bytes]:
    s3 = watch_lambda.account.clients.s3
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def deploy_in_organization(
    watch_lambda: WatchLambda, deploy: Deploy, bucket: str = "central"
) -> None:
    settings = {
        "application_id": APPLICATION_ID,
        "report_bucket": "cases",
        "organization_bucket": bucket,
    }
    deploy(watch_nightly.handler, watch_lambda.account, **settings)
    watch_lambda.write_earlier_counts()
    for day in (DAY - timedelta(days=1), DAY):
        watch_lambda.write_counts(day, 9_000)
        for table in TABLES_SHARED_WITH_ORGANIZATION:
            watch_lambda.put(f"{table}/dt={day}/{table}.parquet", f"{table} {day}".encode())


def test_watch_nightly_copies_tables_and_the_account_alias_to_the_organization_bucket(
    watch_lambda: WatchLambda, deploy: Deploy
) -> None:
    deploy_in_organization(watch_lambda, deploy)
    watch_lambda.account.clients.s3.create_bucket(Bucket="central")
    watch_lambda.account.clients.iam.create_account_alias(AccountAlias="orders-prod")
    watch_lambda.end_run("SUCCESS")
    mine = f"account={ACCOUNT}/region=us-east-1"
    assert read_shared_objects(watch_lambda) == {
        f"{mine}/account.json": b'{"schema": 1, "alias": "orders-prod"}',
        **{
            f"{mine}/{table}/week=2026-W46/{day}.parquet": f"{table} {day}".encode()
            for table in TABLES_SHARED_WITH_ORGANIZATION
            for day in (DAY - timedelta(days=1), DAY)
        },
    }


def test_watch_nightly_sends_metrics_and_raises_if_the_organization_bucket_is_missing(
    watch_lambda: WatchLambda, deploy: Deploy
) -> None:
    """Lambda retries the event and then puts it into a DLQ with an alarm."""
    deploy_in_organization(watch_lambda, deploy, "nowhere")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        watch_lambda.end_run("SUCCESS")
    assert sum_metrics(watch_lambda.capture.readouterr().out)["NightlyRunsWritten"] == 1


def test_watch_nightly_copies_nothing_to_the_organization_if_the_run_wrote_no_tables(
    watch_lambda: WatchLambda, deploy: Deploy
) -> None:
    deploy_in_organization(watch_lambda, deploy)
    watch_lambda.account.clients.s3.create_bucket(Bucket="central")
    for day in (DAY - timedelta(days=1), DAY):
        watch_lambda.write_counts(day, 0, files=0)
    watch_lambda.end_run("SUCCESS")
    assert read_shared_objects(watch_lambda) == {}
