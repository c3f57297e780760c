"""What `mendq doctor` asks of an account, by boto3 alone, as any other client would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCESS_KEY, REGION, SECRET_KEY
from tests.local_account.queues import eventually, new_queue

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
    assert alarm["AlarmDescription"].endswith("Runbook: docs/runbooks/nightly_and_report.md")
    assert alarm["AlarmActions"] == [account.outputs["InfoTopic"]]


def test_runs_and_errors_of_a_lambda(account: LocalAccount, session: boto3.Session) -> None:
    """One that nobody starts but this test; a run counts once, and its error."""
    name = account.outputs["RollbackFunction"]
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
