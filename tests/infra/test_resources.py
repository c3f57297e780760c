"""Buckets, case table, topics and schedules, as far as no rule of ours or of cdk-nag looks at them.

Those see to encryption, TLS, privacy, keeping what outlives the stack, and parking.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.start_nightly import JOBS
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, template_of


def _lifecycle(start: str) -> list[dict[str, Any]]:
    bucket = template_of("default").only("AWS::S3::Bucket", start)
    rules: list[dict[str, Any]] = bucket["LifecycleConfiguration"]["Rules"]
    assert {"DaysAfterInitiation": 7} in [
        each.get("AbortIncompleteMultipartUpload") for each in rules
    ]
    versioned = bucket.get("VersioningConfiguration") == {"Status": "Enabled"}
    assert versioned == (start != "Trail")
    return rules


def test_cases_and_reports_never_expire_and_trail_files_logs_and_what_was_replaced_do() -> None:
    expire = {
        start: {each.get("Prefix"): each.get("ExpirationInDays") for each in _lifecycle(start)}
        for start in ("Cases", "Reports", "Trail")
    }
    assert expire == {
        "Cases": {None: None},
        "Reports": {None: None, "logs/": 90},
        "Trail": {None: 90},
    }
    replaced = [each.get("NoncurrentVersionExpiration") for each in _lifecycle("Reports")]
    assert {"NoncurrentDays": 30} in replaced


def test_the_bucket_tells_eventbridge_without_a_lambda_of_cdks() -> None:
    template = template_of("default")
    notified = template.only("AWS::S3::Bucket", "Reports")["NotificationConfiguration"]
    assert notified == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    handlers = [each["Properties"] for each in template.all("AWS::Lambda::Function").values()]
    assert all(each["Handler"].startswith("functions.") for each in handlers)


def test_the_keys_and_the_expiry_are_those_that_the_case_store_writes() -> None:
    table = template_of("default").only("AWS::DynamoDB::Table")
    (index,) = table["GlobalSecondaryIndexes"]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    assert [each["AttributeName"] for each in table["KeySchema"]] == ["pk", "sk"]
    assert types == {"pk": "S", "sk": "S", "open": "S", "due_at": "N"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert index["IndexName"] == "open_cases"
    assert [each["AttributeName"] for each in index["KeySchema"]] == ["open", "due_at"]
    included = {"case_id", "symptom", "state", "opened_at"}
    assert set(index["Projection"]["NonKeyAttributes"]) == included


def test_people_and_urls_hear_what_the_settings_name_them_for_and_nothing_else() -> None:
    assert template_of("default").all("AWS::SNS::Subscription") == {}
    subscribed = {
        (each["TopicArn"][:11], each["Protocol"], each["Endpoint"])
        for one in template_of("named").all("AWS::SNS::Subscription").values()
        for each in [one["Properties"]]
    }
    assert subscribed == {
        ("TopicsUrgen", "email", "on-call@example.com"),
        ("TopicsUrgen", "https", "https://events.example.com/key"),
        ("TopicsInfoT", "email", "sqs@example.com"),
        ("TopicsInfoT", "https", "https://events.example.com/key"),
    }


THEIRS = "444455556666"


@pytest.mark.parametrize("severity", ["Urgent", "Info"])
@pytest.mark.parametrize(
    ("account", "alarm", "expected"),
    [
        (ACCOUNT, "mendq-not-healing", "Allow"),
        (ACCOUNT, "another", "ImplicitDeny"),
        (THEIRS, "mendq-not-healing", "ImplicitDeny"),
    ],
)
def test_alarms_of_ours_alone_may_publish(
    severity: str, account: str, alarm: str, expected: str
) -> None:
    policy = template_of("default").only("AWS::SNS::TopicPolicy", f"Topics{severity}")
    _denied, statement = policy["PolicyDocument"]["Statement"]
    assert statement.pop("Principal") == {"Service": "cloudwatch.amazonaws.com"}
    arn = f"arn:aws:cloudwatch:us-east-1:{account}:alarm:{alarm}"
    keys = {"aws:SourceAccount": account, "aws:SourceArn": arn}
    assert decision([statement], "sns:Publish", statement["Resource"], keys=keys) == expected


@pytest.mark.parametrize(
    ("service", "keys", "expected"),
    [
        ("cloudwatch", {"aws:SourceAccount": ACCOUNT}, "Allow"),
        ("cloudwatch", {"aws:SourceAccount": THEIRS}, "ImplicitDeny"),
        ("events", {}, "Allow"),
    ],
)
def test_one_key_is_used_by_alarms_of_this_account_and_by_rules(
    service: str, keys: dict[str, str], expected: str
) -> None:
    """SNS's page: a key's policy with aws:SourceAccount does not work for EventBridge."""
    key = template_of("default").only("AWS::KMS::Key")
    principal = {"Service": f"{service}.amazonaws.com"}
    (found,) = (each for each in key["KeyPolicy"]["Statement"] if each["Principal"] == principal)
    found.pop("Principal")
    for action in ("kms:GenerateDataKey", "kms:Decrypt"):
        assert decision([found], action, "arn:key", keys=keys) == expected


# Minutes, hours, day of the month, month, day of the week, year; one of the two days is a `?`.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
@pytest.mark.parametrize(
    ("settings", "name", "when", "starts", "job"),
    [
        ("named", "Nightly", "cron(0 3 * * ? *) UTC", "StartNightly", "nightly"),
        ("named", "Weekly", "cron(0 9 ? * FRI *) Europe/Berlin", "StartNightly", "week"),
        ("default", "FollowUp", "rate(1 minute) UTC", "FollowUp", ""),
        ("default", "Scan", "rate(10 minutes) UTC", "Scan", ""),
        ("proposing", "Probe", "rate(20 minutes) UTC", "Probe", ""),
    ],
)
def test_a_schedule_starts_its_lambda_with_the_time_it_stands_for(
    settings: str, name: str, when: str, starts: str, job: str
) -> None:
    schedules = template_of(settings).all("AWS::Scheduler::Schedule")
    (schedule,) = (each for key, each in schedules.items() if key.startswith(f"Schedules{name}"))
    given, target = schedule["Properties"], schedule["Properties"]["Target"]
    assert f"{given['ScheduleExpression']} {given['ScheduleExpressionTimezone']}" == when
    assert given["FlexibleTimeWindow"] == {"Mode": "OFF"}
    sent = {"job": job} if job else {}
    assert json.loads(target["Input"]) == {**sent, "time": "<aws.scheduler.scheduled-time>"}
    assert not job or job in JOBS
    assert target["Arn"].startswith(f"arn:{starts}Function")
    assert f"{starts}Dlq" in target["DeadLetterConfig"]["Arn"]
    assert any(each.startswith("SchedulesRoleDefaultPolicy") for each in schedule["DependsOn"])
