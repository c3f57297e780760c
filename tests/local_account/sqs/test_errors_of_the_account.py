"""Errors that are switched on, as boto3 gets them and as CloudTrail records them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.session import Session

from local_account.account_page import SQS_ERRORS_PATH, SwitchRefused
from local_account.process import LocalAccount
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

pytestmark = pytest.mark.account
ONCE = Config(retries={"total_max_attempts": 1})
# By the name in the service's model, or where no model lists it: the code that boto3 gives.
KEY_ERRORS = {
    "KmsAccessDenied": "KMS.AccessDeniedException",
    "KmsDisabled": "KMS.DisabledException",
    "KmsInvalidState": "KMS.InvalidStateException",
    "KmsNotFound": "KMS.NotFoundException",
}


@pytest.fixture
def switched(account: LocalAccount) -> Iterator[LocalAccount]:
    """Whatever a test switches on is off again after it."""
    yield account
    account.end_sqs_errors()


def _on(account: LocalAccount, error: str, queue: Queue, **more: Any) -> None:
    name = queue.url.rpartition("/")[2]
    account.switch_sqs_errors([{"error": error, "queues": [name], **more}])
    queue.sqs = account.client("sqs", config=ONCE)


@pytest.mark.parametrize(
    "asked",
    [
        {"error": "Nonsense", "queues": ["a"]},
        {"error": "OverLimit"},
        {"error": "OverLimit", "queues": []},
        {"error": "OverLimit", "queues": ["a*b"]},
        {"error": "OverLimit", "queues": ["Mendq-*"]},
        {"error": "OverLimit", "queues": ["a"], "x": 1},
        {"error": "OverLimit", "queues": ["a"], "below_seconds": 301},
        {"error": "KmsThrottled", "queues": ["a"], "below_seconds": 60},
        "KmsThrottled",
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(switched: LocalAccount, asked: Any) -> None:
    on = [{"error": "KmsThrottled", "queues": ["orders-*", "b"], "below_seconds": 3600}]
    switched.switch_sqs_errors(on)
    with pytest.raises(SwitchRefused) as refused:
        switched.switch_sqs_errors([asked])
    assert "\n" not in str(refused.value)
    assert switched.sqs_errors == on


@pytest.mark.parametrize(
    ("method", "body", "status"), [("POST", b"{}", 405), ("PUT", b"{", 400), ("PUT", b"{}", 400)]
)
def test_what_the_page_refuses_it_answers_with_a_line(
    account: LocalAccount, method: str, body: bytes, status: int
) -> None:
    url = account.endpoint_url + SQS_ERRORS_PATH
    request = urllib.request.Request(url, body, method=method)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(request)  # noqa: S310
    with failed.value as answer:
        assert (answer.status, bool(json.load(answer)["message"])) == (status, True)


def test_kms_throttles_until_the_key_is_used_for_longer(switched: LocalAccount) -> None:
    reuse = "KmsDataKeyReusePeriodSeconds"
    given: dict[str, Any] = {"KmsMasterKeyId": "alias/orders", reuse: "60"}
    queue = new_queue(switched, **given)
    plain, files = new_queue(switched), TrailFiles(switched)
    name = queue.url.rpartition("/")[2]
    switched.switch_sqs_errors([{"error": "KmsThrottled", "queues": [f"{name[:-3]}*"]}])
    queue.sqs = switched.client("sqs", config=ONCE)
    said = "You have exceeded the rate at which you may call KMS. Reduce the frequency of"
    for call in (queue.send, lambda: queue.sqs.receive_message(QueueUrl=queue.url)):
        code, message = error_of(call)
        assert (code, message.startswith(said)) == ("KMS.ThrottlingException", True)
    assert error_of(lambda: queue.delete("nonsense"))[0] == "ReceiptHandleIsInvalid"
    plain.send()
    eventually(lambda: files.records(queue, "SendMessage"))
    (record,) = files.records(queue, "SendMessage")
    assert record["errorCode"] == "KMS.ThrottlingException"
    queue.set(**{reuse: "300"})
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


@pytest.mark.parametrize("error", KEY_ERRORS)
def test_a_key_that_cannot_be_used(switched: LocalAccount, error: str) -> None:
    queue = new_queue(switched, KmsMasterKeyId="1234")
    _on(switched, error, queue)
    code, message = error_of(queue.send)
    assert code == KEY_ERRORS[error]
    assert "arn:aws:kms:us-east-1:000000000000:key/1234" in message
    assert ("perform: kms:GenerateDataKey" in message) == (error == "KmsAccessDenied")
    assert error in {each.name for each in Session().get_service_model("sqs").error_shapes}


def test_our_own_queues_are_not_hit_and_who_may_not_call_is_said_that_instead(
    switched: LocalAccount,
) -> None:
    queue, denied = new_queue(switched), new_queue(switched)
    statement = {"Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage"}
    policy = {"Version": "2012-10-17", "Statement": [{**statement, "Resource": denied.arn}]}
    denied.set(Policy=json.dumps(policy))
    switched.switch_sqs_errors([{"error": "OverLimit", "queues": ["*"]}])
    sqs = switched.client("sqs", config=ONCE)
    own = sqs.list_queues(QueueNamePrefix="Mendq-")["QueueUrls"]
    for url in own:
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    codes = [error_of(lambda q=q: sqs.receive_message(QueueUrl=q.url))[0] for q in (queue, denied)]  # type: ignore[misc]
    assert (bool(own), codes) == (True, ["OverLimit", "AccessDenied"])
