"""The records of queues that may receive another queue's messages."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.cases.receivers import DELETED_OBJECTION, ReceiverMaker
from mendq.model.receiver import Receiver
from tests.account.account import ACCOUNT, REGION, Account
from tests.account.receivers import confirm_receiver, open_receivers

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders-quarantine"


def make_maker(account: Account) -> ReceiverMaker:
    return ReceiverMaker(account.clients, open_receivers(account), account.now, "redrive")


@pytest.mark.parametrize("document", ["{", "[]", '{"queue_arn": 1}'])
def test_record_that_cannot_be_read_counts_as_none(account: Account, document: str) -> None:
    receivers = open_receivers(account)
    receivers.put(Receiver(QUEUE, account.now - timedelta(days=1), "redrive"))
    account.clients.dynamodb.update_item(
        TableName=account.settings.case_table,
        Key={"pk": {"S": QUEUE}, "sk": {"S": "receiver"}},
        UpdateExpression="SET document = :document",
        ExpressionAttributeValues={":document": {"S": document}},
    )
    assert receivers.load(QUEUE) is None


def test_queue_on_record_gets_no_message_after_it_was_deleted(account: Account) -> None:
    account.queue("orders-quarantine", tag=None)
    confirm_receiver(account, QUEUE)
    maker = make_maker(account)
    assert maker.find_objection(QUEUE) is None
    account.clients.sqs.delete_queue(QueueUrl=account.url(QUEUE))
    assert maker.find_objection(QUEUE) == DELETED_OBJECTION
