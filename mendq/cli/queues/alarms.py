"""`mendq alarms`: print the alarms that a queue lacks, or one alarm for all queues of the region.

The queue's last two weeks give the limits of its alarms. The command does not create the alarms:
they belong in the template of the queue's owner.
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
    ALARM_DATAPOINT_PERIOD,
    FORTNIGHT,
    add_alarmed_metrics_of_queue_and_dlq,
    list_alarm_names,
    read_alarmed_metrics,
    read_two_weeks_of_metrics,
)
from mendq.aws.dlqs import find_local_dlq_arn, list_source_arns
from mendq.aws.queue import read_attributes_if_queue_exists
from mendq.catalogue.configuration.alarm_missing import (
    AGE_METRIC,
    DEPTH_METRIC,
    DESCRIPTION_BY_METRIC,
    IN_FLIGHT_METRIC,
    find_unwatched_metrics,
)
from mendq.cli.account import Account
from mendq.cli.commands import (
    DLQ_SOURCES_ACTIONS,
    QUEUE_ATTRIBUTES_ACTIONS,
    SETTINGS_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output
from mendq.cli.queues import make_queue_argument, require_queue, resolve_queue_arn
from mendq.cli.region_alarm import (
    PERIOD_SECONDS,
    PERIODS,
    OperatorChoice,
    compute_alarm_prices,
    describe_limits,
    make_region_alarm,
    read_region_queues,
)
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Datapoints
from mendq.notifications.text import format_count

# Most times that a chosen alarm would have rung in the last two weeks: once a week.
MOST_RINGS_IN_TWO_WEEKS = 2
# Numbers of periods in a row and of standard deviations to try. For each number of periods, all
# bands are tried, the narrowest first. The first pair that rings rarely enough is taken. If none
# does, the metric follows no daily pattern.
TRIED_PERIOD_COUNTS = (3, 6, 12)
TRIED_BAND_WIDTHS = (2, 3, 4, 5, 6)
# Without a band the threshold is the largest value plus this many standard deviations.
THRESHOLD_MARGIN_DEVIATIONS = 2
# A metric with data for less than this share of the two weeks shows no daily pattern.
LEAST_SHARE_OF_TIME_WITH_DATA = 0.5
# One receive returns at most 10 messages, so up to 10 in flight are normal.
MESSAGES_PER_RECEIVE = 10
# Any message may wait this long, in a burst or until a consumer has started.
NORMAL_MESSAGE_WAIT_SECONDS = 300
TOPIC_PLACEHOLDER = "TOPIC_ARN"
REGION_ALARM_NAME = "sqs-all-queues-oldest-message-age"
_MOST_NAMED_UNREAD_QUEUES = 5
_ALL_OPTION_HELP = "Print one alarm for all queues: it rings if a message is older than this."
_WATCH_OPTION_HELP = "Watch this queue although it seems to be a DLQ; may be given again."
_LEAVE_OUT_OPTION_HELP = "Leave this queue out of the alarm; may be given again."
_ALARM_NAME_ENDING_BY_METRIC = {
    AGE_METRIC: "oldest-message-age",
    IN_FLIGHT_METRIC: "in-flight",
    DEPTH_METRIC: "messages",
}
# Properties that Terraform writes as blocks, with the names of the blocks.
_HCL_BLOCK_BY_PROPERTY = {"Metrics": "metric_query", "MetricStat": "metric"}
_ALARM_IAM_ACTIONS = {"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"}


class AlarmLimits(Struct, frozen=True):
    """The limits of an alarm: an anomaly band if `width` is set, else a fixed threshold."""

    # Reason for these limits, in words.
    because: str
    # Number of periods in a row above the limit before the alarm rings.
    periods: int
    # Width of the band in standard deviations.
    width: int | None = None
    threshold: int = 0
    period_seconds: int = int(ALARM_DATAPOINT_PERIOD.total_seconds())

    @property
    def sentence(self) -> str:
        """Sentence for people that says when the alarm rings, and why its limits are right."""
        limit_text = f"a band of {self.width} standard deviations" if self.width else self.threshold
        minutes = self.periods * self.period_seconds // 60
        return f"It rings above {limit_text} for {minutes} min: {self.because}."


FIRST_MESSAGE_ALARM = AlarmLimits(
    "each message there is news, however many are usual", 1, period_seconds=60
)


def choose_alarm_limits(datapoints: Datapoints, normal_value: float) -> AlarmLimits:
    """Choose the limits of an alarm from two weeks of the metric's values.

    Values up to `normal_value` are normal, however rare they are.
    """
    values = [value for _, value in datapoints]
    highest_value = max(values, default=0)
    share_of_time_with_data = len(datapoints) / (FORTNIGHT / ALARM_DATAPOINT_PERIOD)
    may_have_daily_pattern = (
        highest_value > normal_value and share_of_time_with_data >= LEAST_SHARE_OF_TIME_WITH_DATA
    )
    if may_have_daily_pattern:
        for period_count, band_width in product(TRIED_PERIOD_COUNTS, TRIED_BAND_WIDTHS):
            if (
                ring_count := _count_rings(datapoints, period_count, band_width)
            ) <= MOST_RINGS_IN_TWO_WEEKS:
                ring_count_text = f"{format_count(ring_count, 'time')} in the last two weeks"
                reason = f"it would have rung {ring_count_text}, by the mean of each hour"
                return AlarmLimits(reason, period_count, band_width)
    threshold = round(
        max(normal_value, highest_value + THRESHOLD_MARGIN_DEVIATIONS * pstdev(values or [0]))
    )
    reason = f"no band fits what CloudWatch has: {share_of_time_with_data:.0%} of two weeks"
    reason += f", and {highest_value:,.0f} at most"
    return AlarmLimits(reason, TRIED_PERIOD_COUNTS[0], threshold=threshold)


def _count_rings(datapoints: Datapoints, period_count: int, band_width: float) -> int:
    """Return how often an alarm would have rung with this number of periods and this band.

    The band is `band_width` standard deviations above the mean of the same hour of the day.
    """
    values_by_hour = defaultdict[int, list[float]](list)
    for measured_at, value in datapoints:
        values_by_hour[measured_at.hour].append(value)
    limit_by_hour = {
        hour: fmean(values) + band_width * pstdev(values) for hour, values in values_by_hour.items()
    }
    runs_above_or_below_limit = groupby(
        value > limit_by_hour[measured_at.hour] for measured_at, value in datapoints
    )
    return sum(
        is_above_limit and len(list(consecutive_values)) >= period_count
        for is_above_limit, consecutive_values in runs_above_or_below_limit
    )


def make_alarm(
    queue_name: str,
    metric: str,
    alarm_limits: AlarmLimits,
    topic_arn: str,
    existing_names: Collection[str] = (),
) -> dict[str, Any]:
    """Return the parameters of PutMetricAlarm, which are also CloudFormation's properties.

    The new alarm gets none of the `existing_names`: these belong to existing alarms, and
    PutMetricAlarm overwrites an alarm of the same name.
    """
    shared_properties = {
        "AlarmName": _choose_free_alarm_name(
            f"sqs-{queue_name}-{_ALARM_NAME_ENDING_BY_METRIC[metric]}", existing_names
        ),
        "AlarmActions": [topic_arn],
        "EvaluationPeriods": alarm_limits.periods,
        "TreatMissingData": "notBreaching",
    }
    metric_properties = {
        "Namespace": "AWS/SQS",
        "MetricName": metric,
        "Dimensions": [{"Name": "QueueName", "Value": queue_name}],
    }
    if alarm_limits.width is None:
        return {
            **shared_properties,
            "ComparisonOperator": "GreaterThanThreshold",
            **metric_properties,
            "Period": alarm_limits.period_seconds,
            "Statistic": "Maximum",
            "Threshold": alarm_limits.threshold,
        }
    band_expression = f"ANOMALY_DETECTION_BAND(seen, {alarm_limits.width})"
    metric_stat = {
        "Metric": metric_properties,
        "Period": alarm_limits.period_seconds,
        "Stat": "Maximum",
    }
    return {
        **shared_properties,
        "ComparisonOperator": "GreaterThanUpperThreshold",
        "ThresholdMetricId": "band",
        "Metrics": [
            {"Id": "seen", "MetricStat": metric_stat, "ReturnData": True},
            {"Id": "band", "Expression": band_expression, "ReturnData": True},
        ],
    }


def _choose_free_alarm_name(wanted_name: str, existing_names: Collection[str]) -> str:
    """Return the wanted name, or `NAME-2`, `NAME-3` and so on: the first that no alarm has yet."""
    free_name = wanted_name
    name_suffix_number = 1
    while free_name in existing_names:
        name_suffix_number += 1
        free_name = f"{wanted_name}-{name_suffix_number}"
    return free_name


class AlarmFormat(StrEnum):
    """The tool for which the alarms are printed.

    For CloudFormation and the CDK they are printed as JSON: YAML templates and CDK code accept it.
    """

    CLI = auto()
    CLOUDFORMATION = auto()
    TERRAFORM = auto()
    CDK = auto()


def render_lines(alarm: Mapping[str, Any], region: str, alarm_format: AlarmFormat) -> list[str]:
    """Return the lines that declare the alarm for one tool, or the AWS CLI command that makes it.

    `alarm` has the parameters of PutMetricAlarm.
    """
    resource_type = "AWS::CloudWatch::Alarm"
    alarm_name_words = re.findall("[A-Za-z0-9]+", alarm["AlarmName"])
    logical_id = "".join(map(str.capitalize, alarm_name_words))
    if alarm_format is AlarmFormat.CLI:
        cli_arguments = f"--region {region} --cli-input-json {quote(json.dumps(alarm))}"
        return [f"aws cloudwatch put-metric-alarm {cli_arguments}"]
    if alarm_format is AlarmFormat.TERRAFORM:
        resource_line = f'resource "aws_cloudwatch_metric_alarm" "{"_".join(alarm_name_words)}" {{'
        return [resource_line, *_render_hcl(alarm), "}"]
    if alarm_format is AlarmFormat.CDK:
        resource_json = json.dumps({"type": resource_type, "properties": alarm}, indent=2)
        return f'new cdk.CfnResource(this, "{logical_id}", {resource_json});'.splitlines()
    resource_json = json.dumps({"Type": resource_type, "Properties": alarm}, indent=2)
    return f'"{logical_id}": {resource_json}'.splitlines()


def _render_hcl(alarm_properties: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """Yield the arguments of Terraform's `aws_cloudwatch_metric_alarm`, line by line."""
    for name, value in alarm_properties.items():
        if name == "Metric":
            yield from _render_hcl(value, indent)
        elif name == "Dimensions":
            yield f"{indent}dimensions = {{ QueueName = {json.dumps(value[0]['Value'])} }}"
        elif name in _HCL_BLOCK_BY_PROPERTY:
            for block_properties in value if isinstance(value, list) else [value]:
                yield f"{indent}{_HCL_BLOCK_BY_PROPERTY[name]} {{"
                yield from _render_hcl(block_properties, f"{indent}  ")
                yield f"{indent}}}"
        else:
            yield f"{indent}{xform_name(name)} = {json.dumps(value)}"


