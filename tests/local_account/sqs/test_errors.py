"""Errors that are switched on, as boto3 gets them and as CloudTrail records them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config

from local_account.account_page import SwitchRefused
from local_account.process import LocalAccount
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

pytestmark = pytest.mark.account
ONCE = Config(retries={"total_max_attempts": 1})
REUSE = "KmsDataKeyReusePeriodSeconds"


@pytest.fixture
def account_with_switches(account: LocalAccount) -> Iterator[LocalAccount]:
    """Whatever a test switches on is off again after it."""
    yield account
    account.switch_sqs_errors([])


def _switch_on(account: LocalAccount, error: str, queue: Queue) -> None:
    account.switch_sqs_errors([{"error": error, "queues": [queue.url.rpartition("/")[2]]}])
    queue.sqs = account.client("sqs", config=ONCE)


def test_invalid_error_switch_is_refused_with_one_line_and_keeps_the_current_switches(
    account_with_switches: LocalAccount,
) -> None:
    queue = new_queue(account_with_switches, fifo=True)
    _switch_on(account_with_switches, "ThrottlingException", queue)
    for asked in (
        {"error": "Nonsense", "queues": ["a"]},
        {"error": "KmsThrottled", "queues": []},
        {"error": "KmsThrottled", "queues": ["a*b"]},
        {"error": "KmsThrottled", "queues": ["Mendq-*"]},
        {"error": "KmsThrottled", "queues": ["a"], "x": 1},
    ):
        with pytest.raises(SwitchRefused, match=r"^[^\n]+; send [^\n]+$"):
            account_with_switches.switch_sqs_errors([asked])
    assert error_of(queue.send) == ("ThrottlingException", "Rate exceeded")
    queue.set(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    queue.send()


def test_kms_throttling_fails_sends_and_receives_of_its_queue_until_the_key_reuse_period_is_raised(
    account_with_switches: LocalAccount,
) -> None:
    given: dict[str, Any] = {"KmsMasterKeyId": "alias/aws/sqs", REUSE: "60"}
    queue = new_queue(account_with_switches, **given)
    files = TrailFiles(account_with_switches)
    _switch_on(account_with_switches, "KmsThrottled", queue)
    said = "You have exceeded the rate at which you may call KMS. Reduce the frequency of"
    for call in (queue.send, lambda: queue.sqs.receive_message(QueueUrl=queue.url)):
        code, message = error_of(call)
        assert (code, message.startswith(said)) == ("KMS.ThrottlingException", True)
    assert error_of(lambda: queue.delete("nonsense"))[0] == "ReceiptHandleIsInvalid"
    new_queue(account_with_switches, **given).send()
    eventually(lambda: files.records(queue, "SendMessage"))
    (record,) = files.records(queue, "SendMessage")
    assert record["errorCode"] == "KMS.ThrottlingException"
    queue.set(**{REUSE: "300"})
    queue.send()
