from __future__ import annotations

import json
from typing import Any

import pytest
from ministack.services.eventbridge import _matches_pattern

from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliver import ReportBucket
from tests.infra.aws_calls import recording
from tests.infra.permissions import decision
from tests.infra.started_by_rule import only_its_rule_starts_and_parks
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, REGION, template_of

KEY = "summary/week=2026-W46/summary.json"


def _rule() -> Any:
    return template_of("default").only("AWS::Events::Rule", "DeliverReport")


def _statements(name: str = "default") -> list[dict[str, Any]]:
    return template_of(name).statements("DeliverReportRole")


def _bucket() -> str:
    return template_of("default").arn_of("AWS::S3::Bucket", "Reports")


def _settings() -> DeliverReportSettings:
    function = template_of("default").only("AWS::Lambda::Function", "DeliverReport")
    return DeliverReportSettings.from_environment(function["Environment"]["Variables"])


def _event(**changes: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html"""
    detail = {"bucket": {"name": _settings().report_bucket}, "object": {"key": KEY, "size": 5}}
    event = {"Source": "aws.s3", "DetailType": "Object Created", "Detail": detail}
    return event | changes


def _starts(event: dict[str, Any]) -> bool:
    matches: bool = _matches_pattern(json.dumps(_rule()["EventPattern"]), event)
    return matches


@pytest.mark.parametrize(
    "key",
    [
        "report/week=2026-W46/report.html",
        "report/week=2026-W46/delivered/verdict.json",
        "summary/week=2026-W46/_temporary/0/summary.json.part",
        "incidents/dt=2026-11-10/incidents.parquet",
        "logs/summary/week=2026-W46/summary.json",
    ],
)
def test_what_else_is_written_there_starts_nothing(key: str) -> None:
    """What it writes itself would go round and round."""
    detail = _event()["Detail"] | {"object": {"key": key}}
    assert not _starts(_event(Detail=detail))


def test_another_bucket_or_another_event_starts_nothing() -> None:
    another = _event()["Detail"] | {"bucket": {"name": "another"}}
    assert not _starts(_event(Detail=another))
    assert not _starts(_event(DetailType="Object Deleted"))
    assert not _starts(_event(Source="drill"))


def test_a_summary_starts_it() -> None:
    assert _starts(_event())


def test_the_bucket_tells_eventbridge_without_a_lambda_of_cdks() -> None:
    template = template_of("default")
    notified = template.only("AWS::S3::Bucket", "Reports")["NotificationConfiguration"]
    assert notified == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    handlers = [each["Properties"] for each in template.all("AWS::Lambda::Function").values()]
    assert all(each["Handler"].startswith("functions.") for each in handlers)


def test_what_cannot_be_delivered_or_done_is_retained_for_a_person() -> None:
    (target,) = _rule()["Targets"]
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", "DeliverReport")
    parked = config["DestinationConfig"]["OnFailure"]["Destination"]
    assert parked == target["DeadLetterConfig"]["Arn"]
    assert parked.startswith(f"{QUEUE_ARNS}DeliverReportDlq")
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 86_400
    assert 0 < config["MaximumRetryAttempts"] <= 2
    assert decision(_statements(), "sqs:SendMessage", parked) == "Allow"


def test_this_rule_alone_may_start_it_and_park() -> None:
    only_its_rule_starts_and_parks(template_of("default"), "DeliverReport")


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("s3:GetObject", "incidents/dt=2026-11-10/incidents.parquet"),
        ("s3:GetObject", "report/week=2026-W46/report.html"),
        ("s3:PutObject", KEY),
        ("s3:DeleteObject", KEY),
        ("s3:DeleteObject", "report/week=2026-W46/report.html"),
        ("s3:DeleteObject", "report/week=2026-W46/delivered/verdict.json"),
        ("s3:DeleteObjectVersion", "report/week=2026-W46/delivered/verdict.json"),
    ],
)
def test_it_may_not_touch_what_is_not_its_own(action: str, key: str) -> None:
    assert decision(_statements(), action, f"{_bucket()}/{key}") == "ImplicitDeny"


def test_it_may_read_and_write_what_is_its_own() -> None:
    bucket = ReportBucket(recording({}, otherwise={}).clients.s3, "reports")
    for action, key in (
        ("s3:GetObject", KEY),
        ("s3:PutObject", bucket.put_page("2026-W46", "<!doctype html>")),
        ("s3:PutObject", "report/week=2026-W46/delivered/verdict.json"),
        ("s3:GetObject", "report/week=2026-W46/delivered/verdict.json"),
    ):
        assert decision(_statements(), action, f"{_bucket()}/{key}") == "Allow"


def test_it_publishes_to_the_topic_and_with_its_key_alone() -> None:
    topic = template_of("default").arn_of("AWS::SNS::Topic", "TopicsInfo").removeprefix("arn:")
    key = template_of("default").arn_of("AWS::KMS::Key", "Topics")
    assert decision(_statements(), "sns:Publish", topic) == "Allow"
    assert decision(_statements(), "sns:Publish", "arn:another") == "ImplicitDeny"
    for action in ("kms:GenerateDataKey", "kms:Decrypt"):
        assert decision(_statements(), action, key) == "Allow"
        assert decision(_statements(), action, "arn:another") == "ImplicitDeny"


SENDER = "reports@mail.example.com"


def _mailing(identity: str, action: str = "ses:SendRawEmail", sender: str = SENDER) -> str:
    arn = f"arn:aws:ses:{REGION}:{ACCOUNT}:{identity}"
    return decision(_statements("named"), action, arn, keys={"ses:FromAddress": sender})


def test_it_mails_from_nobody_elses_address() -> None:
    for action in ("ses:SendEmail", "ses:SendRawEmail"):
        for identity in (f"identity/{SENDER}", "identity/example.com", "configuration-set/ours"):
            for sender in ("ceo@example.com", "reports@mail.example.com.evil.io", ""):
                assert _mailing(identity, action, sender) == "ImplicitDeny"
            assert _mailing(identity, action) == "Allow"


@pytest.mark.parametrize("identity", ["another.com", "com", "org", "ceo@example.com", "*"])
def test_it_mails_by_no_identity_of_anybody_else(identity: str) -> None:
    assert _mailing(f"identity/{identity}") == "ImplicitDeny"


@pytest.mark.parametrize(
    "identity",
    ["mail.example.com", "example.com", "ada@example.com", "grace@example.org", "example.org"],
)
def test_it_mails_whichever_of_its_identities_was_verified(identity: str) -> None:
    """In the sandbox SES asks for the recipients' as well."""
    assert _mailing(f"identity/{identity}") == "Allow"


@pytest.mark.parametrize(
    "action",
    ["ses:SendBulkEmail", "ses:SendTemplatedEmail", "ses:CreateEmailIdentity", "ses:SendBounce"],
)
def test_it_does_nothing_else_in_ses(action: str) -> None:
    assert _mailing(f"identity/{SENDER}", action) == "ImplicitDeny"


def test_without_a_sender_it_may_not_mail_at_all() -> None:
    assert "ses:" not in json.dumps(_statements())


def test_it_knows_whom_to_mail() -> None:
    function = template_of("named").only("AWS::Lambda::Function", "DeliverReport")
    settings = DeliverReportSettings.from_environment(function["Environment"]["Variables"])
    assert (settings.sender, settings.recipients) == (
        SENDER,
        ("ada@example.com", "grace@example.org"),
    )


def test_it_reads_its_settings_back_as_they_were_set() -> None:
    settings = _settings()
    assert (settings.sender, settings.recipients) == (None, ())
    assert settings.account == ACCOUNT
    assert settings.report_bucket.startswith("ReportsBucket")
    assert settings.topic_arn.startswith("TopicsInfoTopic")


def test_it_has_a_whole_processor_and_its_own_zip() -> None:
    function = template_of("default").only("AWS::Lambda::Function", "DeliverReport")
    role = template_of("default").only("AWS::IAM::Role", "DeliverReportRole")
    assert function["Handler"] == "functions.deliver_report.handler"
    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
    assert function["MemorySize"] >= 1_769
    assert role["RoleName"] == "mendq-deliver-report-us-east-1"
