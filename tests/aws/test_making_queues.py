"""`make_queue`: what SQS answers while a queue is made, and that nothing is made twice or lost."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mendq.aws.queue import NEW_QUEUE_READ_ATTEMPTS, make_queue
from mendq.model.plan import AWS_REFUSED, Escalate, Retry
from tests.account.account import ACCOUNT, REGION, Account
from tests.scan.scanner import deny_operation
from tests.waiting import replace_sleep

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders-dlq"
GIVEN = {"VisibilityTimeout": "45"}


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that are slept, which no test waits for."""
    return replace_sleep(monkeypatch)


def _names(account: Account) -> list[str]:
    urls = account.clients.sqs.list_queues().get("QueueUrls", [])
    return [url.rpartition("/")[2] for url in urls]


def _not_there_yet(account: Account, times: int) -> list[str]:
    """Let the first reads of any queue find none, as SQS does just after it made one."""
    error: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "none"}}
    reads: list[str] = []

    def answer(**_: Any) -> None:
        reads.append("read")
        if len(reads) <= times:
            raise ClientError(error, "GetQueueAttributes")

    account.clients.sqs.meta.events.register_first("before-call.sqs.GetQueueAttributes", answer)
    return reads


def _refused_with(account: Account, code: str, status: int) -> None:
    answer: Any = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    error = ClientError(answer, "CreateQueue")
    deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=error)


def test_make_queue_returns_attributes_once_new_queue_can_be_read(
    account: Account, waited: list[float]
) -> None:
    reads = _not_there_yet(account, NEW_QUEUE_READ_ATTEMPTS - 1)
    made = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(made, dict)
    assert made["VisibilityTimeout"] == "45"
    assert len(reads) == NEW_QUEUE_READ_ATTEMPTS
    assert waited == [1] * (NEW_QUEUE_READ_ATTEMPTS - 1)


def test_make_queue_asks_for_another_try_if_new_queue_cannot_be_read_yet(
    account: Account, waited: list[float]
) -> None:
    reads = _not_there_yet(account, NEW_QUEUE_READ_ATTEMPTS)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Retry)
    assert refusal.code == "not_usable_yet"
    assert QUEUE in refusal.reason
    assert len(reads) == NEW_QUEUE_READ_ATTEMPTS
    made = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(made, dict), "the next try finds the queue that is there"
    assert _names(account) == ["orders-dlq"]


@pytest.mark.parametrize(
    ("code", "status"), [("AccessDenied", 403), ("InvalidAttributeValue", 400)]
)
def test_make_queue_pages_if_aws_refuses_for_good(account: Account, code: str, status: int) -> None:
    _refused_with(account, code, status)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Escalate)
    assert refusal.code == AWS_REFUSED
    assert code in refusal.reason
    assert _names(account) == []


def test_make_queue_waits_for_a_deleted_name(account: Account) -> None:
    _refused_with(account, "AWS.SimpleQueueService.QueueDeletedRecently", 400)
    refusal = make_queue(account.clients, QUEUE, GIVEN)
    assert isinstance(refusal, Retry)
    assert refusal.code == "deleted_recently"
    assert _names(account) == []


def test_make_queue_raises_if_aws_may_answer_later(account: Account) -> None:
    away = EndpointConnectionError(endpoint_url="sqs")
    let_through = deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=away)
    with pytest.raises(EndpointConnectionError):
        make_queue(account.clients, QUEUE, GIVEN)
    let_through()
    assert not isinstance(make_queue(account.clients, QUEUE, GIVEN), Retry | Escalate)
