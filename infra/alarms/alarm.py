"""One alarm: its description for people, when it fires, and its construct."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from msgspec import Struct

from mendq.model.case import Severity
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import ALARM_PREFIX, DOCTOR, format_alarm_description
from mendq.notifications.text import link_runbooks

OPEN_CASES = "mendq cases --open"
# The name of the alarm on the intake's DLQ ends so.
INTAKE = "intake"
A_MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
AN_HOUR = Duration.hours(1)
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
# Above the band that CloudWatch expects. The threshold is the band's width in standard deviations.
ABOVE_BAND = cloudwatch.ComparisonOperator.GREATER_THAN_UPPER_THRESHOLD
# What missing data means.
FINE = cloudwatch.TreatMissingData.NOT_BREACHING
A_FAULT = cloudwatch.TreatMissingData.BREACHING
AS_BEFORE = cloudwatch.TreatMissingData.IGNORE


def in_region(command: str, region: str) -> str:
    """Add the region to a command, because the reader's default may be another one."""
    return f"{command} --region {region}"


class AlarmDescription(Struct, frozen=True):
    """Texts about an alarm for people.

    Attributes:
        name: its name in words, with underscores.
        when: when it fires.
        impact: what it means for users.
        command: what to type first.
        runbook: name of the runbook's page, if it is not the alarm's own name.
        severity: the topic that it notifies; None if it notifies nobody by itself.
        part: the part of the stack that it belongs to; empty for a composite.
        is_essential: True if the setting `alarms: essential` keeps it.
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
        """Path of its runbook from the repository's root."""
        return f"docs/runbooks/{self.runbook or self.name}.md"

    def description(self, scope: Construct) -> str:
        """The text that CloudWatch sends with the alarm, for the stack of `scope`."""
        stack = Stack.of(scope)
        command = in_region(self.command, stack.region)
        text = format_alarm_description(self.impact, self.when, stack.account, command, self.page)
        return link_runbooks(text, scope.node.try_get_context("docsUrl"))

    def alarm_name(self, resource: str = "") -> str:
        """The alarm's name. It ends in the watched resource if there is one alarm for each."""
        name = ALARM_PREFIX + self.name.replace("_", "-")
        return f"{name}-{resource}" if resource else name

    def construct_id(self, resource: str = "") -> str:
        """The id of the alarm's construct: its name without the prefix, in camel case."""
        words = self.alarm_name(resource).removeprefix(ALARM_PREFIX).split("-")
        return "".join(word.capitalize() for word in words)


class Firing(Struct, frozen=True):
    """When an alarm fires: if the metric breaches `threshold` in `of` of `periods` periods.

    `missing` says what missing data means. If periods are missing, CloudWatch looks further back
    than `periods`; how far is not documented.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
    """

    threshold: float
    missing: cloudwatch.TreatMissingData
    of: int = 1
    periods: int = 1
    operator: cloudwatch.ComparisonOperator = AT_LEAST


class Watch(Struct, frozen=True):
    """An alarm on one metric. `resource` names what it watches if there is one alarm for each."""

    description: AlarmDescription
    metric: cloudwatch.IMetric
    firing: Firing
    resource: str = ""

    @property
    def is_essential(self) -> bool:
        """True if the setting `alarms: essential` keeps it. Of several, keep the intake's."""
        return self.description.is_essential and self.resource in ("", INTAKE)

    def alarm(self, scope: Construct) -> cloudwatch.Alarm:
        """Make the alarm."""
        if self.firing.operator is ABOVE_BAND:
            return cloudwatch.AnomalyDetectionAlarm(
                scope,
                self.description.construct_id(self.resource),
                alarm_name=self.description.alarm_name(self.resource),
                alarm_description=self.description.description(scope),
                metric=self.metric,
                comparison_operator=self.firing.operator,
                std_devs=self.firing.threshold,
                datapoints_to_alarm=self.firing.of,
                evaluation_periods=self.firing.periods,
                treat_missing_data=self.firing.missing,
            )
        return cloudwatch.Alarm(
            scope,
            self.description.construct_id(self.resource),
            alarm_name=self.description.alarm_name(self.resource),
            alarm_description=self.description.description(scope),
            metric=self.metric,
            comparison_operator=self.firing.operator,
            threshold=self.firing.threshold,
            datapoints_to_alarm=self.firing.of,
            evaluation_periods=self.firing.periods,
            treat_missing_data=self.firing.missing,
        )


def own(metric: OwnMetric | NightlyMetric, statistic: str, period: Duration) -> cloudwatch.Metric:
    """A metric that Mendq sends, without dimensions."""
    return cloudwatch.Metric(
        namespace=NAMESPACE, metric_name=metric.value, statistic=statistic, period=period
    )


def composite(
    scope: Construct,
    description: AlarmDescription,
    rule: cloudwatch.IAlarmRule,
    suppressor: cloudwatch.IAlarm | None = None,
    settling: Duration | None = None,
) -> cloudwatch.CompositeAlarm:
    """Make one alarm of several that have one cause.

    Args:
        scope: the construct that holds it.
        description: its description.
        rule: which alarms must ring.
        suppressor: the alarm that holds back its notification.
        settling: how late `suppressor` may begin, and how long it may be away.
    """
    return cloudwatch.CompositeAlarm(
        scope,
        description.construct_id(),
        composite_alarm_name=description.alarm_name(),
        alarm_description=description.description(scope),
        alarm_rule=rule,
        actions_suppressor=suppressor,
        actions_suppressor_wait_period=settling,
        actions_suppressor_extension_period=settling,
    )
