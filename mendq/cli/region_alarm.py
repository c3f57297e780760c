"""One CloudWatch alarm for all queues of a region, on a Metrics Insights query.

The query returns a time series for each queue, so a notification can name the queue. CloudWatch
sets these rules:

1. `WHERE` knows `=`, `!=` and `AND`, so a query can leave queues out by name, and cannot list the
   queues that it watches. It has at most 2,048 characters. DLQs and quarantines are left out:
   messages may grow old there, so they would make the alarm ring for days.
2. A query with several time series needs `GROUP BY` and `ORDER BY`. An alarm evaluates at most 500
   of them, the first ones of the order, and only the last three hours. A query reads at most 10,000
   metrics.
3. There is one threshold for all queues, and no anomaly detection band.
4. CloudWatch bills each metric that the query matches, and none of them is free.

None of this was tried on AWS.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Create_Metrics_Insights_Alarm.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-limits.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from mendq.aws.dlqs import find_local_dlq_arn
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.queue import list_queue_names
from mendq.catalogue.configuration.alarm_missing import AGE_METRIC
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError
from mendq.cli.queues import find_queue
from mendq.model.prices import ALARM_METRIC_MONTH, METRICS_INSIGHTS_METRIC_MONTH
from mendq.model.queue import arn_of_name, is_quarantine, parse_queue_arn
from mendq.notifications.text import format_count, terminal_command_or_note

MOST_METRICS_OF_QUERY = 10_000
MOST_EVALUATED_QUEUES = 500
MOST_QUERY_CHARACTERS = 2_048
# CloudWatch names at most this many queues that ring at the same time.
MOST_NAMED_QUEUES = 100
# Three periods, as `mendq alarms` takes for one queue. They are within the last three hours.
PERIOD_SECONDS = 300
PERIODS = 3
# An alarm with an anomaly detection band is billed for its metric, and for both ends of the band.
_METRICS_OF_BAND_ALARM = 3


class RegionQueues(Struct, frozen=True):
    """The queues of a region, as one alarm on all of them sees them."""

    watched_names: tuple[str, ...]
    # DLQs and quarantines, which the alarm leaves out.
    excluded_names: tuple[str, ...]
    # Queues that could not be read. Mendq does not know their DLQs.
    unread_names: tuple[str, ...]


def read_region_queues(account: Account) -> RegionQueues:
    """List the queues of the region, and read which queue each of them uses as its DLQ.

    Raises CommandError if a query could not read all queues, and ClientError or BotoCoreError if
    the queues cannot be listed.
    """
    names = sorted(list_queue_names(account.clients))
    if len(names) > MOST_METRICS_OF_QUERY:
        raise CommandError(
            f"the region has {len(names):,} queues, and a query of CloudWatch reads at most "
            f"{MOST_METRICS_OF_QUERY:,}: use one alarm a queue, `mendq alarms QUEUE`"
        )
    excluded_names = {name for name in names if is_quarantine(name)}
    unread_names = list[str]()
    for name in names:
        try:
            dlq_name = _find_dlq_name(account, name)
        except (FactsUnavailable, QueueRefusesUs):
            unread_names.append(name)
            continue
        if dlq_name:
            excluded_names.add(dlq_name)
    return RegionQueues(
        watched_names=tuple(name for name in names if name not in excluded_names),
        # A queue's RedrivePolicy may name a DLQ that does not exist any more.
        excluded_names=tuple(name for name in names if name in excluded_names),
        unread_names=tuple(unread_names),
    )


def _find_dlq_name(account: Account, queue_name: str) -> str | None:
    """Return the name of the queue's DLQ. None if it has none in this account and region."""
    queue_arn = arn_of_name(queue_name, account.region, account.account_id)
    facts = find_queue(account, queue_arn) if queue_arn else None
    dlq_arn = find_local_dlq_arn(facts) if facts else None
    return parse_queue_arn(dlq_arn).name if dlq_arn else None


def make_region_alarm(
    alarm_name: str, excluded_names: Collection[str], age_seconds: int, topic_arn: str
) -> dict[str, Any]:
    """Return the parameters of PutMetricAlarm, which are also CloudFormation's properties.

    The alarm rings while a message of any other queue is older than `age_seconds`.

    Raises CommandError if too many queues must be left out for one query.
    """
    return {
        "AlarmName": alarm_name,
        "AlarmActions": [topic_arn],
        "EvaluationPeriods": PERIODS,
        "TreatMissingData": "notBreaching",
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": age_seconds,
        "Metrics": [
            {
                "Id": "oldest",
                "Expression": _make_query(excluded_names),
                "Period": PERIOD_SECONDS,
                "ReturnData": True,
            }
        ],
    }


