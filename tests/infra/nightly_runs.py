"""Record the AWS calls of the Lambdas around the nightly job, with the template's settings."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import partial
from io import BytesIO
from typing import Any
from unittest.mock import patch

from mendq.model.settings import DeliverReportSettings, StartNightlySettings, WatchNightlySettings
from mendq.nightly.deliver import ReportBucket, read_account_alias, send_report
from mendq.nightly.deliveries import DeliveryClaims
from mendq.nightly.jobs import NightlyJobRoots, make_nightly_job, start_job
from mendq.nightly.outcome import NightlyRunOutcome
from mendq.nightly.verdict import TABLES_SHARED_WITH_ORGANIZATION, make_nightly_counts_key
from mendq.nightly.watch import find_run_outcome, share_tables
from mendq.notifications.notification import ReportRedelivery
from mendq.report.mail import OutgoingReport
from tests.infra.aws_calls import CallRecorder, make_recorder
from tests.infra.synthesized import template_of
from tests.nightly.events import make_job_run_event
from tests.report.weeks import HERE
from tests.report.weeks import make_summary as quiet_week


def starting_a_nightly() -> CallRecorder:
    recorder = make_recorder({"ListJobRuns": {"jobRuns": []}, "StartJobRun": {"jobRunId": "1"}})
    function = template_of("default").only("AWS::Lambda::Function", "StartNightly")
    settings = StartNightlySettings.from_environment(function["Environment"]["Variables"])
    place = settings.account, "us-east-1"
    roots = NightlyJobRoots(settings.trail_root, settings.case_root, settings.out_root, *place)
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    assert start_job(recorder.clients.emr, settings, make_nightly_job(at, roots), at) == "1"
    return recorder


def watching_a_nightly() -> CallRecorder:
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    run = {"name": "nightly-2026-11-20", "state": "FAILED", "stateDetails": "any"}
    recorder = make_recorder(
        {
            "GetJobRun": {"jobRun": {**run, "createdAt": at, "updatedAt": at}},
            "ListObjectsV2": {
                "Contents": [
                    {"Key": make_nightly_counts_key(date(2026, 11, 20)), "LastModified": at}
                ]
            },
            "GetObject": {"Body": BytesIO(b"{}")},
            "ListAccountAliases": {"AccountAliases": ["orders"]},
        },
        otherwise={},
    )
    function = template_of("named").only("AWS::Lambda::Function", "WatchNightly")
    settings = WatchNightlySettings.from_environment(function["Environment"]["Variables"])
    announced = make_job_run_event({"applicationId": settings.application_id})
    assert isinstance(find_run_outcome(recorder.clients, settings, announced), NightlyRunOutcome)
    assert share_tables(recorder.clients, settings, [date(2026, 11, 20)]) == len(
        TABLES_SHARED_WITH_ORGANIZATION
    )
    return recorder


def delivering() -> CallRecorder:
    """Deliver a report by every channel, then find it marked as delivered."""
    answers: dict[str, Any] = {"GetObject": {"Body": BytesIO(b"{}")}, "PutObject": {"ETag": "1"}}
    answers["ListAccountAliases"] = {"AccountAliases": ["orders"]}
    recorder = make_recorder(answers, otherwise={})
    assert read_account_alias(recorder.clients) == "orders"
    bucket = ReportBucket(recorder.clients.s3, "reports")
    assert bucket.read_summary("summary/week=2026-W46/summary.json", 9) == b"{}"
    bucket.put_report_page("2026-W46", "<!doctype html>")
    function = template_of("named").only("AWS::Lambda::Function", "DeliverReport")
    settings = DeliverReportSettings.from_environment(function["Environment"]["Variables"])
    marked = DeliveryClaims(
        recorder.clients.s3, "reports", "2026-W46", "run", partial(datetime.now, UTC)
    )
    report = OutgoingReport(quiet_week(), "s3://reports/page", HERE, settings.sender or "")
    again = ReportRedelivery("deliver", "us-east-1", "summary.json")
    reached = send_report(recorder.clients, settings, marked, report, again)
    assert reached == [settings.topic_arn, *settings.recipients]
    answers["GetObject"] = {"Body": BytesIO(b'{"state": "sent"}')}
    # The channel was claimed before.
    with patch.object(DeliveryClaims, "_write_claim", lambda *_, **__: None):
        assert marked.claim_channel("verdict") is None
    return recorder
