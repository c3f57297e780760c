"""The scan-only stack: what is in it, what its roles may do, and which settings it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest

from infra.settings.deployment import DeploymentSettings, read_deployment_settings
from infra.settings.reading import SettingsRefused, to_camel_case
from infra.settings.scan_only import (
    HARMLESS_SETTINGS,
    REMEDY_BY_PATH,
    USED_SETTINGS,
    find_remedy,
)
from infra.settings.warnings import list_warnings
from infra.stackset.one_template import read_stack_set_settings
from mendq.cli.cost import bill
from mendq.cli.cost.bill import BilledStack
from mendq.model import prices
from mendq.model.consent import Consent
from mendq.model.metrics import select_series
from mendq.model.settings import ScanOnlySettings
from mendq.scan.reader import Paces
from mendq.scan.scan_only import ScanOnlyContext, scan_and_report
from tests.account.account import Account
from tests.infra.aws_calls import Call, CallRecorder
from tests.infra.case_runs import ANSWERS, record_calls
from tests.infra.owner_runs import make_scanned_queues
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, REGION, Template, as_list, template_with

TOPIC = f"arn:aws:sns:{REGION}:111122223333:on-call"
SETTINGS: dict[str, dict[str, Any]] = {
    "least": {"scanOnly": True},
    "subscribed": {
        "scanOnly": True,
        "queues": ["orders", "billing-*"],
        "notifications": {
            "urgent": ["a@b.io", "https://events.example.com/key"],
            "chat": {"urgent": True},
        },
        "limits": {"scanMetricsPerDay": 5_000},
        "timing": {"measuringMinutes": 90},
        "docsUrl": "https://wiki.example.com/docs/*.md",
    },
    "thrifty": {
        "scanOnly": True,
        "dashboard": False,
        "alarms": "essential",
        "nightly": {"enabled": False},
    },
    "topic of theirs": {"scanOnly": True, "notifications": {"topics": {"urgent": TOPIC}}},
}
# A message is published with the key of a topic that was there before, whatever key that is.
KEY_OF_THEIR_TOPIC = {"kms:Decrypt", "kms:GenerateDataKey"}
RESOURCES = {
    "AWS::CloudWatch::Alarm": 1,
    "AWS::DynamoDB::Table": 1,
    "AWS::IAM::Policy": 2,
    "AWS::IAM::Role": 2,
    "AWS::Lambda::Function": 1,
    "AWS::Logs::LogGroup": 1,
    "AWS::SNS::Topic": 1,
    "AWS::SNS::TopicPolicy": 1,
    "AWS::Scheduler::Schedule": 1,
}
PART_OF_WHOLE_STACK = {"notifications": {"urgent": ["a@b.io"]}}


@cache
def _template(name: str) -> Template:
    return template_with(SETTINGS[name])


@pytest.mark.parametrize("name", SETTINGS)
def test_scan_only_stack_has_one_lambda_table_topic_schedule_log_and_alarm_and_nothing_else(
    name: str,
) -> None:
    types = Counter(resource["Type"] for resource in _template(name).raw["Resources"].values())
    del types["AWS::SNS::Subscription"]
    expected = Counter(RESOURCES)
    if name == "topic of theirs":
        expected -= Counter(["AWS::SNS::Topic", "AWS::SNS::TopicPolicy"])
    assert types == expected


def test_scan_only_stack_subscribes_each_urgent_address_once_to_its_only_topic() -> None:
    subscriptions = _template("subscribed").all("AWS::SNS::Subscription").values()
    endpoints = sorted(resource["Properties"]["Endpoint"] for resource in subscriptions)
    assert endpoints == ["a@b.io", "https://events.example.com/key"]


def test_scan_only_table_has_the_key_of_aws_and_the_topic_has_no_key() -> None:
    template = _template("least")
    assert "SSESpecification" not in template.only("AWS::DynamoDB::Table")
    assert "KmsMasterKeyId" not in template.only("AWS::SNS::Topic")


def test_scan_only_topic_lets_only_mendqs_alarms_of_its_own_account_publish() -> None:
    policy = _template("least").only("AWS::SNS::TopicPolicy")["PolicyDocument"]
    (publishing,) = (
        statement for statement in policy["Statement"] if statement["Effect"] == "Allow"
    )
    assert publishing["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert publishing["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
    assert publishing["Condition"]["ArnLike"]["aws:SourceArn"].endswith(":alarm:mendq-*")


def test_scan_only_alarm_notifies_the_topic_if_no_scan_succeeded_for_two_hours() -> None:
    template = _template("least")
    alarm = template.only("AWS::CloudWatch::Alarm")
    (topic,) = template.all("AWS::SNS::Topic")
    (function,) = template.all("AWS::Lambda::Function")
    assert alarm["AlarmActions"] == alarm["OKActions"] == [topic]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": function}]
    assert (alarm["MetricName"], alarm["Statistic"]) == ("Errors", "Minimum")
    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 2 * 3_600


def test_scan_only_schedule_starts_the_scan_every_ten_minutes_without_a_dlq() -> None:
    schedule = _template("least").only("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "rate(10 minutes)"
    assert "DeadLetterConfig" not in schedule["Target"]


def test_role_of_the_scan_only_schedule_may_only_invoke_the_scan() -> None:
    schedule = _template("least").only("AWS::Scheduler::Schedule")
    assert _template("least").statements("SchedulesRole") == [
        {
            "Action": "lambda:InvokeFunction",
            "Effect": "Allow",
            "Resource": schedule["Target"]["Arn"],
        }
    ]


@pytest.mark.parametrize("name", ["least", "subscribed"])
def test_scan_only_lambda_reads_back_exactly_the_settings_in_its_environment(name: str) -> None:
    function = _template(name).only("AWS::Lambda::Function")
    variables = function["Environment"]["Variables"]
    assert function["Handler"] == "functions.scan_only.handler"
    assert ScanOnlySettings.from_environment(variables).to_environment() == variables


@cache
def _make_scan_only_and_whole_template() -> tuple[Template, Template]:
    """Return the templates of a scan-only stack and of the whole stack that it may become."""
    scan_only = template_with({"scanOnly": True, **PART_OF_WHOLE_STACK})
    return scan_only, template_with(PART_OF_WHOLE_STACK)


def test_every_scan_only_resource_has_the_same_id_and_type_in_a_whole_stack() -> None:
    scan_only, whole = _make_scan_only_and_whole_template()
    resources_of_whole = whole.raw["Resources"]
    for logical_id, resource in scan_only.raw["Resources"].items():
        assert resources_of_whole[logical_id]["Type"] == resource["Type"], logical_id


def test_scan_only_table_is_that_of_a_whole_stack_and_is_retained_and_protected() -> None:
    scan_only, whole = _make_scan_only_and_whole_template()
    table = scan_only.only("AWS::DynamoDB::Table")
    (table_id,) = scan_only.all("AWS::DynamoDB::Table")
    assert table == whole.raw["Resources"][table_id]["Properties"]
    for template in (scan_only, whole):
        assert template.raw["Resources"][table_id]["DeletionPolicy"] == "Retain"
    assert table["DeletionProtectionEnabled"]


def test_scan_only_topic_lambda_and_log_are_unnamed_and_roles_named_as_in_a_whole_stack() -> None:
    """CloudFormation would replace these if a name appeared, and a role if its name changed."""
    scan_only, whole = _make_scan_only_and_whole_template()
    resources_of_whole = whole.raw["Resources"]
    for resource_type in ("AWS::SNS::Topic", "AWS::Lambda::Function", "AWS::Logs::LogGroup"):
        for resource in scan_only.all(resource_type).values():
            assert not resource["Properties"].keys() & {"TopicName", "FunctionName", "LogGroupName"}
    role_names = {
        logical_id: resource["Properties"]["RoleName"]
        for logical_id, resource in scan_only.all("AWS::IAM::Role").items()
    }
    for logical_id, role_name in role_names.items():
        assert resources_of_whole[logical_id]["Properties"]["RoleName"] == role_name


# Rights.


def _scan_twice(account: Account, watched: Account) -> None:
    """Scan in two runs; both find something that a redrive could explain, and report it."""
    make_scanned_queues(account)
    watched.later(days=1)
    looked_once = iter([900.0, 0.0])
    with patch("mendq.scan.scan.QUEUES_PER_BLOCK", 1):
        for run in range(2):
            context = ScanOnlyContext(
                clients=watched.clients,
                settings=ScanOnlySettings(
                    account=watched.settings.account,
                    case_table=watched.settings.case_table,
                    consent=watched.settings.consent,
                    urgent_topic_arn=watched.settings.urgent_topic_arn,
                ),
                owner=f"scan-{run}",
                now=watched.now,
                remaining_seconds=lambda: next(looked_once, 900.0),
                paces=Paces(),
            )
            assert scan_and_report(context) is not None
    assert account.pages("urgent")


@cache
def _record_scan() -> CallRecorder:
    at = datetime.now(UTC) + timedelta(hours=23)
    series = [
        {"Id": f"{key}{n}", "Timestamps": came * [at], "Values": came * [1.0]}
        for key in select_series(["every queue", "receives"])
        for n, came in enumerate(2 * [key == "visible"])
    ]
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": series}}
    consent = Consent(queues=("scanned*",))
    return record_calls(answers, _scan_twice, pages=False, consent=consent)


def _is_allowed(statements: list[dict[str, Any]], call: Call) -> bool:
    answer = decision(statements, call.action, call.resource, dict(call.tags), dict(call.keys))
    return answer == "Allow"


def test_scan_only_role_allows_each_aws_call_that_the_scan_makes() -> None:
    statements = _template("least").statements("ScanRole")
    refused = [call for call in _record_scan().calls if not _is_allowed(statements, call)]
    assert refused == []


def _list_grants(statements: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    for position, statement in enumerate(statements):
        for action in as_list(statement["Action"]):
            yield position, action


def test_removing_any_right_of_the_scan_only_role_except_for_its_log_denies_a_scan_call() -> None:
    statements = _template("least").statements("ScanRole")
    unneeded = set()
    for position, action in _list_grants(statements):
        kept_actions = [
            other for other in as_list(statements[position]["Action"]) if other != action
        ]
        remaining = [*statements]
        remaining[position] = {**statements[position], "Action": kept_actions or ["none:None"]}
        if all(_is_allowed(remaining, call) for call in _record_scan().calls):
            unneeded.add(action)
    assert unneeded == {"logs:CreateLogStream", "logs:PutLogEvents"}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("sqs:SetQueueAttributes", f"{QUEUE_ARNS}orders"),
        ("sqs:SendMessage", f"{QUEUE_ARNS}orders"),
        ("sqs:ReceiveMessage", f"{QUEUE_ARNS}orders"),
        ("sqs:DeleteMessage", f"{QUEUE_ARNS}orders"),
        ("sqs:CreateQueue", f"{QUEUE_ARNS}orders-dlq"),
        ("sqs:PurgeQueue", f"{QUEUE_ARNS}orders"),
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:111122223333:function:any"),
        ("events:PutEvents", "arn:aws:events:us-east-1:111122223333:event-bus/default"),
        ("s3:PutObject", "arn:aws:s3:::any/findings/x.json"),
        ("iam:PassRole", "arn:aws:iam::111122223333:role/any"),
    ],
)
def test_no_role_of_a_scan_only_stack_may_touch_queues_messages_buses_buckets_or_other_lambdas(
    name: str, action: str, resource: str
) -> None:
    for role in ("ScanRole", "SchedulesRole"):
        statements = _template(name).statements(role)
        tags = {"mendq": "heal"}
        assert decision(statements, action, resource, tags) == "ImplicitDeny"


@pytest.mark.parametrize(
    ("action", "partition"),
    [
        ("dynamodb:GetItem", f"{QUEUE_ARNS}orders"),
        ("dynamodb:UpdateItem", f"{QUEUE_ARNS}orders"),
        ("dynamodb:UpdateItem", "case#1a2b"),
        ("dynamodb:UpdateItem", "account#"),
        ("dynamodb:UpdateItem", f"baselines#{QUEUE_ARNS}orders"),
        ("dynamodb:UpdateItem", None),
        ("dynamodb:PutItem", "account"),
        ("dynamodb:DeleteItem", "account"),
        ("dynamodb:Query", "account"),
        ("dynamodb:Scan", None),
    ],
)
def test_scan_only_role_may_only_get_and_update_items_of_the_account_partition(
    action: str, partition: str | None
) -> None:
    template = _template("least")
    table_arn = template.arn_of("AWS::DynamoDB::Table", "CaseStore")
    keys = {} if partition is None else {"dynamodb:LeadingKeys": partition}
    statements = template.statements("ScanRole")
    assert decision(statements, action, table_arn, keys=keys) == "ImplicitDeny"
    account_keys = {"dynamodb:LeadingKeys": "account"}
    for needed in ("dynamodb:GetItem", "dynamodb:UpdateItem"):
        assert decision(statements, needed, table_arn, keys=account_keys) == "Allow"


def _list_key_actions(name: str) -> set[str]:
    """Return the actions on KMS keys that the scan's role may use."""
    grants = _list_grants(_template(name).statements("Scan"))
    return {action for _, action in grants if action.startswith("kms:")}


