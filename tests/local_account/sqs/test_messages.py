"""Late deletes and extensions, limits and words, as boto3 sees them answered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account
INVALID = "InvalidParameterValue"
PREFIX = "AWS.SimpleQueueService."
NOT_IN_FLIGHT = f"{PREFIX}MessageNotInflight"
TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def _invalid(handle: str, reason: str) -> tuple[str, str]:
    return INVALID, f"Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"


def _late(handle: str) -> tuple[str, str]:
    return _invalid(handle, "The receipt handle has expired.")


def test_late_delete_and_extension_on_a_fifo_queue_fail_and_keep_the_message(
    account: LocalAccount,
) -> None:
    queue = new_queue(account, fifo=True)
    handle = queue.expired_handle()
    assert error_of(lambda: queue.change(handle, 60))[0] == NOT_IN_FLIGHT
    assert error_of(lambda: queue.delete(handle)) == _late(handle)
    assert queue.count() == 1
    queue.receive(seconds=60)
    assert error_of(lambda: queue.delete(handle)) == _late(handle)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1


def test_late_extension_on_a_standard_queue_changes_nothing_and_fails_after_another_receive(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    late = queue.expired_handle()
    queue.change(late, 60)
    assert queue.count() == 1
    queue.receive(seconds=60)
    assert error_of(lambda: queue.change(late, 0))[0] == NOT_IN_FLIGHT
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1


def test_late_delete_on_a_standard_queue_returns_200_and_keeps_the_message(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    late = queue.expired_handle()
    queue.receive(seconds=60)
    queue.delete(late)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1


def test_deleted_message_can_be_deleted_again_but_not_extended(account: LocalAccount) -> None:
    queue = new_queue(account)
    queue.send()
    latest = queue.receive(seconds=60)
    queue.delete(latest)
    queue.delete(latest)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 0
    gone = "Message does not exist or is not available for visibility timeout change."
    assert error_of(lambda: queue.change(latest, 60)) == _invalid(latest, gone)


def test_delete_and_extension_batches_return_200_and_list_their_failed_entries(
    account: LocalAccount,
) -> None:
    queue = new_queue(account, fifo=True)
    late = queue.expired_handle()
    queue.send()
    queue.receive(seconds=60)
    queue.send()
    in_time = queue.receive(seconds=60)
    entries = [{"Id": "late", "ReceiptHandle": late}, {"Id": "in-time", "ReceiptHandle": in_time}]
    answer = queue.sqs.delete_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["in-time"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], (failed["Code"], failed["Message"])) == ("late", _late(late))
    change = {"Id": "1", "ReceiptHandle": in_time, "VisibilityTimeout": 1}
    answer = queue.sqs.change_message_visibility_batch(QueueUrl=queue.url, Entries=[change])
    assert answer["Failed"][0]["Code"] == INVALID


def test_sqs_error_codes_and_texts_equal_those_recorded_from_aws(account: LocalAccount) -> None:
    """The words that failed calls are matched by; each was seen from the real SQS."""
    queue = new_queue(account, MaximumMessageSize="1024")
    fifo = new_queue(account, fifo=True)
    to_fifo = partial(queue.sqs.send_message, QueueUrl=fifo.url, MessageBody="x")
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(20)]
    gone = partial(queue.sqs.delete_message, QueueUrl=queue.url + "-gone", ReceiptHandle="x")
    recorded: dict[Callable[[], object], tuple[str, str]] = {
        partial(queue.send, "x" * 1025): (INVALID, TOO_LONG),
        partial(to_fifo, MessageGroupId="g"): (INVALID, NO_ID),
        to_fifo: ("MissingParameter", "The request must contain the parameter MessageGroupId."),
        partial(queue.sqs.send_message_batch, QueueUrl=queue.url, Entries=entries): (
            f"{PREFIX}TooManyEntriesInBatchRequest",
            "Maximum number of entries per request are 10. You have sent 20.",
        ),
        gone: (f"{PREFIX}NonExistentQueue", "The specified queue does not exist."),
    }
    for call, said in recorded.items():
        assert error_of(call) == said
    assert error_of(lambda: queue.delete("nonsense"))[0] == "ReceiptHandleIsInvalid"
    for name, seconds in (("WaitTimeSeconds", 21), ("VisibilityTimeout", 43_201)):
        asked: dict[str, Any] = {name: seconds}
        code, message = error_of(partial(queue.receive_some, **asked))
        said_so = f"Value {seconds} for parameter {name} is invalid. Reason: Must be "
        assert (code, message.startswith(said_so)) == (INVALID, True)