@command(
    1,
    CommandKind.LOOKING,
    QUEUE_ATTRIBUTES_ACTIONS
    | DLQ_SOURCES_ACTIONS
    | SETTINGS_ACTIONS
    | _ALARM_IAM_ACTIONS
    | {"sqs:ListQueues"},
)
def alarms(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    queue: Annotated[str | None, make_queue_argument()] = None,
    tool: Annotated[
        AlarmFormat, typer.Option("--format", help="The tool to print the alarms for.")
    ] = AlarmFormat.CLI,
    topic: Annotated[
        str, typer.Option(help="ARN of the SNS topic they notify.")
    ] = TOPIC_PLACEHOLDER,
    all_older_than: Annotated[
        int | None, typer.Option(metavar="SECONDS", help=_ALL_OPTION_HELP, min=60)
    ] = None,
    watch: Annotated[
        list[str] | None, typer.Option(metavar="QUEUE", help=_WATCH_OPTION_HELP)
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="QUEUE", help=_LEAVE_OUT_OPTION_HELP)
    ] = None,
) -> Exit:
    """Print the alarms that a queue lacks, sized by its last two weeks; or one for all queues.

    Examples:
      mendq alarms orders
      mendq alarms orders --format terraform
      mendq alarms --all-older-than 3600     # one alarm for all queues
    """
    if all_older_than is not None and queue is None:
        choice = OperatorChoice(tuple(watch or ()), tuple(leave_out or ()))
        return _print_region_alarm(call, tool, topic, all_older_than, choice)
    if all_older_than is not None or queue is None:
        raise CommandError("give either a QUEUE or --all-older-than SECONDS", Exit.USAGE)
    if watch or leave_out:
        raise CommandError("--watch and --leave-out need --all-older-than SECONDS", Exit.USAGE)
    _print_missing_alarms(call, queue, tool, topic)
    return Exit.DONE


