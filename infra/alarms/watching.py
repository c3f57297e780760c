"""How an alarm on one metric is made."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms.description import AlarmDescription
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric

A_MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
AN_HOUR = Duration.hours(1)
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
FINE = cloudwatch.TreatMissingData.NOT_BREACHING
A_FAULT = cloudwatch.TreatMissingData.BREACHING
# What was said last still holds.
AS_BEFORE = cloudwatch.TreatMissingData.IGNORE


@dataclass(frozen=True)
class Firing:
    """At `threshold` in `of` periods out of `periods`; `missing` is what silence means.

    Where periods are missing CloudWatch looks further back than `periods`, how far it does not say.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
    """

    threshold: float
    missing: cloudwatch.TreatMissingData
    of: int = 1
    periods: int = 1
    operator: cloudwatch.ComparisonOperator = AT_LEAST


@dataclass(frozen=True)
class Ringing:
    """An alarm on one metric, and what it tells."""

    announced: AlarmDescription
    alarm: cloudwatch.Alarm


def own(metric: OwnMetric | NightlyMetric, statistic: str, period: Duration) -> cloudwatch.Metric:
    """A metric of Mendq's, without a dimension."""
    return cloudwatch.Metric(
        namespace=NAMESPACE, metric_name=metric.value, statistic=statistic, period=period
    )


def watch(
    scope: Construct,
    announced: AlarmDescription,
    metric: cloudwatch.IMetric,
    firing: Firing,
    of: str = "",
) -> Ringing:
    """An alarm as `announced` describes it; `of` names what it watches where there are several."""
    name = announced.called(of)
    alarm = cloudwatch.Alarm(
        scope,
        "".join(each.capitalize() for each in name.split("-")[1:]),
        alarm_name=name,
        alarm_description=announced.description(scope),
        metric=metric,
        threshold=firing.threshold,
        comparison_operator=firing.operator,
        datapoints_to_alarm=firing.of,
        evaluation_periods=firing.periods,
        treat_missing_data=firing.missing,
    )
    return Ringing(announced, alarm)
