"""What `mendq doctor` asks of an account, by boto3 alone, as any other client would."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY
from tests.local_account.queues import error_of, eventually, new_queue

pytestmark = pytest.mark.account


@pytest.fixture
def session(account: LocalAccount, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    """An operator's, who has set AWS_ENDPOINT_URL."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.endpoint_url)
    return boto3.Session(
        aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION
    )


def _resources(session: boto3.Session, resource_type: str) -> list[str]:
    """The physical ids of the stack's resources of one type."""
    cloudformation: Any = session.client("cloudformation")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME)
    found = [each for page in pages for each in page["StackResourceSummaries"]]
    return [each["PhysicalResourceId"] for each in found if each["ResourceType"] == resource_type]


def test_what_is_not_there_is_said_to_be_missing(session: boto3.Session) -> None:
    clients: Mapping[str, Any] = {
        name: session.client(name)
        for name in ("cloudformation", "cloudtrail", "scheduler", "events", "lambda", "sns", "iam")
    }
    nobody = f"nobody-{uuid.uuid4()}"
    arn = f"arn:aws:sns:{REGION}:{ACCOUNT}:{nobody}"
    missing = {
        "ValidationError": lambda: clients["cloudformation"].describe_stacks(StackName=nobody),
        "TrailNotFoundException": lambda: clients["cloudtrail"].get_trail_status(Name=nobody),
        "ResourceNotFoundException": lambda: clients["scheduler"].get_schedule(Name=nobody),
        "NotFound": lambda: clients["sns"].list_subscriptions_by_topic(TopicArn=arn),
        "NoSuchEntity": lambda: clients["iam"].get_role(RoleName=nobody),
    }
    for code, call in missing.items():
        assert error_of(call)[0] == code
    function = {"FunctionName": nobody}
    for call in (
        lambda: clients["events"].describe_rule(Name=nobody),
        lambda: clients["lambda"].get_function_configuration(**function),
    ):
        assert error_of(call)[0] == "ResourceNotFoundException"


def test_who_and_what_is_deployed(session: boto3.Session) -> None:
    identity = session.client("sts").get_caller_identity()
    assert (identity["Account"], identity["Arn"]) == (ACCOUNT, f"arn:aws:iam::{ACCOUNT}:root")
    (stack,) = session.client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    outputs = {each["OutputKey"] for each in stack["Outputs"]}
    assert outputs >= {"TrailBucket", "CaseBucket", "LedgerTable", "ReportBucket"}


def test_the_trail_and_what_it_selects(account: LocalAccount, session: boto3.Session) -> None:
    cloudtrail = session.client("cloudtrail")
    (trail,) = cloudtrail.describe_trails()["trailList"]
    assert trail["S3BucketName"] == account.outputs["TrailBucket"]
    assert (trail["HasCustomEventSelectors"], trail["HomeRegion"]) == (True, REGION)
    asked_at = datetime.now(UTC).replace(microsecond=0)
    new_queue(account).send()

    def delivered_since() -> bool:
        status = cloudtrail.get_trail_status(Name=trail["TrailARN"])
        assert status["IsLogging"]
        assert "LatestDeliveryError" not in status
        latest = status.get("LatestDeliveryTime")
        return latest is not None and bool(latest >= asked_at)

    eventually(delivered_since)
    selectors = cloudtrail.get_event_selectors(TrailName=trail["TrailARN"])
    fields = [
        {each["Field"]: each for each in selector["FieldSelectors"]}
        for selector in selectors["AdvancedEventSelectors"]
    ]
    assert {"Equals": ["AWS::SQS::Queue"], "Field": "resources.type"} in [
        each.get("resources.type") for each in fields
    ]
    assert any(each.get("userIdentity.arn", {}).get("NotStartsWith") for each in fields)


def test_schedules_rules_and_their_targets(session: boto3.Session) -> None:
    scheduler, events = session.client("scheduler"), session.client("events")
    names = {each["Name"] for each in scheduler.list_schedules()["Schedules"]}
    deployed = _resources(session, "AWS::Scheduler::Schedule")
    assert deployed
    assert names >= set(deployed)
    for name in deployed:
        schedule = scheduler.get_schedule(Name=name)
        assert schedule["State"] == "ENABLED"
        assert schedule["ScheduleExpression"]
        assert schedule["Target"]["RoleArn"].startswith(f"arn:aws:iam::{ACCOUNT}:role/")
    rules = [each.rpartition("|")[2] for each in _resources(session, "AWS::Events::Rule")]
    assert rules
    for name in rules:
        rule = events.describe_rule(Name=name)
        assert (rule["State"], bool(rule["EventPattern"])) == ("ENABLED", True)
        assert events.list_targets_by_rule(Rule=name)["Targets"]