def test_scan_only_role_may_use_a_kms_key_only_if_the_topic_existed_before_the_stack() -> None:
    assert _list_key_actions("subscribed") == {"kms:DescribeKey"}
    assert _list_key_actions("topic of theirs") == {*KEY_OF_THEIR_TOPIC, "kms:DescribeKey"}


# Costs.


@pytest.mark.parametrize("name", SETTINGS)
def test_scan_only_stack_costs_less_than_a_third_of_a_dollar_and_every_type_has_a_price(
    name: str,
) -> None:
    stack = BilledStack(_template(name).raw)
    assert bill.list_unpriced_types(stack) == []
    assert 0.2 < sum(line.dollars for line in bill.list_costs(stack)) < 0.33


@pytest.mark.parametrize("name", SETTINGS)
def test_scan_only_stack_pays_for_one_alarm_and_for_no_key_trail_bucket_or_dashboard(
    name: str,
) -> None:
    lines = {line.item: line for line in bill.list_costs(BilledStack(_template(name).raw))}
    assert lines["alarms"].dollars == pytest.approx(prices.ALARM_METRIC_MONTH.cost(1))
    assert lines.keys().isdisjoint({"KMS key", "custom metrics", "dashboard", "the trail", "S3"})


# Settings.


def _list_paths(section: Any, path_prefix: str = "") -> Iterator[tuple[str, Any]]:
    for settings_field in fields(section):
        value = getattr(section, settings_field.name)
        path = f"{path_prefix}{to_camel_case(settings_field.name)}"
        if is_dataclass(value):
            yield from _list_paths(value, f"{path}.")
        else:
            yield path, value


