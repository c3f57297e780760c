"""Whether anybody would hear a page."""

from __future__ import annotations

from collections.abc import Iterator

from cli.account import Account
from cli.doctor.check import Check, Status

_PENDING = "PendingConfirmation"


def look(account: Account) -> Iterator[Check]:
    """One check a topic; raises ClientError or Stopped."""
    settings = account.settings
    for name, arn in (("urgent", settings.urgent_topic_arn), ("info", settings.info_topic_arn)):
        pages = account.clients.sns.get_paginator("list_subscriptions_by_topic").paginate(
            TopicArn=arn
        )
        found = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
        pending = [each for each in found if each == _PENDING]
        confirmed = len(found) - len(pending)
        label = f"topic {name}"
        if not found:
            yield Check(label, Status.WARN, "nobody is subscribed", f"set pages.{name} and deploy")
        elif pending:
            says = f"{len(pending)} of {len(found)} subscription(s) not confirmed"
            status = Status.WARN if confirmed else Status.FAIL
            yield Check(label, status, says, "follow the link in AWS's mail; it is good for 3 days")
        else:
            yield Check(label, Status.OK, f"{confirmed} subscription(s), all confirmed")
