"""Where people read what CloudWatch counted of a queue.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricStatistics.html
"""

from __future__ import annotations

from datetime import datetime

from functions.healing.measured import Measured
from functions.healing.queue_names import parts_of


def metric_command(queue_arn: str, metric: str, statistic: str, measured: Measured | None) -> str:
    """The `aws` command that shows a metric of the queue as it was measured; empty if it was not.

    Metric and statistic are words of ours, so neither is quoted.
    """
    if measured is None:
        return ""
    queue = parts_of(queue_arn)
    return (
        f"aws cloudwatch get-metric-statistics --region {queue.region} --namespace AWS/SQS "
        f"--metric-name {metric} --dimensions Name=QueueName,Value={queue.name} "
        f"--statistics {statistic} --period 300 "
        f"--start-time {_moment(measured.since)} --end-time {_moment(measured.until)}"
    )


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
