"""The end of a run comes in; what the nightly job wrote is asked of S3, how the run ended of EMR.

botocore's Stubber answers in EMR Serverless's shapes; nothing here ran on EMR.
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
class Lambda:
    """The Lambda, an account's S3, and EMR Serverless as a Stubber."""

    account: Account
    capture: pytest.CaptureFixture[str]
    log: pytest.LogCaptureFixture
    # CloudWatch takes no metric that is older than two weeks.
    created_at: datetime = field(
        default_factory=lambda: datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=9)
    )
    printed: str = ""

    def nightly(self, day: date, records: int, **fields: Any) -> None:
        made_at = fields.pop("made_at", self.created_at + timedelta(minutes=1))
        nightly = NightlyCounts(
            day, made_at, NATIVE_READER, "", records=records, **{"files": 1, **fields}
        )
        self.put(make_nightly_counts_key(day), json.dumps(nightly.document()).encode())

    def put(self, key: str, content: bytes) -> None:
        self.account.clients.s3.put_object(Bucket="cases", Key=key, Body=content)

    def before(self, days: int = 5) -> None:
        for n in range(1, days + 1):
            earlier = self.created_at - timedelta(days=n)
            self.nightly(DAY - timedelta(days=n), 10_000, made_at=earlier)

    def run(self, state: str, name: str | None = "nightly-2026-11-15") -> dict[str, Any]:
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

    def end(self, state: str, name: str | None = "nightly-2026-11-15") -> dict[str, Any]:
        """The Lambda's answer to an event, which says nothing of how the run really ended."""
        asked = {"applicationId": APPLICATION_ID, "jobRunId": RUN_ID}
        with Stubber(self.account.clients.emr) as emr:
            emr.add_response("get_job_run", {"jobRun": self.run(state, name)}, asked)
            answer: dict[str, Any] = watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)
            emr.assert_no_pending_responses()
        self.printed = self.capture.readouterr().out
        return answer

    @property
    def figures(self) -> dict[str, float]:
        return {name: value for name, value in sum_metrics(self.printed).items() if value}

    @property
    def said(self) -> dict[str, Any]:
        """The one line that it logs."""
        (record,) = self.log.records
        return {"level": record.levelname, **vars(record)}


@pytest.fixture
def watching(
    account: Account,
    deploy: Deploy,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Lambda:
    deploy(watch_nightly.handler, account, application_id=APPLICATION_ID, report_bucket="cases")
    return Lambda(account, capsys, caplog)


def test_watch_nightly_sends_every_metric_of_a_successful_nightly_run(watching: Lambda) -> None:
    watching.before()
    watching.nightly(DAY, 9_000)
    watching.nightly(DAY + timedelta(days=1), 1, bytes_unreadable=99)
    assert watching.end("SUCCESS") == {"day": "2026-11-15", "verdict": "read"}
    assert sum_metrics(watching.printed) == {
        "NightlyRunsFailed": 0, "NightlyRunsWritten": 1, "NightlyRunsDoubtful": 0,
        "NightlyRecordsRead": 9_000, "ReportsMissing": 0,
    }  # fmt: skip
    assert watching.said["level"] == "INFO"
    assert watching.said["usual_records"] == 10_000


def test_nightly_run_that_wrote_nothing_is_counted_as_failed_and_logged_once(
    watching: Lambda,
) -> None:
    watching.before()
    watching.nightly(DAY, 9_000, made_at=watching.created_at - timedelta(hours=1))
    assert watching.end("FAILED")["verdict"] == "failed"
    assert watching.figures == {"NightlyRunsFailed": 1}
    assert watching.said["level"] == "WARNING"
    assert watching.said["why"] == "the run ended FAILED and wrote nothing of 2026-11-15"


@pytest.mark.parametrize(
    "detail", [{"applicationId": "00f1another00app"}, {"jobRunId": None}, [], "SUCCESS", None]
)
def test_watch_nightly_ignores_an_event_of_another_emr_application_without_calling_emr(
    watching: Lambda, detail: object
) -> None:
    with Stubber(watching.account.clients.emr):
        answer = watch_nightly.handler(make_job_run_event(detail), LAMBDA_CONTEXT)
    assert "names no run" in answer["ignored"]
    assert '"_aws"' not in watching.capture.readouterr().out


def test_watch_nightly_ignores_a_job_run_that_emr_does_not_know_and_sends_no_metric(
    watching: Lambda,
) -> None:
    with Stubber(watching.account.clients.emr) as emr:
        emr.add_client_error("get_job_run", "ResourceNotFoundException", "no such run", 404)
        answer = watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)
    assert f"knows no run {RUN_ID}" in answer["ignored"]
    assert '"_aws"' not in watching.capture.readouterr().out


def test_watch_nightly_raises_if_emr_denies_access_so_that_lambda_retries(
    watching: Lambda,
) -> None:
    with Stubber(watching.account.clients.emr) as emr:
        emr.add_client_error("get_job_run", "AccessDeniedException", "no", 403)
        with pytest.raises(ClientError):
            watch_nightly.handler(make_job_run_event(), LAMBDA_CONTEXT)


