"""Estimate what the deployed scan costs a month for a number of queues in use.

The estimate is computed from AWS's list prices and from how the scan works. It was not compared
with a bill.
"""

from __future__ import annotations

from msgspec import Struct

from mendq.aws.cloudwatch import MOST_QUEUES_PER_CALL, MOST_QUEUES_PER_SUMS_CALL
from mendq.cli.cost.bill import DAYS_PER_MONTH
from mendq.model.prices import LAMBDA_GB_SECOND, METRIC_READ, SQS_REQUEST
from mendq.model.traffic import SUM_SERIES, SUMS_EVERY_HOURS, SumsShare
from mendq.scan.reader import CLOUDWATCH_CALLS_PER_SECOND, SQS_CALLS_PER_SECOND

_HOURS_PER_MONTH = 24 * DAYS_PER_MONTH
# A scan reads the attributes of a queue in use and of its DLQ, and in every second hour the queue's
# sources.
SQS_CALLS_PER_QUEUE_AND_HOUR = 2.5
# `memory_mb` of the scan's Lambda, in GB.
_LAMBDA_GB = 1
# A call to CloudWatch may take this many times as long as the scan's rate allows.
_CLOUDWATCH_SLOWNESS = 2
# The fewest metrics of a suspect besides its three sums.
_FURTHER_METRICS_PER_SUSPECT = 4


class ScanCost(Struct, frozen=True):
    """What the deployed scan costs a month, in US dollars, without AWS's free units.

    Attributes:
        sums_dollars: The sums of the queues in use.
        suspects_dollars: The most that is left for measuring suspects.
        sqs_dollars: The calls to SQS.
        lambda_dollars: The time of the Lambda.
        longest_pause_hours: The time within which the sums of each queue in use are read.
    """

    sums_dollars: float
    suspects_dollars: float
    sqs_dollars: float
    lambda_dollars: float
    longest_pause_hours: int

    @property
    def dollars(self) -> float:
        """The sum of all."""
        return self.sums_dollars + self.suspects_dollars + self.sqs_dollars + self.lambda_dollars


def estimate_scan_cost(queue_count: int, metrics_per_day: int) -> ScanCost:
    """Return what the deployed scan costs a month at most.

    Args:
        queue_count: The number of managed queues, all of them in use.
        metrics_per_day: The setting `limits.scanMetricsPerDay`.
    """
    share = SumsShare.of_daily_limit(metrics_per_day).in_use
    queues_per_turn = min(queue_count, share)
    turns_per_day = 24 / SUMS_EVERY_HOURS
    sums_per_day = queues_per_turn * len(SUM_SERIES) * turns_per_day
    suspect_metrics_per_day = metrics_per_day - sums_per_day
    suspects_per_day = suspect_metrics_per_day / _FURTHER_METRICS_PER_SUSPECT
    cloudwatch_calls_per_day = (
        turns_per_day * (queues_per_turn / MOST_QUEUES_PER_SUMS_CALL + 1)
        + suspects_per_day / MOST_QUEUES_PER_CALL
    )
    sqs_calls = queue_count * SQS_CALLS_PER_QUEUE_AND_HOUR * _HOURS_PER_MONTH
    lambda_seconds = (
        sqs_calls / SQS_CALLS_PER_SECOND
        + _CLOUDWATCH_SLOWNESS
        * cloudwatch_calls_per_day
        * DAYS_PER_MONTH
        / CLOUDWATCH_CALLS_PER_SECOND
    )
    return ScanCost(
        sums_dollars=METRIC_READ.cost(sums_per_day * DAYS_PER_MONTH),
        suspects_dollars=METRIC_READ.cost(suspect_metrics_per_day * DAYS_PER_MONTH),
        sqs_dollars=SQS_REQUEST.cost(sqs_calls),
        lambda_dollars=LAMBDA_GB_SECOND.cost(lambda_seconds * _LAMBDA_GB),
        longest_pause_hours=SUMS_EVERY_HOURS * -(-queue_count // share) if share else 0,
    )
