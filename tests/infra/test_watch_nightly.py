from __future__ import annotations

import json
from typing import Any

import pytest
from ministack.services.eventbridge import _matches_pattern

from mendq.model.settings import WatchNightlySettings
from mendq.nightly.verdict import nightly_key
from tests.functions.test_watch_nightly import DAY
from tests.infra.permissions import decision
from tests.infra.started_by_rule import only_its_rule_starts_and_parks
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, template_of


def _rule() -> Any:
    return template_of("default").only("AWS::Events::Rule", "WatchNightly")


def _statements() -> list[dict[str, Any]]:
    return template_of("default").statements("WatchNightlyRole")


def _bucket() -> str:
    return template_of("default").arn_of("AWS::S3::Bucket", "Reports")


def _application() -> str:
    return template_of("default").arn_of("AWS::EMRServerless::Application", "Nightly")


def _settings() -> WatchNightlySettings:
    function = template_of("default").only("AWS::Lambda::Function", "WatchNightly")
    return WatchNightlySettings.from_environment(function["Environment"]["Variables"])


def _event(detail: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html"""
    announced = {
        "jobRunId": "00f1cbn5g4bb0c01",
        "applicationId": _settings().application_id,
        "releaseLabel": "emr-7.14.0",
        "state": "FAILED",
        "previousState": "RUNNING",
    }
    event = {"Source": "aws.emr-serverless", "DetailType": "EMR Serverless Job Run State Change"}
    return {**event, "Detail": announced | (detail or {}), **changes}


def _starts(event: dict[str, Any]) -> bool:
    matches: bool = _matches_pattern(json.dumps(_rule()["EventPattern"]), event)
    return matches


@pytest.mark.parametrize(
    "state", ["SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED"]
)
def test_a_run_that_goes_on_starts_nothing(state: str) -> None:
    assert not _starts(_event({"state": state}))


def test_another_application_source_or_kind_of_event_starts_nothing() -> None:
    assert not _starts(_event({"applicationId": "00another"}))
    assert not _starts(_event(Source="drill"))
    assert not _starts(_event(DetailType="EMR Serverless Job Run Retry"))


@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "CANCELLED"])
def test_the_end_of_a_run_starts_it(state: str) -> None:
    assert _starts(_event({"state": state}))


def test_what_cannot_be_delivered_or_done_is_retained_for_a_person() -> None:
    (target,) = _rule()["Targets"]
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", "WatchNightly")
    parked = config["DestinationConfig"]["OnFailure"]["Destination"]
    assert parked == target["DeadLetterConfig"]["Arn"]
    assert parked.startswith(f"{QUEUE_ARNS}WatchNightlyDlq")
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 6 * 3_600
    assert 0 < config["MaximumRetryAttempts"] <= 2
    assert decision(_statements(), "sqs:SendMessage", parked) == "Allow"


def test_this_rule_alone_may_start_it_and_park() -> None:
    only_its_rule_starts_and_parks(template_of("default"), "WatchNightly")


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("s3:GetObject", "incidents/dt=2026-11-15/incidents.parquet"),
        ("s3:GetObject", "summary/week=2026-W46/summary.json"),
        ("s3:GetObject", "logs/nightly/dt=2026-11-15/nightly.json"),
        ("s3:PutObject", nightly_key(DAY)),
        ("s3:DeleteObject", nightly_key(DAY)),
    ],
)
def test_it_may_not_touch_what_is_no_nightly_nor_write_one(action: str, key: str) -> None:
    assert decision(_statements(), action, f"{_bucket()}/{key}") == "ImplicitDeny"


def test_it_may_read_nightly_runs_and_list_them_and_weeks_alone() -> None:
    assert decision(_statements(), "s3:GetObject", f"{_bucket()}/{nightly_key(DAY)}") == "Allow"
    for prefix, may in (
        ("nightly/dt=", "Allow"),
        ("summary/week=", "Allow"),
        ("report/", "ImplicitDeny"),
    ):
        keys = {"s3:prefix": prefix}
        assert decision(_statements(), "s3:ListBucket", _bucket(), keys=keys) == may
    assert decision(_statements(), "s3:ListBucket", _bucket()) == "ImplicitDeny"


def test_it_may_ask_about_runs_of_our_application_and_do_nothing_to_them() -> None:
    run = f"{_application()}/jobruns/00f1cbn5g4bb0c01"
    assert decision(_statements(), "emr-serverless:GetJobRun", run) == "Allow"
    another = "arn:another/jobruns/00f1cbn5g4bb0c01"
    assert decision(_statements(), "emr-serverless:GetJobRun", another) == "ImplicitDeny"
    for action in ("CancelJobRun", "StartJobRun", "GetDashboardForJobRun"):
        for resource in (run, _application()):
            may = decision(_statements(), f"emr-serverless:{action}", resource)
            assert may == "ImplicitDeny"


def test_the_nightly_may_write_what_it_says_of_itself() -> None:
    of_the_nightly = template_of("default").statements("NightlyRole")
    for action in ("s3:GetObject", "s3:PutObject"):
        assert decision(of_the_nightly, action, f"{_bucket()}/{nightly_key(DAY)}") == "Allow"


def test_it_knows_its_application_and_the_bucket_and_nothing_beside() -> None:
    function = template_of("default").only("AWS::Lambda::Function", "WatchNightly")
    variables = function["Environment"]["Variables"]
    settings = _settings()
    assert variables == settings.to_environment()
    assert settings.account == ACCOUNT
    assert settings.report_bucket.startswith("ReportsBucket")
    assert settings.application_id.startswith("NightlyApplication")
    assert function["Handler"] == "functions.watch_nightly.handler"
    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])


def test_it_goes_in_the_small_zip_of_the_others() -> None:
    functions = template_of("default").all("AWS::Lambda::Function")
    code = {
        name.partition("Function")[0]: each["Properties"]["Code"]
        for name, each in functions.items()
    }
    assert code["WatchNightly"] == code["StartNightly"]


def test_lambda_alone_may_be_it_and_its_name_is_literal() -> None:
    role = template_of("default").only("AWS::IAM::Role", "WatchNightlyRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "mendq-watch-nightly-us-east-1"
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
