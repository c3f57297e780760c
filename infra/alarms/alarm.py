"""The parts of an alarm: its description for people, its rule for firing, and its construct."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from msgspec import Struct

from mendq.model.case import Severity
from mendq.model.names import METRIC_NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import ALARM_PREFIX, DOCTOR_COMMAND, format_alarm_description
from mendq.notifications.text import link_runbooks

OPEN_CASES_COMMAND = "mendq cases --open"
# End of the name of the alarm on the intake's DLQ.
INTAKE_ALARM_SUFFIX = "intake"
ONE_MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
ONE_HOUR = Duration.hours(1)
AT_LEAST_THRESHOLD_OPERATOR = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
BELOW_THRESHOLD_OPERATOR = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
# Fire above the band that CloudWatch expects. The threshold is then the width of the band, in
# standard deviations.
ABOVE_EXPECTED_BAND_OPERATOR = cloudwatch.ComparisonOperator.GREATER_THAN_UPPER_THRESHOLD
# How an alarm treats missing data: as fine, as a fault, or by keeping its state.
MISSING_DATA_IS_FINE = cloudwatch.TreatMissingData.NOT_BREACHING
MISSING_DATA_IS_A_FAULT = cloudwatch.TreatMissingData.BREACHING
MISSING_DATA_KEEPS_STATE = cloudwatch.TreatMissingData.IGNORE


def add_region_option(command: str, region: str) -> str:
    """Return the command with the option `--region`.

    The region must be named, because the reader's default region may be another one.
    """
    return f"{command} --region {region}"


class AlarmDescription(Struct, frozen=True):
    """An alarm's name, its texts for people, and its place in the stack.

    Attributes:
        name: the alarm's name in words, with underscores.
        firing_condition: the condition under which the alarm fires, in words.
        impact: the effect on users, in words.
        command: the command that a person should run first.
        runbook: name of the runbook's page, if it is not the alarm's own name.
        severity: which of Mendq's two topics the alarm notifies; None if a composite alarm uses it.
        part: the part of the stack that holds the alarm; empty for some composites.
        is_essential: True if the setting `alarms: essential` keeps the alarm.
    """

    name: str
    firing_condition: str
    impact: str
    command: str = DOCTOR_COMMAND
    runbook: str = ""
    severity: Severity | None = None
    part: str = ""
    is_essential: bool = False

    @property
    def runbook_path(self) -> str:
        """Path of the alarm's runbook, from the repository's root."""
        return f"docs/runbooks/{self.runbook or self.name}.md"

    def format_text(self, scope: Construct) -> str:
        """Return the text that CloudWatch sends with the alarm, for the stack of `scope`."""
        stack = Stack.of(scope)
        command = add_region_option(self.command, stack.region)
        description_text = format_alarm_description(
            self.impact, self.firing_condition, stack.account, command, self.runbook_path
        )
        return link_runbooks(description_text, scope.node.try_get_context("docsUrl"))

    def alarm_name(self, resource: str = "") -> str:
        """Return the alarm's name in CloudWatch, such as `mendq-own-dlq-intake`.

        `resource` is the end of the name, if each watched resource has an alarm of its own.
        """
        name = ALARM_PREFIX + self.name.replace("_", "-")
        return f"{name}-{resource}" if resource else name

    def construct_id(self, resource: str = "") -> str:
        """Return the id of the alarm's construct: its name without the prefix, in camel case."""
        name_words = self.alarm_name(resource).removeprefix(ALARM_PREFIX).split("-")
        return "".join(word.capitalize() for word in name_words)


