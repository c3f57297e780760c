"""Asks CloudWatch what went through queues, many queues to a call.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from functions.aws.clients import Clients
from functions.aws.errors import looking
from functions.healing.measured import Measured
from functions.healing.measuring import LONGEST, PERIOD, Window, measured, metrics_of
from functions.healing.queue_names import parts_of

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

# A call answers at most 100,800 datapoints; a third of that comes within a client's patience.
MOST_DATAPOINTS = 33_600
QUEUES_A_CALL = MOST_DATAPOINTS // (LONGEST // PERIOD * len(metrics_of(fifo=True)))
_WHOLE = "Complete"


def measure(clients: Clients, windows: Mapping[str, Window]) -> dict[str, Measured | None]:
    """By queue ARN, at most QUEUES_A_CALL of them; None where CloudWatch has nothing to say.

    Raises FactsUnavailable.
    """
    asked = {
        f"{metric.key}{n}": (queue_arn, metric.key)
        for n, queue_arn in enumerate(windows)
        for metric in metrics_of(fifo=queue_arn.endswith(".fifo"))
    }
    with looking(f"metrics of {', '.join(windows)}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=min(each.since for each in windows.values()),
            EndTime=max(each.until for each in windows.values()),
            MetricDataQueries=list(_queries(list(windows))),
            ScanBy="TimestampAscending",
        )
        answers = [each for page in pages for each in page["MetricDataResults"]]
    series: dict[str, dict[str, list[tuple[datetime, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    unsaid = set[str]()
    for each in answers:
        queue_arn, key = asked[each["Id"]]
        if each.get("StatusCode", _WHOLE) not in (_WHOLE, "PartialData"):
            unsaid.add(queue_arn)
        points = zip(each.get("Timestamps", []), each.get("Values", []), strict=True)
        series[queue_arn][key].extend(points)
    return {
        queue_arn: None if queue_arn in unsaid else measured(series[queue_arn], window)
        for queue_arn, window in windows.items()
    }


def _queries(queue_arns: Sequence[str]) -> Iterator[MetricDataQueryTypeDef]:
    for n, queue_arn in enumerate(queue_arns):
        queue = parts_of(queue_arn)
        for metric in metrics_of(fifo=queue.name.endswith(".fifo")):
            yield {
                "Id": f"{metric.key}{n}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": metric.name,
                        "Dimensions": [{"Name": "QueueName", "Value": queue.name}],
                    },
                    "Period": int(PERIOD.total_seconds()),
                    "Stat": metric.statistic,
                },
            }
