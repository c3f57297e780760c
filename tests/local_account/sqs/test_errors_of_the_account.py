"""Errors that are switched on, as boto3 gets them and as CloudTrail records them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local_account.account_page import SQS_ERRORS_PATH
from local_account.process import LocalAccount
from local_account.switch import SwitchRefused
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

pytestmark = pytest.mark.account
ONCE = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def switched(account: LocalAccount) -> Iterator[LocalAccount]:
    """Whatever a test switches on is off again after it."""
    yield account
    account.end_sqs_errors()


def _on(account: LocalAccount, error: str, queue: Queue, **more: Any) -> None:
    name = queue.url.rpartition("/")[2]
    account.switch_sqs_errors([{"error": error, "queues": [name], **more}])
    queue.sqs = account.client("sqs", config=ONCE)


def _failure(call: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(ClientError) as failed:
        call()
    return dict(failed.value.response)


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [("POST", b"{}", 405), ("PUT", b"{", 400), ("PUT", b"", 400), ("PUT", b'{"errors": 1}', 400)],
)
def test_what_the_page_refuses_it_answers_with_a_line(
    switched: LocalAccount, method: str, body: bytes, status: int
) -> None:
    switched.switch_sqs_errors([{"error": "OverLimit", "queues": ["retained"]}])
    url = switched.endpoint_url + SQS_ERRORS_PATH
    request = urllib.request.Request(url, body, method=method)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(request)  # noqa: S310
    with failed.value as answer:
        assert answer.status == status
        assert json.load(answer)["message"]
    assert switched.sqs_errors == [{"error": "OverLimit", "queues": ["retained"]}]


def test_the_switch_as_the_account_has_it(switched: LocalAccount) -> None:
    assert switched.sqs_errors == []
    with pytest.raises(SwitchRefused, match=r"^error: give one of "):
        switched.switch_sqs_errors([{"error": "Nonsense", "queues": ["a"]}])
    asked = [{"error": "KmsThrottled", "queues": ["a", "b-*"]}]
    switched.switch_sqs_errors(asked)
    assert switched.sqs_errors == [{**asked[0], "below_seconds": 300}]
    switched.end_sqs_errors()
    assert switched.sqs_errors == []


def test_kms_throttles_until_the_data_key_is_reused_longer(switched: LocalAccount) -> None:
    key = "alias/aws/sqs"
    queue = new_queue(switched, KmsMasterKeyId=key, KmsDataKeyReusePeriodSeconds="60")
    files = TrailFiles(switched)
    queue.send()
    _on(switched, "KmsThrottled", queue)
    answer = _failure(queue.send)
    assert answer["Error"]["Code"] == "KMS.ThrottlingException"
    assert answer["Error"]["QueryErrorCode"] == "KmsThrottled"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    entries = [{"Id": "1", "MessageBody": "x"}]
    batch = {"QueueUrl": queue.url, "Entries": entries}
    assert error_of(lambda: queue.sqs.send_message_batch(**batch))[0] == "KMS.ThrottlingException"
    assert (
        error_of(lambda: queue.sqs.receive_message(QueueUrl=queue.url))[0]
        == answer["Error"]["Code"]
    )
    assert queue.count() == 1  # nothing came in, nothing was received
    queue.set(KmsDataKeyReusePeriodSeconds="300")
    queue.send()
    queue.delete(queue.receive())
    assert queue.count() == 1
    eventually(lambda: len(files.records(queue, "SendMessage")) == 3)
    (failed,) = (each for each in files.records(queue, "SendMessage") if "errorCode" in each)
    assert failed["errorCode"] == "KMS.ThrottlingException"
    assert failed["requestID"] == answer["ResponseMetadata"]["RequestId"]
    assert failed["errorMessage"] == answer["Error"]["Message"]


def test_what_mendq_does_about_it_helps(switched: LocalAccount) -> None:
    """Three failed calls are the evidence; the fourth is to spare."""
    key = "alias/aws/sqs"
    left, healed = (
        new_queue(switched, tags=tags, KmsMasterKeyId=key, KmsDataKeyReusePeriodSeconds="60")
        for tags in ({"mendq": "observe"}, {"mendq": "heal"})
    )
    names = [each.url.rpartition("/")[2] for each in (left, healed)]
    switched.switch_sqs_errors([{"error": "KmsThrottled", "queues": names}])
    for queue in (left, healed):
        queue.sqs = switched.client("sqs", config=ONCE)
        for _ in range(4):
            assert error_of(queue.send)[0] == "KMS.ThrottlingException"
    reuse = "KmsDataKeyReusePeriodSeconds"
    eventually(lambda: healed.attributes(reuse)[reuse] == "300")
    healed.send()
    assert left.attributes(reuse)[reuse] == "60"
    assert error_of(left.send)[0] == "KMS.ThrottlingException"


@pytest.mark.parametrize("error", ["RequestThrottled", "OverLimit"])
def test_a_standard_queue_refuses_short_polls_alone(switched: LocalAccount, error: str) -> None:
    queue = new_queue(switched)
    _on(switched, error, queue)
    queue.send()
    assert error_of(lambda: queue.sqs.receive_message(QueueUrl=queue.url))[0] == error
    queue.set(ReceiveMessageWaitTimeSeconds="1")
    assert queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("KmsAccessDenied", "KMS.AccessDeniedException"),
        ("KmsDisabled", "KMS.DisabledException"),
        ("KmsInvalidState", "KMS.InvalidStateException"),
        ("KmsNotFound", "KMS.NotFoundException"),
    ],
)
def test_a_key_that_cannot_be_used(switched: LocalAccount, error: str, code: str) -> None:
    queue = new_queue(switched, KmsMasterKeyId="alias/orders")
    plain = new_queue(switched)
    _on(switched, error, queue)
    said, message = error_of(queue.send)
    assert said == code
    assert "arn:aws:kms:us-east-1:000000000000:alias/orders" in message
    plain.send()


def test_another_queue_and_our_own_are_not_hit(switched: LocalAccount) -> None:
    queue = new_queue(switched)
    switched.switch_sqs_errors([{"error": "OverLimit", "queues": ["*"]}])
    sqs = switched.client("sqs", config=ONCE)
    own = sqs.list_queues(QueueNamePrefix="Mendq-")["QueueUrls"]
    assert own
    for url in own:
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    assert error_of(lambda: sqs.receive_message(QueueUrl=queue.url))[0] == "OverLimit"


def test_who_may_not_call_is_said_that_instead(switched: LocalAccount) -> None:
    queue = new_queue(switched)
    statement = {"Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage"}
    policy = {"Version": "2012-10-17", "Statement": [{**statement, "Resource": queue.arn}]}
    queue.set(Policy=json.dumps(policy))
    _on(switched, "OverLimit", queue)
    assert error_of(lambda: queue.sqs.receive_message(QueueUrl=queue.url))[0] == "AccessDenied"
