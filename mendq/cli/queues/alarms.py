"""`mendq alarms QUEUE`: the alarms that a queue lacks, sized by its own last two weeks.

Printed and never made: an alarm belongs into the template of whoever owns the queue.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum, auto
from itertools import groupby, product
from shlex import quote
from statistics import fmean, pstdev
from typing import Annotated, Any

import typer
from botocore import xform_name
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.cloudwatch import (
    ALARM_PERIOD,
    FORTNIGHT,
    alarm_names,
    queue_alarms,
    read_two_weeks,
    with_alarms,
)
from mendq.aws.dlqs import dlq_arn_here, list_source_arns
from mendq.aws.queue import attributes_if_there
from mendq.catalogue.configuration.alarm_missing import (
    AGE,
    DEPTH,
    IN_FLIGHT,
    WATCHED,
    find_unwatched_metrics,
)
from mendq.cli.account import Account
from mendq.cli.commands import QUEUE, SOURCES, Kind, command
from mendq.cli.invocation import Invocation
from mendq.cli.queues import QueueName, require_queue, resolve_queue_arn
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Points
from mendq.notifications.text import format_count

# So often an alarm may have rung in the two weeks that it is sized by: once a week.
MOST_RINGS = 2
# Periods in a row and standard deviations: the first pair that would have rung no oftener. What
# needs a wider band has no pattern that a band could follow.
PERIODS, WIDTHS = (3, 6, 12), (2, 3, 4, 5, 6)
# So many standard deviations above the largest value, where a band is no use.
MARGIN = 2
# What was reported for less of the two weeks shows no pattern of days.
LEAST_SHARE = 0.5
# What one receive takes at most: fewer in flight are nothing to be told of.
A_RECEIVE = 10
# Any message may wait that long, in a burst or behind a consumer that starts.
A_WAIT_SECONDS = 300
TOPIC = "TOPIC_ARN"
_NAMES = {AGE: "oldest-message-age", IN_FLIGHT: "in-flight", DEPTH: "messages"}
_BLOCKS = {"Metrics": "metric_query", "MetricStat": "metric"}
_SEEN = {"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"}


class SizedAlarm(Struct, frozen=True):
    """A band so many standard deviations wide, else a fixed threshold; and why so."""

    because: str
    periods: int
    width: int | None = None
    threshold: int = 0
    period_seconds: int = int(ALARM_PERIOD.total_seconds())

    @property
    def in_words(self) -> str:
        above = f"a band of {self.width} standard deviations" if self.width else self.threshold
        minutes = self.periods * self.period_seconds // 60
        return f"It rings above {above} for {minutes} min: {self.because}."


FIRST = SizedAlarm("each message there is news, however many are usual", 1, period_seconds=60)


def size_alarm(points: Points, least: float) -> SizedAlarm:
    """By what a metric did in two weeks; up to `least` it tells of no trouble."""
    values = [value for _, value in points]
    highest, share = max(values, default=0), len(points) / (FORTNIGHT / ALARM_PERIOD)
    for periods, width in product(
        PERIODS, WIDTHS if highest > least and share >= LEAST_SHARE else ()
    ):
        if (rings := _rings(points, periods, width)) <= MOST_RINGS:
            often = f"{format_count(rings, 'time')} in the last two weeks, by the mean of each hour"
            return SizedAlarm(f"it would have rung {often}", periods, width)
    threshold = round(max(least, highest + MARGIN * pstdev(values or [0])))
    why = f"no band fits what CloudWatch has: {share:.0%} of two weeks, and {highest:,.0f} at most"
    return SizedAlarm(why, PERIODS[0], threshold=threshold)


def _rings(points: Points, periods: int, width: float) -> int:
    """How often so many in a row were so far above the mean of their hour of the day."""
    by_hour = defaultdict[int, list[float]](list)
    for at, value in points:
        by_hour[at.hour].append(value)
    most = {hour: fmean(each) + width * pstdev(each) for hour, each in by_hour.items()}
    runs = groupby(value > most[at.hour] for at, value in points)
    return sum(above and len(list(run)) >= periods for above, run in runs)


def make_alarm(
    queue_name: str, metric: str, size: SizedAlarm, topic: str, taken: Collection[str] = ()
) -> dict[str, Any]:
    """What PutMetricAlarm takes, and CloudFormation by the same names.

    PutMetricAlarm overwrites an alarm of its name: one of those `taken` is somebody's.
    """
    name = f"sqs-{queue_name}-{_NAMES[metric]}"
    names = (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
    dimensions = [{"Name": "QueueName", "Value": queue_name}]
    of = {"Namespace": "AWS/SQS", "MetricName": metric, "Dimensions": dimensions}
    rings = {"EvaluationPeriods": size.periods, "TreatMissingData": "notBreaching"}
    free = next(each for each in names if each not in taken)
    alarm = {"AlarmName": free, "AlarmActions": [topic], **rings}
    if size.width is None:
        fixed = {"Period": size.period_seconds, "Statistic": "Maximum", "Threshold": size.threshold}
        return {**alarm, "ComparisonOperator": "GreaterThanThreshold", **of, **fixed}
    band = f"ANOMALY_DETECTION_BAND(seen, {size.width})"
    stat = {"Metric": of, "Period": size.period_seconds, "Stat": "Maximum"}
    return {
        **alarm,
        "ComparisonOperator": "GreaterThanUpperThreshold",
        "ThresholdMetricId": "band",
        "Metrics": [
            {"Id": "seen", "MetricStat": stat, "ReturnData": True},
            {"Id": "band", "Expression": band, "ReturnData": True},
        ],
    }


class Format(StrEnum):
    """What alarms are written for; JSON is CloudFormation's YAML as well, and a literal of CDK."""

    CLI = auto()
    CLOUDFORMATION = auto()
    TERRAFORM = auto()
    CDK = auto()


