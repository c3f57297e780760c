"""Test `make_queue`: each answer of SQS while a queue is created, and no queue created twice."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mendq.aws.queue import NEW_QUEUE_READ_ATTEMPTS, make_queue
from mendq.model.plan import AWS_REFUSED, Escalate, Refusal, Retry
from tests.account.account import ACCOUNT, REGION, Account
from tests.scan.scanner import deny_operation
from tests.waiting import replace_sleep

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders-dlq"
GIVEN = {"VisibilityTimeout": "45"}


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each sleep. No test really sleeps."""
    return replace_sleep(monkeypatch)


def _list_queue_names(account: Account) -> list[str]:
    urls = account.clients.sqs.list_queues().get("QueueUrls", [])
    return [url.rpartition("/")[2] for url in urls]


def _hide_new_queue(account: Account, times: int) -> list[str]:
    """Make the first reads of any queue find none, as SQS does just after creating a queue."""
    error: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "none"}}
    reads: list[str] = []

    def answer(**_: Any) -> None:
        reads.append("read")
        if len(reads) <= times:
            raise ClientError(error, "GetQueueAttributes")

    account.clients.sqs.meta.events.register_first("before-call.sqs.GetQueueAttributes", answer)
    return reads


def _refuse_create_queue(account: Account, code: str, status: int) -> None:
    answer: Any = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    error = ClientError(answer, "CreateQueue")
    deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=error)


def test_make_queue_returns_attributes_once_new_queue_can_be_read(
    account: Account, sleeps: list[float]
) -> None:
    reads = _hide_new_queue(account, NEW_QUEUE_READ_ATTEMPTS - 1)
    made = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(made, dict)
    assert made["VisibilityTimeout"] == "45"
    assert len(reads) == NEW_QUEUE_READ_ATTEMPTS
    assert sleeps == [1] * (NEW_QUEUE_READ_ATTEMPTS - 1)


def test_make_queue_returns_retry_if_new_queue_cannot_be_read_yet(
    account: Account, sleeps: list[float]
) -> None:
    reads = _hide_new_queue(account, NEW_QUEUE_READ_ATTEMPTS)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Retry)
    assert refusal.code == "not_usable_yet"
    assert QUEUE in refusal.reason
    assert len(reads) == NEW_QUEUE_READ_ATTEMPTS
    made = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(made, dict), "the next try finds the queue that is there"
    assert _list_queue_names(account) == ["orders-dlq"]


@pytest.mark.parametrize(
    ("code", "status"), [("AccessDenied", 403), ("InvalidAttributeValue", 400)]
)
def test_make_queue_returns_escalate_if_aws_denies_or_rejects_the_call(
    account: Account, code: str, status: int
) -> None:
    _refuse_create_queue(account, code, status)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Escalate)
    assert refusal.code == AWS_REFUSED
    assert code in refusal.reason
    assert _list_queue_names(account) == []


def test_make_queue_returns_retry_if_a_queue_of_that_name_was_deleted_recently(
    account: Account,
) -> None:
    _refuse_create_queue(account, "AWS.SimpleQueueService.QueueDeletedRecently", 400)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Retry)
    assert refusal.code == "deleted_recently"
    assert _list_queue_names(account) == []


def test_make_queue_raises_if_sqs_cannot_be_reached_and_works_on_the_next_call(
    account: Account,
) -> None:
    away = EndpointConnectionError(endpoint_url="sqs")
    let_through = deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=away)
    with pytest.raises(EndpointConnectionError):
        make_queue(account.clients, QUEUE, GIVEN)
    let_through()
    assert not isinstance(make_queue(account.clients, QUEUE, GIVEN), Retry | Escalate)


def test_make_queue_refuses_an_existing_queue_with_other_attributes_and_keeps_it(
    account: Account, sleeps: list[float]
) -> None:
    account.queue("orders-dlq", VisibilityTimeout="30", tag=None)
    _refuse_create_queue(account, "QueueAlreadyExists", 400)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Refusal)
    assert "its attributes are not those of one that is made for this queue" in refusal.reason
    assert account.visibility(QUEUE) == 30
