"""How many messages were deleted from a queue: whether anybody works with it at all.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.aws.clients import Clients
from functions.aws.errors import looking
from functions.healing.queue_names import parts_of

A_MINUTE = 60
AN_HOUR = 3_600
# CloudWatch keeps datapoints of a minute for 15 days, and gives 100,800 of them at once.
LONG = timedelta(hours=6)


def messages_deleted(clients: Clients, queue_arn: str, since: datetime, until: datetime) -> int:
    """NumberOfMessagesDeleted between the two; raises FactsUnavailable."""
    if until <= since:
        return 0
    with looking(f"messages deleted from {queue_arn}"):
        answer = clients.cloudwatch.get_metric_data(
            StartTime=since,
            EndTime=until,
            MetricDataQueries=[
                {
                    "Id": "deleted",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "AWS/SQS",
                            "MetricName": "NumberOfMessagesDeleted",
                            "Dimensions": [
                                {"Name": "QueueName", "Value": parts_of(queue_arn).name}
                            ],
                        },
                        "Period": A_MINUTE if until - since <= LONG else AN_HOUR,
                        "Stat": "Sum",
                    },
                }
            ],
        )
    return int(sum(value for each in answer["MetricDataResults"] for value in each["Values"]))