def render_lines(alarm: Mapping[str, Any], region: str, written: Format) -> list[str]:
    """The alarm in that language, from the one document that all of them say."""
    name, kind = alarm["AlarmName"], "AWS::CloudWatch::Alarm"
    words = re.findall("[A-Za-z0-9]+", name)
    logical_id = "".join(map(str.capitalize, words))
    if written is Format.CLI:
        given = f"--region {region} --cli-input-json {quote(json.dumps(alarm))}"
        return [f"aws cloudwatch put-metric-alarm {given}"]
    if written is Format.TERRAFORM:
        return [f'resource "aws_cloudwatch_metric_alarm" "{"_".join(words)}" {{', *_hcl(alarm), "}"]
    if written is Format.CDK:
        resource = json.dumps({"type": kind, "properties": alarm}, indent=2)
        return f'new cdk.CfnResource(this, "{logical_id}", {resource});'.splitlines()
    resource = json.dumps({"Type": kind, "Properties": alarm}, indent=2)
    return f'"{logical_id}": {resource}'.splitlines()


def _hcl(document: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """As the provider's aws_cloudwatch_metric_alarm takes it."""
    for key, each in document.items():
        if key == "Metric":
            yield from _hcl(each, indent)
        elif key == "Dimensions":
            yield f"{indent}dimensions = {{ QueueName = {json.dumps(each[0]['Value'])} }}"
        elif key in _BLOCKS:
            for block in each if isinstance(each, list) else [each]:
                yield f"{indent}{_BLOCKS[key]} {{"
                yield from _hcl(block, f"{indent}  ")
                yield f"{indent}}}"
        else:
            yield f"{indent}{xform_name(key)} = {json.dumps(each)}"


@command(1, Kind.LOOKING, QUEUE | SOURCES | _SEEN)
def alarms(
    call: Invocation,
    queue: QueueName,
    written: Annotated[
        Format, typer.Option("--format", help="What the alarms are written for.")
    ] = Format.CLI,
    topic: Annotated[str, typer.Option(help="The ARN of the SNS topic that they tell.")] = TOPIC,
) -> None:
    """The alarms that a queue lacks, sized by its last two weeks.

    Examples:
      mendq alarms orders
      mendq alarms orders --format terraform
    """
    account, out = call.account, call.out
    with out.show_waiting("reading alarms, and two weeks of metrics"):
        facts = _facts(account, resolve_queue_arn(account, queue))
        missing = [*find_unwatched_metrics(facts)]
        least = {AGE: max(facts.visibility_seconds, A_WAIT_SECONDS), IN_FLIGHT: A_RECEIVE}
        banded = [metric for _, metric in missing if metric in least]
        seen = read_two_weeks(account.clients, facts.queue_arn, banded, datetime.now(UTC))
    found = list[dict[str, Any]]()
    for of, metric in missing:
        size = size_alarm(seen[metric], least[metric]) if metric in least else FIRST
        taken = alarm_names(account.clients, f"sqs-{of.name}-")
        alarm = make_alarm(of.name, metric, size, topic, taken)
        found.append({"queue": of.name, "metric": metric, **asdict(size), "alarm": alarm})
        out.say_heading(f"No alarm watches {WATCHED[metric].format(name=of.name)}")
        out.say_indented(size.in_words, indent=0)
        for line in render_lines(alarm, account.region, written):
            out.say_command(line)
    call.out.print_json({"queue_arn": facts.queue_arn, "missing": found})
    if not found:
        out.say("what matters here is watched by alarms", "green")


def _facts(account: Account, queue_arn: str) -> Facts:
    """The queue, its DLQ and its sources, with what alarms watch."""
    facts, clients = require_queue(account, queue_arn), account.clients
    here = dlq_arn_here(facts)
    dlq = QueueFacts(here, attributes_if_there(clients, here)) if here else None
    sources = tuple(QueueFacts(each, {}) for each in list_source_arns(clients, queue_arn))
    return with_alarms(replace(facts, dlq=dlq, dlq_sources=sources), queue_alarms(clients))