class FiringRule(Struct, frozen=True):
    """The rule by which an alarm fires.

    It fires if the metric breaches a threshold in some of the newest periods.

    If periods have no data, CloudWatch looks further back; how far is not documented.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html

    Attributes:
        threshold: the value that the metric is compared with.
        missing_data_treatment: how missing data is treated.
        breaching_periods: the number of periods that must breach the threshold.
        watched_periods: the number of newest periods that are looked at.
        comparison_operator: how the metric is compared with the threshold.
    """

    threshold: float
    missing_data_treatment: cloudwatch.TreatMissingData
    breaching_periods: int = 1
    watched_periods: int = 1
    comparison_operator: cloudwatch.ComparisonOperator = AT_LEAST_THRESHOLD_OPERATOR


class MetricAlarm(Struct, frozen=True):
    """An alarm on one metric: its description, the metric and the rule for firing.

    If each watched resource has an alarm of its own, `resource` is the end of the alarm's name.
    """

    description: AlarmDescription
    metric: cloudwatch.IMetric
    firing_rule: FiringRule
    resource: str = ""

    @property
    def is_essential(self) -> bool:
        """True if the setting `alarms: essential` keeps the alarm.

        Of the alarms with a `resource`, the setting keeps only the intake's.
        """
        return self.description.is_essential and self.resource in ("", INTAKE_ALARM_SUFFIX)

    def make_alarm(self, scope: Construct) -> cloudwatch.Alarm:
        """Make the alarm's construct and return it.

        It is an anomaly detection alarm if the rule fires above the band that CloudWatch expects.
        """
        if self.firing_rule.comparison_operator is ABOVE_EXPECTED_BAND_OPERATOR:
            return cloudwatch.AnomalyDetectionAlarm(
                scope,
                self.description.construct_id(self.resource),
                alarm_name=self.description.alarm_name(self.resource),
                alarm_description=self.description.format_text(scope),
                metric=self.metric,
                comparison_operator=self.firing_rule.comparison_operator,
                std_devs=self.firing_rule.threshold,
                datapoints_to_alarm=self.firing_rule.breaching_periods,
                evaluation_periods=self.firing_rule.watched_periods,
                treat_missing_data=self.firing_rule.missing_data_treatment,
            )
        return cloudwatch.Alarm(
            scope,
            self.description.construct_id(self.resource),
            alarm_name=self.description.alarm_name(self.resource),
            alarm_description=self.description.format_text(scope),
            metric=self.metric,
            comparison_operator=self.firing_rule.comparison_operator,
            threshold=self.firing_rule.threshold,
            datapoints_to_alarm=self.firing_rule.breaching_periods,
            evaluation_periods=self.firing_rule.watched_periods,
            treat_missing_data=self.firing_rule.missing_data_treatment,
        )


def make_own_metric(
    metric: OwnMetric | NightlyMetric, statistic: str, period: Duration
) -> cloudwatch.Metric:
    """Return a metric that Mendq itself sends, without dimensions."""
    return cloudwatch.Metric(
        namespace=METRIC_NAMESPACE, metric_name=metric.value, statistic=statistic, period=period
    )


def make_composite(
    scope: Construct,
    description: AlarmDescription,
    ringing_rule: cloudwatch.IAlarmRule,
    suppressor_alarm: cloudwatch.IAlarm | None = None,
    grace_period: Duration | None = None,
) -> cloudwatch.CompositeAlarm:
    """Make a composite alarm: an alarm on the states of other alarms.

    Args:
        scope: the construct that holds the alarm.
        description: the alarm's description.
        ringing_rule: which other alarms must ring.
        suppressor_alarm: while this alarm rings, CloudWatch sends no notification of the composite.
        grace_period: how long CloudWatch waits for `suppressor_alarm` to begin before it notifies,
            and how long `suppressor_alarm` still counts after it has ended.
    """
    return cloudwatch.CompositeAlarm(
        scope,
        description.construct_id(),
        composite_alarm_name=description.alarm_name(),
        alarm_description=description.format_text(scope),
        alarm_rule=ringing_rule,
        actions_suppressor=suppressor_alarm,
        actions_suppressor_wait_period=grace_period,
        actions_suppressor_extension_period=grace_period,
    )