def _print_region_alarm(
    call: Invocation,
    tool: AlarmFormat,
    topic_arn: str,
    age_seconds: int,
    choice: OperatorChoice,
) -> Exit:
    """Print one alarm on the age of the messages of all queues. Fail if a queue was not read."""
    account = call.account
    out = call.out
    with out.show_waiting("reading the queues of the region"):
        queues = read_region_queues(account, choice, datetime.now(UTC))
        existing_names = list_alarm_names(account.clients, REGION_ALARM_NAME)
    alarm_name = _choose_free_alarm_name(REGION_ALARM_NAME, existing_names)
    alarm = make_region_alarm(alarm_name, queues.excluded_names, age_seconds, topic_arn)
    out.say_heading("One alarm for the age of the messages of all queues")
    minutes = PERIODS * PERIOD_SECONDS // 60
    out.say_indented(
        f"It rings if a message of a queue is older than {age_seconds:,} s for {minutes} min.",
        indent=0,
    )
    _say_alarm(out, alarm, account.region, tool)
    for sentence in describe_limits(alarm_name, account.region, queues):
        out.say(sentence)
    if queues.unread_names:
        first_names = ", ".join(queues.unread_names[:_MOST_NAMED_UNREAD_QUEUES])
        out.say(
            f"not read: {format_count(len(queues.unread_names), 'queue')}, such as {first_names}. "
            "Their DLQs are watched too and may ring: allow sqs:GetQueueAttributes",
            "red",
        )
    out.print_json(
        {
            "alarm": alarm,
            **asdict(queues),
            "dollars_per_month": asdict(compute_alarm_prices(len(queues.watched_names))),
        }
    )
    return Exit.FAILED if queues.unread_names else Exit.DONE