def test_functions_roles_and_topics(session: boto3.Session) -> None:
    lambdas, iam, sns = session.client("lambda"), session.client("iam"), session.client("sns")
    functions = _resources(session, "AWS::Lambda::Function")
    assert functions
    for name in functions:
        configuration = lambdas.get_function_configuration(FunctionName=name)
        assert (configuration["State"], configuration["FunctionName"]) == ("Active", name)
        role = configuration["Role"].rpartition("/")[2]
        assert iam.get_role(RoleName=role)["Role"]["Arn"] == configuration["Role"]
    topics = _resources(session, "AWS::SNS::Topic")
    assert topics
    reader = f"arn:aws:sqs:{REGION}:{ACCOUNT}:reader-{uuid.uuid4()}"
    for arn in topics:
        subscribed = sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=reader)
        listed = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        assert reader in {each["Endpoint"] for each in listed}
        sns.unsubscribe(SubscriptionArn=subscribed["SubscriptionArn"])
        listed = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        assert reader not in {each["Endpoint"] for each in listed}


def test_queues_by_name_and_by_tag(account: LocalAccount, session: boto3.Session) -> None:
    tagged = new_queue(account, tags={"mendq": "heal", "team": "a"})
    off, untagged = new_queue(account, tags={"mendq": "off"}), new_queue(account)
    pages = session.client("sqs").get_paginator("list_queues")
    listed = {
        url
        for page in pages.paginate(QueueNamePrefix="test-", PaginationConfig={"PageSize": 2})
        for url in page.get("QueueUrls", [])
    }
    assert {tagged.url, off.url, untagged.url} <= listed
    found: dict[str, dict[str, str]] = {}
    tagging = session.client("resourcegroupstaggingapi")
    for page in tagging.get_paginator("get_resources").paginate(
        ResourceTypeFilters=["sqs"], TagFilters=[{"Key": "mendq", "Values": ["heal", "observe"]}]
    ):
        for each in page["ResourceTagMappingList"]:
            found[each["ResourceARN"]] = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
    assert found[tagged.arn] == {"mendq": "heal", "team": "a"}
    assert not {off.arn, untagged.arn} & found.keys()


def test_alarms_that_ring(account: LocalAccount, session: boto3.Session) -> None:
    """Composites and metric math are not emulated: of those nothing is known."""
    cloudwatch: Any = session.client("cloudwatch")

    def ringing() -> dict[str, dict[str, Any]]:
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix="mendq-",
            StateValue="ALARM",
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        return {each["AlarmName"]: each for page in pages for each in page["MetricAlarms"]}

    name = "mendq-week-failed"
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="a test")
    assert name not in ringing()
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test")
    alarm = ringing()[name]
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="a test")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Mendq", "WeeksFailed")
    assert alarm["AlarmDescription"].endswith("Runbook: docs/runbooks/nights_and_report.md")
    assert alarm["AlarmActions"] == [account.outputs["InfoTopic"]]


def test_runs_and_errors_of_a_lambda(account: LocalAccount, session: boto3.Session) -> None:
    """One that nobody starts but this test; a run counts once, and its error."""
    name = account.outputs["RollBackFunction"]
    dimensions = [{"Name": "FunctionName", "Value": name}]
    cloudwatch, lambdas = session.client("cloudwatch"), session.client("lambda")

    def counted(metric: str) -> float:
        now = datetime.now(UTC)
        answer = cloudwatch.get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName=metric,
            Dimensions=dimensions,
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=60,
            Statistics=["Sum"],
        )
        return float(sum(each["Sum"] for each in answer["Datapoints"]))

    runs, errors = counted("Invocations"), counted("Errors")
    lambdas.invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" in lambdas.invoke(FunctionName=name, Payload=b"[]")
    eventually(lambda: counted("Invocations") == runs + 2)
    assert counted("Errors") == errors + 1
    (log_group,) = {
        lambdas.get_function_configuration(FunctionName=name)["LoggingConfig"]["LogGroup"]
    }
    assert log_group in _resources(session, "AWS::Logs::LogGroup")
