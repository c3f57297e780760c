"""Errors that are switched on, as boto3 gets them and as CloudTrail records them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config

from local_account.account_page import SwitchRefused
from local_account.process import LocalAccount
from local_account.sqs.errors import KINDS
from tests.local_account.callers import policy
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

pytestmark = pytest.mark.account
ONCE = Config(retries={"total_max_attempts": 1})
REUSE = "KmsDataKeyReusePeriodSeconds"


@pytest.fixture
def switched(account: LocalAccount) -> Iterator[LocalAccount]:
    """Whatever a test switches on is off again after it."""
    yield account
    account.switch_sqs_errors([])


def _on(account: LocalAccount, error: str, queue: Queue) -> None:
    account.switch_sqs_errors([{"error": error, "queues": [queue.url.rpartition("/")[2]]}])
    queue.sqs = account.client("sqs", config=ONCE)


def test_a_mistake_is_one_line_and_changes_nothing(switched: LocalAccount) -> None:
    queue = new_queue(switched)
    _on(switched, "OverLimit", queue)
    for asked in (
        {"error": "Nonsense", "queues": ["a"]},
        {"error": "OverLimit", "queues": []},
        {"error": "OverLimit", "queues": ["a*b"]},
        {"error": "OverLimit", "queues": ["Mendq-*"]},
        {"error": "OverLimit", "queues": ["a"], "x": 1},
    ):
        with pytest.raises(SwitchRefused, match=r"^[^\n]+; send [^\n]+$"):
            switched.switch_sqs_errors([asked])
    assert error_of(lambda: queue.sqs.receive_message(QueueUrl=queue.url))[0] == "OverLimit"


def test_kms_throttles_until_the_key_is_used_for_longer(switched: LocalAccount) -> None:
    given: dict[str, Any] = {"KmsMasterKeyId": "alias/orders", REUSE: "60"}
    queue, files = new_queue(switched, **given), TrailFiles(switched)
    _on(switched, "KmsThrottled", queue)
    said = "You have exceeded the rate at which you may call KMS. Reduce the frequency of"
    for call in (queue.send, lambda: queue.sqs.receive_message(QueueUrl=queue.url)):
        code, message = error_of(call)
        assert (code, message.startswith(said)) == ("KMS.ThrottlingException", True)
    assert error_of(lambda: queue.delete("nonsense"))[0] == "ReceiptHandleIsInvalid"
    new_queue(switched, **given).send()
    eventually(lambda: files.records(queue, "SendMessage"))
    (record,) = files.records(queue, "SendMessage")
    assert record["errorCode"] == "KMS.ThrottlingException"
    queue.set(**{REUSE: "300"})
    queue.send()


@pytest.mark.parametrize("error", ["RequestThrottled", "OverLimit"])
def test_a_standard_queue_refuses_short_polls_alone(switched: LocalAccount, error: str) -> None:
    queue = new_queue(switched)
    _on(switched, error, queue)
    queue.send()
    assert error_of(lambda: queue.sqs.receive_message(QueueUrl=queue.url))[0] == error
    queue.set(ReceiveMessageWaitTimeSeconds="1")
    assert queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]


def test_a_fifo_queue_is_throttled_until_each_group_has_its_own(switched: LocalAccount) -> None:
    queue = new_queue(switched, fifo=True)
    _on(switched, "ThrottlingException", queue)
    assert error_of(queue.send) == ("ThrottlingException", "Rate exceeded")
    queue.set(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    queue.send()
    _on(switched, "OverLimit", queue)  # which FIFO queues never give
    assert queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]


def test_a_key_that_cannot_be_used(switched: LocalAccount) -> None:
    queue = new_queue(switched, KmsMasterKeyId="1234")
    for error in ("KmsAccessDenied", "KmsDisabled", "KmsInvalidState", "KmsNotFound"):
        _on(switched, error, queue)
        code, message = error_of(queue.send)
        assert code == KINDS[error].query_code
        assert "arn:aws:kms:us-east-1:000000000000:key/1234" in message
        assert ("perform: kms:GenerateDataKey" in message) == (error == "KmsAccessDenied")


def test_our_own_queues_are_not_hit_and_who_may_not_call_is_said_that_instead(
    switched: LocalAccount,
) -> None:
    queue, denied = new_queue(switched), new_queue(switched)
    deny = {"Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage"}
    denied.set(Policy=policy({**deny, "Resource": denied.arn}))
    switched.switch_sqs_errors([{"error": "OverLimit", "queues": ["*"]}])
    sqs = switched.client("sqs", config=ONCE)
    own = sqs.list_queues(QueueNamePrefix="Mendq-")["QueueUrls"]
    for url in own:
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    codes = [error_of(lambda q=q: sqs.receive_message(QueueUrl=q.url))[0] for q in (queue, denied)]  # type: ignore[misc]
    assert (bool(own), codes) == (True, ["OverLimit", "AccessDenied"])
