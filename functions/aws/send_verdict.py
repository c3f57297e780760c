"""Sends a week's verdict once, however often its summary comes.

https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
"""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.report_bucket import ReportBucket


def send_once(
    clients: Clients, bucket: ReportBucket, *, topic_arn: str, week: str, message: str
) -> bool:
    """Whether it was sent now; False where the week had been sent before. Raises AWS's errors."""
    if not bucket.is_first_delivery(week):
        return False
    try:
        clients.sns.publish(TopicArn=topic_arn, Subject=f"Mendq: week {week}", Message=message)
    except (ClientError, BotoCoreError):
        bucket.give_up_delivery(week)
        raise
    return True