def test_every_setting_is_used_by_a_scan_only_stack_or_harmless_or_has_a_listed_remedy() -> None:
    paths = {path for path, _ in _list_paths(DeploymentSettings())}
    assert paths >= USED_SETTINGS | HARMLESS_SETTINGS
    for path in paths - USED_SETTINGS - HARMLESS_SETTINGS:
        assert find_remedy(path) in REMEDY_BY_PATH.values(), path


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"mode": "propose"}, "changes no queue"),
    "tagMayRaiseTo": ({"tagMayRaiseTo": "heal"}, "changes no queue"),
    "autonomy": ({"autonomy": {"visibility_timeout_too_short": "observe"}}, "changes no queue"),
    "freezeCalendars": (
        {"freezeCalendars": [f"arn:aws:ssm:{REGION}:111122223333:document/quiet-days"]},
        "changes no queue",
    ),
    "limits.writesPerMinute": ({"limits": {"writesPerMinute": 5}}, "changes no queue"),
    "timing.watchHours": ({"timing": {"watchHours": 24}}, "changes no queue"),
    "timing.probeMinutes": ({"timing": {"probeMinutes": 30}}, "no probe"),
    "trail.queueArnPrefixes": ({"trail": {"queueArnPrefixes": ["arn:aws:sqs:"]}}, "no trail"),
    "notifications.info": (
        {"notifications": {"info": ["a@b.io"]}},
        "in notifications.urgent: a scan-only stack has one topic",
    ),
    "notifications.topics.info": (
        {"notifications": {"topics": {"info": TOPIC}}},
        "in notifications.topics.urgent",
    ),
    "notifications.teams": ({"notifications": {"teams": {"payments": TOPIC}}}, "the only topic"),
    "notifications.chat.info": (
        {"notifications": {"chat": {"info": True}}},
        "say notifications.chat.urgent",
    ),
    "report.hour": ({"report": {"hour": 9}}, "no nightly job and no report"),
    "nightly.hourUtc": ({"nightly": {"hourUtc": 9}}, "no nightly job and no report"),
    "organization": (
        {
            "organization": {
                "id": "o-exampleorgid",
                "reportBucket": "our-reports",
                "hub": {"account": "111122223333", "region": REGION},
            }
        },
        "no nightly job and no report",
    ),
    "templateHook.mode": ({"templateHook": "warn"}, "a Lambda of its own"),
}


