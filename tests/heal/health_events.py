"""Events of AWS Health as EventBridge delivers them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from mendq.heal.batch import BatchResult
from tests.account.account import ACCOUNT, REGION, Account

ARN = f"arn:aws:health:{REGION}::event/SQS/AWS_SQS_OPERATIONAL_ISSUE/AWS_SQS_OPERATIONAL_ISSUE_1"


def format_mail_time(at: datetime) -> str:
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")


def make_health_event(account: Account, /, *, updated: float = 0, **over: Any) -> str:
    """Return an AWS Health event as AWS documents it, last updated `updated` minutes from now."""
    detail = {
        "eventArn": ARN,
        "service": "SQS",
        "eventTypeCode": "AWS_SQS_OPERATIONAL_ISSUE",
        "eventTypeCategory": "issue",
        "eventScopeCode": "PUBLIC",
        "communicationId": "4826e1b01e4eed2b-1",
        "startTime": format_mail_time(account.now - timedelta(minutes=30)),
        "lastUpdatedTime": format_mail_time(account.now + timedelta(minutes=updated)),
        "statusCode": "open",
        "eventRegion": REGION,
        "eventDescription": [{"language": "en_US", "latestDescription": "Errors are elevated."}],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
        **over.pop("detail", {}),
    }
    return json.dumps(
        {
            "version": "0",
            "id": "7bf73129-1428-4cd3-a780-95db273d1602",
            "detail-type": "AWS Health Event",
            "source": "aws.health",
            "account": ACCOUNT,
            "time": account.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [],
            "detail": detail,
            **over,
        }
    )


def deliver_health_events(account: Account, *bodies: str) -> BatchResult:
    return account.heal({f"health-{n}": body for n, body in enumerate(bodies)})
