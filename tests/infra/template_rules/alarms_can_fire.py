"""An alarm that wants more breaching points than it looks at never fires; AWS takes it.

Period and EvaluationPeriods: the reference of PutMetricAlarm; the longest period: CloudWatch's
concepts, https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, add

HOUR, DAY, WEEK = 3_600, 86_400, 604_800
LONGEST_DESCRIPTION = 1_024


def findings(template: Template) -> Findings:
    for name, alarm in template.all("AWS::CloudWatch::Alarm").items():
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
    for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
        for name, alarm in template.all(kind).items():
            if len(alarm["Properties"].get("AlarmDescription", "")) > LONGEST_DESCRIPTION:
                yield f"{name} says more than {LONGEST_DESCRIPTION} characters"


def _periods(given: dict[str, Any]) -> Iterator[int]:
    metrics = given.get("Metrics", [])
    asked = (given, *metrics, *(each.get("MetricStat", {}) for each in metrics))
    yield from (each["Period"] for each in asked if "Period" in each)


def _alarm(resources: Resources, **changed: Any) -> None:
    given = {"EvaluationPeriods": 3, "DatapointsToAlarm": 2, "Period": 300, **changed}
    add(resources, "AWS::CloudWatch::Alarm", **given)


RULE = Rule(
    findings,
    {
        "more points than periods": lambda found: _alarm(found, DatapointsToAlarm=4),
        "no point at all": lambda found: _alarm(found, DatapointsToAlarm=0),
        "a period that is no minute": lambda found: _alarm(found, Period=90),
        "more than a day in minutes": lambda found: _alarm(found, EvaluationPeriods=289),
        "more than a week in hours": lambda found: _alarm(
            found, EvaluationPeriods=169, Period=HOUR
        ),
        "a period above a day": lambda found: _alarm(
            found, EvaluationPeriods=1, DatapointsToAlarm=1, Period=DAY + 60
        ),
        "a period within metric math": lambda found: _alarm(
            found, Metrics=[{"Id": "m", "MetricStat": {"Period": 45}}]
        ),
        "too long a description": lambda found: _alarm(found, AlarmDescription="x" * 1_025),
    },
)
