"""Limits that AWS does not check at synthesis, and the resources that outlive a stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template

HOUR = 3_600
DAY = 86_400
WEEK = 604_800
LONGEST_DESCRIPTION = 1_024
ALARM = "AWS::CloudWatch::Alarm"


def check_alarms_can_fire(template: Template) -> Iterator[str]:
    """Every alarm can fire. AWS accepts an alarm that needs more points than it evaluates.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
    """
    for name, alarm in template.all(ALARM).items():
        given = alarm["Properties"]
        periods = given["EvaluationPeriods"]
        if not 1 <= given.get("DatapointsToAlarm", periods) <= periods:
            yield f"{name} wants {given['DatapointsToAlarm']} of {periods} points"
        for seconds in _list_periods(given):
            yield from _check_period(name, seconds, periods)
    for kind in (ALARM, "AWS::CloudWatch::CompositeAlarm"):
        for name, alarm in template.all(kind).items():
            if len(alarm["Properties"].get("AlarmDescription", "")) > LONGEST_DESCRIPTION:
                yield f"{name} says more than {LONGEST_DESCRIPTION} characters"


def _check_period(name: str, seconds: int, periods: int) -> Iterator[str]:
    if seconds % 60:
        yield f"{name} has a period of {seconds} s, which our metrics cannot fill"
    if seconds > DAY:
        yield f"{name} has a period of {seconds} s, and a day is the longest"
    if seconds * periods > (DAY if seconds < HOUR else WEEK):
        yield f"{name} looks back further than CloudWatch does"


def _list_periods(alarm: dict[str, Any]) -> Iterator[int]:
    metrics = alarm.get("Metrics", [])
    queries = (alarm, *metrics, *(metric.get("MetricStat", {}) for metric in metrics))
    yield from (query["Period"] for query in queries if "Period" in query)


EVENT_RULE = "AWS::Events::Rule"


BUCKET = "AWS::S3::Bucket"
TABLE = "AWS::DynamoDB::Table"
RETAINED = {BUCKET: "BucketName", TABLE: "TableName"}


def check_retained_resources(template: Template) -> Iterator[str]:
    """The case store and the buckets outlive the stack and do not block the next deployment."""
    for name, resource in template.raw["Resources"].items():
        policies = {resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")}
        # The keys of seals are of no use without the stack.
        if resource["Type"] not in RETAINED or name.startswith("Seals"):
            if "Retain" in policies:
                yield f"{name} is kept, and docs/leaving.md does not name it"
            continue
        if policies != {"Retain"}:
            yield f"{name} goes with the stack"
        if RETAINED[resource["Type"]] in resource["Properties"]:
            yield f"{name} is kept under a name that the next stack would want"
        wanted = resource["Properties"].get("PointInTimeRecoverySpecification", {})
        if resource["Type"] == TABLE and wanted.get("PointInTimeRecoveryEnabled") is not True:
            yield f"{name} cannot be restored"
