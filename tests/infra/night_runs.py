"""What the Lambdas around the night call, with the settings that the template gives them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import partial
from io import BytesIO
from typing import Any
from unittest.mock import patch

from functions.aws.delivery_marks import DeliveryMarks
from functions.aws.report_bucket import ReportBucket
from functions.aws.send_report import send_report
from functions.aws.start_job import start
from functions.aws.watch_night import watch
from functions.healing.night import Roots, night
from functions.healing.night_watch import Watched
from functions.healing.nightly import night_key
from functions.healing.not_mailed import Again
from functions.report import outgoing
from functions.settings import DeliverReportSettings, StartNightSettings, WatchNightSettings
from tests.functions.healing.test_night_watch import event as ended
from tests.functions.report.weeks import summary as quiet_week
from tests.infra.aws_calls import Recorded, recording
from tests.infra.synthesized import template_of


def starting_a_night() -> Recorded:
    recorded = recording({"ListJobRuns": {"jobRuns": []}, "StartJobRun": {"jobRunId": "1"}})
    function = template_of("default").only("AWS::Lambda::Function", "StartNight")
    settings = StartNightSettings.from_environment(function["Environment"]["Variables"])
    roots = Roots(settings.trail_root, settings.case_root, settings.out_root)
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    assert start(recorded.clients.emr, settings, night(at, roots), at) == "1"
    return recorded


def watching_a_night() -> Recorded:
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    run = {"name": "night-2026-11-20", "state": "FAILED", "stateDetails": "any"}
    recorded = recording(
        {
            "GetJobRun": {"jobRun": {**run, "createdAt": at, "updatedAt": at}},
            "ListObjectsV2": {
                "Contents": [{"Key": night_key(date(2026, 11, 20)), "LastModified": at}]
            },
            "GetObject": {"Body": BytesIO(b"{}")},
        }
    )
    function = template_of("default").only("AWS::Lambda::Function", "WatchNight")
    settings = WatchNightSettings.from_environment(function["Environment"]["Variables"])
    told = ended(detail={"applicationId": settings.application_id})
    assert isinstance(watch(recorded.clients, settings, told), Watched)
    return recorded


def delivering() -> Recorded:
    """A week goes out by every channel; when it comes again, its marks say so."""
    answers: dict[str, Any] = {"GetObject": {"Body": BytesIO(b"{}")}, "PutObject": {"ETag": "1"}}
    recorded = recording(answers, otherwise={})
    bucket = ReportBucket(recorded.clients.s3, "reports")
    assert bucket.summary("summary/week=2026-W46/summary.json", 9) == b"{}"
    bucket.put_page("2026-W46", "<!doctype html>")
    function = template_of("named").only("AWS::Lambda::Function", "DeliverReport")
    settings = DeliverReportSettings.from_environment(function["Environment"]["Variables"])
    marks = DeliveryMarks(
        recorded.clients.s3, "reports", "2026-W46", "run", partial(datetime.now, UTC)
    )
    report = outgoing(quiet_week(), "s3://reports/page", "us-east-1", settings.sender or "")
    again = Again("deliver", "us-east-1", "summary.json")
    delivery = send_report(recorded.clients, settings, marks, report, again)
    assert delivery.reached == (settings.topic_arn, *settings.recipients)
    answers["GetObject"] = {"Body": BytesIO(b'{"state": "sent"}')}
    with patch.object(DeliveryMarks, "_write", lambda *_, **__: None):  # there is a mark already
        assert marks.take("verdict") is None
    return recorded