@pytest.mark.parametrize(
    ("state", "name", "because"),
    [
        ("RUNNING", "nightly-2026-11-15", "still RUNNING"),
        ("FAILED", "week-2026-W4", "is no nightly run"),
        ("RUNNING", "week-2026-W46", "still RUNNING"),
        ("FAILED", None, "is no nightly run"),
        ("FAILED", "nightly-9999-12-31", "is no nightly run"),
    ],
)
def test_watch_nightly_trusts_emrs_state_and_run_name_over_the_event(
    watching: Lambda, state: str, name: str | None, because: str
) -> None:
    assert because in watching.end(state, name)["ignored"]
    assert '"_aws"' not in watching.printed


@pytest.mark.parametrize(
    ("summed_up", "state", "verdict", "level"),
    [
        ("2026-W45", "FAILED", "failed", "WARNING"),
        ("2026-W46", "SUCCESS", "summed_up", "INFO"),
        # Exit code 3, much was unreadable: to EMR the run failed.
        ("2026-W46", "FAILED", "summed_up", "INFO"),
    ],
)
def test_weekly_run_counts_as_failed_only_if_it_wrote_no_summary(
    watching: Lambda, summed_up: str, state: str, verdict: str, level: str
) -> None:
    watching.put(f"summary/week={summed_up}/summary.json", b"{}")
    assert watching.end(state, "week-2026-W46") == {"week": "2026-W46", "verdict": verdict}
    assert sum_metrics(watching.printed) == {"WeeksFailed": verdict == "failed"}
    assert watching.said["level"] == level
    if verdict == "failed":
        assert watching.said["why"] == f"the run ended {state} and did not sum up 2026-W46"


def test_report_counts_as_missing_after_eight_days_without_a_weekly_summary(
    watching: Lambda,
) -> None:
    """As long as the nightly runs go back; what was summed up this week ends it."""
    watching.before(7)
    watching.nightly(DAY, 9_000)
    watching.end("SUCCESS")
    assert "ReportsMissing" not in watching.figures
    watching.before(9)
    watching.end("SUCCESS")
    assert watching.figures["ReportsMissing"] == 1
    week = (watching.created_at - timedelta(days=7)).isocalendar()
    watching.put(f"summary/week={week.year}-W{week.week:02d}/summary.json", b"{}")
    watching.end("SUCCESS")
    assert "ReportsMissing" not in watching.figures


def shared(watching: Lambda, bucket: str = "central") -> dict[str, bytes]:
    s3 = watching.account.clients.s3
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def in_an_organization(watching: Lambda, deploy: Deploy, bucket: str = "central") -> None:
    over = {
        "application_id": APPLICATION_ID,
        "report_bucket": "cases",
        "organization_bucket": bucket,
    }
    deploy(watch_nightly.handler, watching.account, **over)
    watching.before()
    for day in (DAY - timedelta(days=1), DAY):
        watching.nightly(day, 9_000)
        for table in TABLES_SHARED_WITH_ORGANIZATION:
            watching.put(f"{table}/dt={day}/{table}.parquet", f"{table} {day}".encode())


def test_watch_nightly_copies_each_days_tables_to_the_organization_bucket_below_its_account_prefix(
    watching: Lambda, deploy: Deploy
) -> None:
    in_an_organization(watching, deploy)
    watching.account.clients.s3.create_bucket(Bucket="central")
    watching.account.clients.iam.create_account_alias(AccountAlias="orders-prod")
    watching.end("SUCCESS")
    mine = f"account={ACCOUNT}/region=us-east-1"
    assert shared(watching) == {
        f"{mine}/account.json": b'{"schema": 1, "alias": "orders-prod"}',
        **{
            f"{mine}/{table}/week=2026-W46/{day}.parquet": f"{table} {day}".encode()
            for table in TABLES_SHARED_WITH_ORGANIZATION
            for day in (DAY - timedelta(days=1), DAY)
        },
    }


def test_watch_nightly_sends_metrics_and_raises_if_the_organization_bucket_is_missing(
    watching: Lambda, deploy: Deploy
) -> None:
    """The event comes again and is parked, which an alarm tells of; the figures are sent."""
    in_an_organization(watching, deploy, "nowhere")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        watching.end("SUCCESS")
    assert sum_metrics(watching.capture.readouterr().out)["NightlyRunsWritten"] == 1


def test_watch_nightly_copies_nothing_to_the_organization_if_the_run_wrote_no_tables(
    watching: Lambda, deploy: Deploy
) -> None:
    in_an_organization(watching, deploy)
    watching.account.clients.s3.create_bucket(Bucket="central")
    for day in (DAY - timedelta(days=1), DAY):
        watching.nightly(day, 0, files=0)
    watching.end("SUCCESS")
    assert shared(watching) == {}