def _make_query(excluded_names: Collection[str]) -> str:
    conditions = " AND ".join(f"QueueName != '{name}'" for name in excluded_names)
    clauses = [
        f"SELECT MAX({AGE_METRIC})",
        'FROM SCHEMA("AWS/SQS", QueueName)',
        *([f"WHERE {conditions}"] if conditions else []),
        "GROUP BY QueueName",
        "ORDER BY MAX() DESC",
    ]
    query = " ".join(clauses)
    if len(query) > MOST_QUERY_CHARACTERS:
        raise CommandError(
            f"{format_count(len(excluded_names), 'queue')} (DLQs and quarantines) must be left out "
            f"by name, and the query would have {len(query):,} characters: CloudWatch takes "
            f"{MOST_QUERY_CHARACTERS:,}. Use one alarm a queue: `mendq alarms QUEUE`"
        )
    return query


class AlarmPrices(Struct, frozen=True):
    """Dollars a month to watch the age of messages of some queues, by the kind of alarm."""

    one_alarm_for_all: float
    # One alarm a queue with a threshold: at list price, and if no free alarm metric is used yet.
    threshold_alarms: float
    threshold_alarms_beyond_free: float
    band_alarms: float


def compute_alarm_prices(queue_count: int) -> AlarmPrices:
    """Return what it costs to watch this many queues with each kind of alarm."""
    band_dollars = ALARM_METRIC_MONTH.cost(queue_count * _METRICS_OF_BAND_ALARM)
    return AlarmPrices(
        one_alarm_for_all=round(METRICS_INSIGHTS_METRIC_MONTH.cost(queue_count), 2),
        threshold_alarms=round(ALARM_METRIC_MONTH.cost(queue_count), 2),
        threshold_alarms_beyond_free=round(ALARM_METRIC_MONTH.cost_beyond_free(queue_count), 2),
        band_alarms=round(band_dollars, 2),
    )


def describe_limits(alarm_name: str, region: str, queues: RegionQueues) -> Iterator[str]:
    """Yield sentences for people: what the alarm costs, and what it cannot do."""
    queue_count = len(queues.watched_names)
    prices = compute_alarm_prices(queue_count)
    yield (
        f"It watches {format_count(queue_count, 'queue')}, for ${prices.one_alarm_for_all:,.2f} a "
        f"month: {METRICS_INSIGHTS_METRIC_MONTH.words} for each queue, also for queues that need "
        "no alarm, and nothing is free. One alarm a queue costs "
        f"${prices.threshold_alarms:,.2f} with a threshold "
        f"(${prices.threshold_alarms_beyond_free:,.2f} while no other alarm uses the "
        f"{ALARM_METRIC_MONTH.free_units:,} metrics that AWS gives), and "
        f"${prices.band_alarms:,.2f} with a band."
    )
    yield (
        "It has one threshold for all queues and watches only the age of messages. "
        "`mendq alarms QUEUE` sizes alarms by the queue's own two weeks."
    )
    excluded_names_text = f": {', '.join(queues.excluded_names)}" if queues.excluded_names else ""
    yield (
        f"Left out by name: {format_count(len(queues.excluded_names), 'queue')} (DLQs and "
        f"quarantines){excluded_names_text}. Any queue can name any other as its DLQ, so check "
        "that consumers need none of them: the alarm does not watch it. "
        "Each DLQ needs an alarm of its own: `mendq alarms DLQ`. A DLQ that is made later is "
        "watched like any queue until you run this command again."
    )
    contributors_command = terminal_command_or_note(
        f"aws cloudwatch describe-alarm-contributors --alarm-name {alarm_name} --region {region}"
    )
    yield (
        "Queues that are made later are watched, and billed. CloudWatch notifies for each queue "
        f"that rings and names it, up to {MOST_NAMED_QUEUES} at once. To list them: "
        f"`{contributors_command}`"
    )
    if queue_count > MOST_EVALUATED_QUEUES:
        yield (
            f"Of {queue_count:,} queues CloudWatch evaluates the {MOST_EVALUATED_QUEUES} with the "
            "oldest messages, and shows the evaluation state PARTIAL_DATA."
        )
