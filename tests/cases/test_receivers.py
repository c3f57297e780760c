"""The records of queues that may receive another queue's messages."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.cases.receivers import DELETED_OBJECTION, ReceiverMaker
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import QueueFacts
from mendq.model.plan import Refusal
from mendq.model.queue import parse_queue_arn
from mendq.model.receiver import Receiver
from tests.account.account import ACCOUNT, REGION, Account
from tests.account.receivers import confirm_receiver, open_receivers
from tests.waiting import replace_sleep


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_sleep(monkeypatch)


QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders-quarantine"


def make_maker(account: Account) -> ReceiverMaker:
    return ReceiverMaker(account.clients, open_receivers(account), account.now, "redrive")


@pytest.mark.parametrize("document", ["{", "[]", '{"queue_arn": 1}'])
def test_receiver_record_that_cannot_be_read_counts_as_none(
    account: Account, document: str
) -> None:
    receivers = open_receivers(account)
    receivers.put(Receiver(QUEUE, account.now - timedelta(days=1), "redrive"))
    account.clients.dynamodb.update_item(
        TableName=account.settings.case_table,
        Key={"pk": {"S": QUEUE}, "sk": {"S": "receiver"}},
        UpdateExpression="SET document = :document",
        ExpressionAttributeValues={":document": {"S": document}},
    )
    assert receivers.load(QUEUE) is None


def test_receiver_maker_objects_to_a_recorded_queue_only_after_the_queue_was_deleted(
    account: Account,
) -> None:
    account.queue("orders-quarantine", tag=None)
    confirm_receiver(account, QUEUE)
    maker = make_maker(account)
    assert maker.find_objection(QUEUE) is None
    account.clients.sqs.delete_queue(QueueUrl=account.url(QUEUE))
    assert maker.find_objection(QUEUE) == DELETED_OBJECTION


LONG_SOURCE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{'x' * 75}"
LONG_QUARANTINE = arn_of_quarantine(LONG_SOURCE)
SHORTER_SOURCE = LONG_QUARANTINE.removesuffix("-quarantine")
NEW_QUARANTINE = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}


def assert_declined_for_shorter_source(answer: object) -> None:
    assert isinstance(answer, Refusal)
    assert answer.code == "receiver_unconfirmed"
    source_name = parse_queue_arn(SHORTER_SOURCE).name
    assert answer.next_command == f"mendq quarantine list --region {REGION}"
    assert "confirm" not in answer.reason
    assert "delete" not in answer.reason
    assert f"the quarantine of {'x' * 75}, not of {source_name}" in answer.reason


def test_quarantine_made_for_one_source_is_declined_for_another_with_the_same_quarantine_name(
    account: Account,
) -> None:
    maker = make_maker(account)
    made = maker.make_or_check(LONG_QUARANTINE, NEW_QUARANTINE, LONG_SOURCE)
    assert isinstance(made, QueueFacts)
    for answer in (
        maker.make_or_check(LONG_QUARANTINE, NEW_QUARANTINE, SHORTER_SOURCE),
        maker.refuse_unconfirmed_queue(LONG_QUARANTINE, SHORTER_SOURCE),
    ):
        assert_declined_for_shorter_source(answer)
    assert "not of" in (maker.find_objection(LONG_QUARANTINE, SHORTER_SOURCE) or "")
    assert maker.find_objection(LONG_QUARANTINE, LONG_SOURCE) is None
    again = maker.make_or_check(LONG_QUARANTINE, NEW_QUARANTINE, LONG_SOURCE)
    assert isinstance(again, QueueFacts)


def test_quarantine_that_a_run_for_another_source_was_making_is_declined(account: Account) -> None:
    noted = Receiver(LONG_QUARANTINE, account.now, "redrive", source_arn=LONG_SOURCE)
    open_receivers(account).put(noted)
    account.queue(parse_queue_arn(LONG_QUARANTINE).name, tag=None, **NEW_QUARANTINE)
    maker = make_maker(account)
    answer = maker.make_or_check(LONG_QUARANTINE, NEW_QUARANTINE, SHORTER_SOURCE)
    assert_declined_for_shorter_source(answer)
    assert open_receivers(account).load(LONG_QUARANTINE) == noted
