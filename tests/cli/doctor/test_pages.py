"""moto confirms every subscription by itself: botocore's Stubber answers as AWS does."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber

from cli.doctor.check import Status
from cli.doctor.pages import look
from tests.cli.conftest import Operator

PENDING = "PendingConfirmation"
CONFIRMED = "arn:aws:sns:us-east-1:123456789012:urgent:0b4f1f0e"


@pytest.mark.parametrize(
    ("subscriptions", "status", "cure"),
    [
        ((), Status.WARN, "set pages.urgent and deploy"),
        ((PENDING,), Status.FAIL, "follow the link"),
        ((PENDING, CONFIRMED), Status.WARN, "follow the link"),
        ((CONFIRMED,), Status.OK, ""),
    ],
)
def test_whom_a_page_would_reach(
    operator: Operator, subscriptions: tuple[str, ...], status: Status, cure: str
) -> None:
    found = [{"SubscriptionArn": each} for each in subscriptions]
    settings = operator.account.settings
    with Stubber(operator.account.clients.sns) as stub:
        for arn, answer in ((settings.urgent_topic_arn, found), (settings.info_topic_arn, [])):
            asked = {"TopicArn": arn}
            stub.add_response("list_subscriptions_by_topic", {"Subscriptions": answer}, asked)
        urgent, _ = look(operator.account)
    assert (urgent.name, urgent.status) == ("topic urgent", status)
    assert urgent.cure.startswith(cure)
    assert bool(urgent.cure) is bool(cure)
