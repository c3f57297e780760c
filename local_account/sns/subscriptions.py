"""Lists of subscriptions: who has not confirmed has no ARN yet.

https://docs.aws.amazon.com/sns/latest/api/API_ListSubscriptionsByTopic.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import sns

PENDING = "PendingConfirmation"
Answer = tuple[int, Mapping[str, str], bytes]
Call = Callable[[Mapping[str, Any]], Answer]


def install() -> None:
    """Hook both lists; once per process."""
    sns._list_subscriptions = _showing_pending(sns._list_subscriptions)
    sns._list_subscriptions_by_topic = _showing_pending(sns._list_subscriptions_by_topic)


def _showing_pending(list_them: Call) -> Call:
    def listing(parameters: Mapping[str, Any]) -> Answer:
        status, headers, body = list_them(parameters)
        for topic in sns._topics.values():
            for each in topic["subscriptions"]:
                if not each["confirmed"]:
                    body = body.replace(_element(each["arn"]), _element(PENDING))
        return status, headers, body

    return listing


def _element(arn: str) -> bytes:
    return f"<SubscriptionArn>{arn}</SubscriptionArn>".encode()
