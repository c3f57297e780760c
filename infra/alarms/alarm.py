"""An alarm: in words, when it fires, and how it is made.

The words say what it means for people, what to type first, and where to read on.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from msgspec import Struct

from mendq.model.case import Severity
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import ALARM_PREFIX, DOCTOR, worded
from mendq.notifications.text import linked

OPEN_CASES = "mendq cases --open"
# What an alarm on the DLQ of the intake ends in.
INTAKE = "intake"
A_MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
AN_HOUR = Duration.hours(1)
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
# Of the band that CloudWatch expects, which is as many standard deviations wide as the threshold.
ABOVE_BAND = cloudwatch.ComparisonOperator.GREATER_THAN_UPPER_THRESHOLD
FINE = cloudwatch.TreatMissingData.NOT_BREACHING
A_FAULT = cloudwatch.TreatMissingData.BREACHING
# What was said last still holds.
AS_BEFORE = cloudwatch.TreatMissingData.IGNORE


def in_region(command: str, region: str) -> str:
    """What to type: whoever is paged has another region as the default."""
    return f"{command} --region {region}"


class AlarmDescription(Struct, frozen=True):
    """What a person reads of one alarm; `command` is the first to type.

    `when` says when it fires. `runbook` is the name of the page where it shares another's.
    `severity` says whom it reaches by itself; None is nobody: a composite joins it to others.
    `part` is where in the stack it is. `is_essential` is what the setting `alarms` keeps in any
    case: what tells of harm to users, or that Mendq does not heal.
    """

    name: str
    when: str
    impact: str
    command: str = DOCTOR
    runbook: str = ""
    severity: Severity | None = None
    part: str = ""
    is_essential: bool = False

    @property
    def page(self) -> str:
        """Its runbook, from the root of the repository."""
        return f"docs/runbooks/{self.runbook or self.name}.md"

    def description(self, scope: Construct) -> str:
        """What CloudWatch sends to people with the alarm, of the stack that `scope` is in."""
        stack = Stack.of(scope)
        said = self.impact, self.when, stack.account, in_region(self.command, stack.region)
        return linked(worded(*said, self.page), scope.node.try_get_context("docsUrl"))

    def called(self, of: str = "") -> str:
        """The alarm's name, with what it watches where there are several of them."""
        return ALARM_PREFIX + "-".join(filter(None, (self.name.replace("_", "-"), of)))

    def construct(self, of: str = "") -> str:
        """Its name in the stack."""
        return "".join(each.capitalize() for each in self.called(of).split("-")[1:])


class Firing(Struct, frozen=True):
    """At `threshold` in `of` periods out of `periods`; `missing` is what silence means.

    Where periods are missing CloudWatch looks further back than `periods`, how far it does not say.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
    """

    threshold: float
    missing: cloudwatch.TreatMissingData
    of: int = 1
    periods: int = 1
    operator: cloudwatch.ComparisonOperator = AT_LEAST


class Watch(Struct, frozen=True):
    """An alarm on one metric; `of` names what it watches where there are several."""

    announced: AlarmDescription
    metric: cloudwatch.IMetric
    firing: Firing
    of: str = ""

    @property
    def is_essential(self) -> bool:
        """Of several of a kind, the one on what failed calls come by."""
        return self.announced.is_essential and self.of in ("", INTAKE)

    def alarm(self, scope: Construct) -> cloudwatch.Alarm:
        """Make it."""
        is_band = self.firing.operator is ABOVE_BAND
        kind = cloudwatch.AnomalyDetectionAlarm if is_band else cloudwatch.Alarm
        bound: Any = {"std_devs" if is_band else "threshold": self.firing.threshold}
        return kind(
            scope,
            self.announced.construct(self.of),
            alarm_name=self.announced.called(self.of),
            alarm_description=self.announced.description(scope),
            metric=self.metric,
            comparison_operator=self.firing.operator,
            datapoints_to_alarm=self.firing.of,
            evaluation_periods=self.firing.periods,
            treat_missing_data=self.firing.missing,
            **bound,
        )


def own(metric: OwnMetric | NightlyMetric, statistic: str, period: Duration) -> cloudwatch.Metric:
    """A metric of Mendq's, without a dimension."""
    return cloudwatch.Metric(
        namespace=NAMESPACE, metric_name=metric.value, statistic=statistic, period=period
    )


def composite(
    scope: Construct,
    announced: AlarmDescription,
    rule: cloudwatch.IAlarmRule,
    held_back_by: cloudwatch.IAlarm | None = None,
    settling: Duration | None = None,
) -> cloudwatch.CompositeAlarm:
    """Several alarms of one cause, which make one page.

    What holds it back may be away or come late by `settling`.
    """
    return cloudwatch.CompositeAlarm(
        scope,
        announced.construct(),
        composite_alarm_name=announced.called(),
        alarm_description=announced.description(scope),
        alarm_rule=rule,
        actions_suppressor=held_back_by,
        actions_suppressor_wait_period=settling,
        actions_suppressor_extension_period=settling,
    )