@pytest.mark.parametrize("path", REFUSED)
def test_setting_that_a_scan_only_stack_does_not_use_is_refused_with_its_remedy(path: str) -> None:
    raw_settings, remedy = REFUSED[path]
    read_deployment_settings(raw_settings)
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"scanOnly": True, **raw_settings})
    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.fault) == (path, "is given although scanOnly is true")
    assert remedy in mistake.remedy
    assert mistake.remedy.endswith("; or leave scanOnly out")


def test_all_settings_that_a_scan_only_stack_does_not_use_are_refused_at_once() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings(
            {
                "scanOnly": True,
                "mode": "heal",
                "report": {"hour": 9},
                "notifications": {"info": ["a@b.io"], "urgent": ["c@d.io"]},
            }
        )
    assert {mistake.path for mistake in refused.value.mistakes} == {
        "mode",
        "report.hour",
        "notifications.info",
    }


def test_scan_only_setting_with_a_mistake_of_its_own_is_named_once() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"scanOnly": True, "mode": "Heal"})
    assert [mistake.path for mistake in refused.value.mistakes] == ["mode"]


def test_stack_set_refuses_scan_only() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_stack_set_settings({"scanOnly": True})
    assert "scanOnly: is given to a stack set" in str(refused.value)


def test_scan_only_stack_warns_that_nobody_gets_its_reports_only_if_nobody_is_subscribed() -> None:
    silent = read_deployment_settings(SETTINGS["least"])
    (warning,) = list_warnings(silent, REGION, "111122223333")
    assert "nobody gets the reports" in warning
    assert "add an address to notifications.urgent" in warning
    heard = read_deployment_settings(SETTINGS["subscribed"])
    assert list(list_warnings(heard, REGION, "111122223333")) == []
