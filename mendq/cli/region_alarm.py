"""One CloudWatch alarm for all queues of a region, on a Metrics Insights query.

The query returns a time series for each queue, so a notification can name the queue. CloudWatch
sets these rules:

1. `WHERE` knows `=`, `!=` and `AND`, so a query can leave queues out by name, and cannot list the
   queues that it watches. It has at most 2,048 characters. DLQs and quarantines are left out:
   messages may grow old there, so they would make the alarm ring for days. `region_dlqs` says which
   queues are DLQs.
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

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from mendq.aws.dlqs import find_local_dlq_arn
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.queue import list_queue_names
from mendq.catalogue.configuration.alarm_missing import AGE_METRIC
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.queues import find_queue
from mendq.cli.region_dlqs import find_dlq_reasons
from mendq.model.facts import Facts
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
    # DLQs and quarantines, which the alarm leaves out, and why.
    excluded_names: tuple[str, ...]
    reason_by_excluded_name: Mapping[str, str]
    # Watched queues that others name as their DLQ, and of which nothing else says that they are.
    unconfirmed_dlq_names: tuple[str, ...]
    # Queues that could not be read. Mendq does not know their DLQs.
    unread_names: tuple[str, ...]


class OperatorChoice(Struct, frozen=True):
    """The queues that the operator named: to watch or to leave out, whatever Mendq finds."""

    names_to_watch: Sequence[str] = ()
    names_to_leave_out: Sequence[str] = ()

    def require_queues(self, names: Collection[str]) -> None:
        """Raise CommandError if a name is no queue of the region, or is named for both."""
        for option, chosen_names in (
            ("--watch", self.names_to_watch),
            ("--leave-out", self.names_to_leave_out),
        ):
            for name in chosen_names:
                if name not in names:
                    raise CommandError(
                        f"{option} {name}: there is no such queue in the region", Exit.USAGE
                    )
        for name in self.names_to_watch:
            if name in self.names_to_leave_out:
                raise CommandError(f"{name}: give --watch or --leave-out, not both", Exit.USAGE)


def read_region_queues(account: Account, choice: OperatorChoice, now: datetime) -> RegionQueues:
    """List the queues of the region, and find out which of them are DLQs.

    Raises CommandError if a query could not read all queues or if `choice` names no queue, and
    ClientError or BotoCoreError if the queues cannot be listed.
    """
    names = sorted(list_queue_names(account.clients))
    choice.require_queues(names)
    if len(names) > MOST_METRICS_OF_QUERY:
        raise CommandError(
            f"the region has {len(names):,} queues, and a query of CloudWatch reads at most "
            f"{MOST_METRICS_OF_QUERY:,}: use one alarm a queue, `mendq alarms QUEUE`"
        )
    facts_by_name = dict[str, Facts]()
    unread_names = list[str]()
    for name in names:
        try:
            facts = _find_facts(account, name)
        except (FactsUnavailable, QueueRefusesUs):
            unread_names.append(name)
            continue
        if facts:
            facts_by_name[name] = facts
    source_arns_by_dlq_name = _group_sources_by_dlq(facts_by_name.values())
    dlqs = [facts for name, facts in facts_by_name.items() if name in source_arns_by_dlq_name]
    reason_by_name = {name: "it is a quarantine" for name in names if is_quarantine(name)}
    reason_by_name |= find_dlq_reasons(account, dlqs, source_arns_by_dlq_name, now)
    reason_by_name |= dict.fromkeys(choice.names_to_leave_out, "--leave-out names it")
    for name in choice.names_to_watch:
        reason_by_name.pop(name, None)
    return RegionQueues(
        watched_names=tuple(name for name in names if name not in reason_by_name),
        excluded_names=tuple(sorted(reason_by_name)),
        reason_by_excluded_name=reason_by_name,
        unconfirmed_dlq_names=tuple(
            name
            for name in names
            if name in source_arns_by_dlq_name
            and name not in reason_by_name
            and name not in choice.names_to_watch
        ),
        unread_names=tuple(unread_names),
    )


def _find_facts(account: Account, queue_name: str) -> Facts | None:
    """Return the queue's facts; None if it was deleted. Raises FactsUnavailable, QueueRefusesUs."""
    queue_arn = arn_of_name(queue_name, account.region, account.account_id)
    return find_queue(account, queue_arn) if queue_arn else None


def _group_sources_by_dlq(queues: Collection[Facts]) -> dict[str, list[str]]:
    """Return the ARNs of the queues that name a queue of the region as DLQ, by its name.

    A RedrivePolicy may name a DLQ that does not exist any more.
    """
    source_arns_by_dlq_name = dict[str, list[str]]()
    for queue in queues:
        dlq_arn = find_local_dlq_arn(queue)
        if dlq_arn:
            dlq_name = parse_queue_arn(dlq_arn).name
            source_arns_by_dlq_name.setdefault(dlq_name, []).append(queue.queue_arn)
    return source_arns_by_dlq_name


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
    yield (
        f"Left out by name: {format_count(len(queues.excluded_names), 'queue')} (DLQs and "
        "quarantines). Each DLQ needs an alarm of its own: `mendq alarms DLQ`. A DLQ that is made "
        "later is watched like any queue until you run this command again."
    )
    for name in queues.excluded_names:
        yield (
            f"{name} is left out because {queues.reason_by_excluded_name[name]}. If consumers need "
            f"it, add `--watch {name}`."
        )
    for name in queues.unconfirmed_dlq_names:
        yield (
            f"{name} is watched, although a queue names it as its DLQ: any queue can name any "
            f"other, and nothing else says that it is one. If it is, add `--leave-out {name}`."
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
