"""What AWS takes and never acts on, or refuses at deployment; and what outlives a stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template

HOUR, DAY, WEEK = 3_600, 86_400, 604_800
LONGEST_DESCRIPTION = 1_024
ALARM = "AWS::CloudWatch::Alarm"


def alarms_can_fire(template: Template) -> Iterator[str]:
    """An alarm that wants more breaching points than it looks at never fires; AWS takes it.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
    """
    for name, alarm in template.all(ALARM).items():
        given = alarm["Properties"]
        periods = given["EvaluationPeriods"]
        if not 1 <= given.get("DatapointsToAlarm", periods) <= periods:
            yield f"{name} wants {given['DatapointsToAlarm']} of {periods} points"
        for seconds in _periods(given):
            if seconds % 60:
                yield f"{name} has a period of {seconds} s, which our metrics cannot fill"
            if seconds > DAY:
                yield f"{name} has a period of {seconds} s, and a day is the longest"
            if seconds * periods > (DAY if seconds < HOUR else WEEK):
                yield f"{name} looks back further than CloudWatch does"
    for kind in (ALARM, "AWS::CloudWatch::CompositeAlarm"):
        for name, alarm in template.all(kind).items():
            if len(alarm["Properties"].get("AlarmDescription", "")) > LONGEST_DESCRIPTION:
                yield f"{name} says more than {LONGEST_DESCRIPTION} characters"


def _periods(given: dict[str, Any]) -> Iterator[int]:
    metrics = given.get("Metrics", [])
    asked = (given, *metrics, *(each.get("MetricStat", {}) for each in metrics))
    yield from (each["Period"] for each in asked if "Period" in each)


EVENT_RULE = "AWS::Events::Rule"


BUCKET, TABLE = "AWS::S3::Bucket", "AWS::DynamoDB::Table"
RETAINED = {BUCKET: "BucketName", TABLE: "TableName"}


def what_we_know_is_retained(template: Template) -> Iterator[str]:
    """The case store and the buckets outlive the stack, and are not in the way of the next one."""
    for name, each in template.raw["Resources"].items():
        policies = {each.get("DeletionPolicy"), each.get("UpdateReplacePolicy")}
        if each["Type"] not in RETAINED:
            if "Retain" in policies:
                yield f"{name} is kept, and docs/leaving.md does not name it"
            continue
        if policies != {"Retain"}:
            yield f"{name} goes with the stack"
        if RETAINED[each["Type"]] in each["Properties"]:
            yield f"{name} is kept under a name that the next stack would want"
        wanted = each["Properties"].get("PointInTimeRecoverySpecification", {})
        if each["Type"] == TABLE and wanted.get("PointInTimeRecoveryEnabled") is not True:
            yield f"{name} cannot be restored"