def _say_alarm(out: Output, alarm: Mapping[str, Any], region: str, tool: AlarmFormat) -> None:
    say_line = out.say_command if tool is AlarmFormat.CLI else out.say_template_line
    for line in render_lines(alarm, region, tool):
        say_line(line)


def _print_missing_alarms(call: Invocation, queue: str, tool: AlarmFormat, topic_arn: str) -> None:
    """Print the alarms that one queue and its DLQ lack."""
    account = call.account
    out = call.out
    with out.show_waiting("reading alarms, and two weeks of metrics"):
        facts = _read_facts_with_alarms(account, resolve_queue_arn(account, queue))
        unwatched_metrics = [*find_unwatched_metrics(facts)]
        # Metrics that get an alarm by their usual values; the others ring at the first message.
        normal_value_by_metric = {
            AGE_METRIC: max(facts.visibility_seconds, NORMAL_MESSAGE_WAIT_SECONDS),
            IN_FLIGHT_METRIC: MESSAGES_PER_RECEIVE,
        }
        metrics = [metric for _, metric in unwatched_metrics if metric in normal_value_by_metric]
        points_by_metric = read_two_weeks_of_metrics(
            account.clients, facts.queue_arn, metrics, datetime.now(UTC)
        )
    missing_alarms = list[dict[str, Any]]()
    for watched_queue, metric in unwatched_metrics:
        alarm_limits = FIRST_MESSAGE_ALARM
        if metric in normal_value_by_metric:
            alarm_limits = choose_alarm_limits(
                points_by_metric[metric], normal_value_by_metric[metric]
            )
        queue_name = watched_queue.name
        existing_names = list_alarm_names(account.clients, f"sqs-{queue_name}-")
        alarm = make_alarm(queue_name, metric, alarm_limits, topic_arn, existing_names)
        missing_alarms.append(
            {"queue": queue_name, "metric": metric, **asdict(alarm_limits), "alarm": alarm}
        )
        out.say_heading(f"No alarm watches {DESCRIPTION_BY_METRIC[metric].format(name=queue_name)}")
        out.say_indented(alarm_limits.sentence, indent=0)
        _say_alarm(out, alarm, account.region, tool)
    call.out.print_json({"queue_arn": facts.queue_arn, "missing": missing_alarms})
    if not missing_alarms:
        out.say("what matters here is watched by alarms", "green")


def _read_facts_with_alarms(account: Account, queue_arn: str) -> Facts:
    """Return the facts about a queue.

    They include its DLQ, its sources' ARNs, and the alarms on the queue and its DLQ.
    """
    facts = require_queue(account, queue_arn)
    clients = account.clients
    dlq_arn = find_local_dlq_arn(facts)
    dlq = (
        QueueFacts(dlq_arn, read_attributes_if_queue_exists(clients, dlq_arn)) if dlq_arn else None
    )
    dlq_sources = tuple(
        QueueFacts(source_arn, {}) for source_arn in list_source_arns(clients, queue_arn)
    )
    return add_alarmed_metrics_of_queue_and_dlq(
        replace(facts, dlq=dlq, dlq_sources=dlq_sources), read_alarmed_metrics(clients)
    )
