"""Late deletes and extensions as boto3 sees them answered."""

from __future__ import annotations

from functools import partial

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account


def _late(handle: str) -> tuple[str, str]:
    return (
        "InvalidParameterValue",
        (
            f"Value {handle} for parameter ReceiptHandle is invalid. "
            "Reason: The receipt handle has expired."
        ),
    )


def test_a_late_delete_on_fifo_fails_and_the_message_stays(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True)
    handle = queue.expired_handle()
    assert error_of(lambda: queue.delete(handle)) == _late(handle)
    queue.receive(seconds=60)
    assert error_of(lambda: queue.delete(handle)) == _late(handle)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1


def test_a_late_delete_on_standard_answers_200(account: LocalAccount) -> None:
    queue = new_queue(account)
    late = queue.expired_handle()
    latest = queue.receive(seconds=60)
    queue.delete(late)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1
    queue.delete(latest)
    queue.delete(latest)
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 0


def test_a_late_extension_on_fifo_fails(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True)
    handle = queue.expired_handle()
    code, _ = error_of(lambda: queue.change(handle, 60))
    assert code == "AWS.SimpleQueueService.MessageNotInflight"
    assert queue.count() == 1


def test_a_late_extension_on_standard_fails_once_somebody_else_holds_it(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    handle = queue.expired_handle()
    queue.change(handle, 60)
    assert queue.count() == 1  # answered 200, and changed nothing
    queue.receive(seconds=60)
    code, _ = error_of(lambda: queue.change(handle, 0))
    assert code == "AWS.SimpleQueueService.MessageNotInflight"


def test_an_extension_after_the_delete(account: LocalAccount) -> None:
    queue = new_queue(account)
    queue.send()
    handle = queue.receive()
    queue.delete(handle)
    assert error_of(lambda: queue.change(handle, 60)) == (
        "InvalidParameterValue",
        (
            f"Value {handle} for parameter ReceiptHandle is invalid. Reason: "
            "Message does not exist or is not available for visibility timeout change."
        ),
    )


def test_batches_answer_200_with_what_failed(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True)
    late = queue.expired_handle()
    queue.send()
    queue.receive(seconds=60)
    queue.send()
    in_time = queue.receive(seconds=60)
    entries = [{"Id": "late", "ReceiptHandle": late}, {"Id": "in-time", "ReceiptHandle": in_time}]
    answer = queue.sqs.delete_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [each["Id"] for each in answer["Successful"]] == ["in-time"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], (failed["Code"], failed["Message"])) == ("late", _late(late))
    answer = queue.sqs.change_message_visibility_batch(
        QueueUrl=queue.url,
        Entries=[{"Id": "1", "ReceiptHandle": in_time, "VisibilityTimeout": 1}],
    )
    assert answer["Failed"][0]["Code"] == "InvalidParameterValue"


def test_waiting_and_hiding_have_limits(account: LocalAccount) -> None:
    queue = new_queue(account)
    for name, seconds in (("WaitTimeSeconds", 21), ("VisibilityTimeout", 43_201)):
        asked = {"QueueUrl": queue.url, name: seconds}
        code, message = error_of(partial(queue.sqs.receive_message, **asked))
        said = f"Value {seconds} for parameter {name} is invalid. Reason: Must be "
        assert (code, message.startswith(said)) == ("InvalidParameterValue", True)


def test_what_aws_was_recorded_to_say(account: LocalAccount) -> None:
    """The words that failed calls are matched by; each was seen from the real SQS."""
    queue, fifo = new_queue(account, MaximumMessageSize="1024"), new_queue(account, fifo=True)
    sqs, to_fifo = queue.sqs, {"QueueUrl": fifo.url, "MessageBody": "x"}
    many = [{"Id": str(number), "MessageBody": "x"} for number in range(20)]
    assert error_of(lambda: queue.send("x" * 1025)) == (
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
    )
    assert error_of(lambda: sqs.send_message(MessageGroupId="g", **to_fifo)) == (
        "InvalidParameterValue",
        (
            "The queue should either have ContentBasedDeduplication enabled or "
            "MessageDeduplicationId provided explicitly"
        ),
    )
    assert error_of(lambda: sqs.send_message(**to_fifo)) == (
        "MissingParameter",
        "The request must contain the parameter MessageGroupId.",
    )
    assert error_of(lambda: sqs.send_message_batch(QueueUrl=queue.url, Entries=many)) == (
        "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 20.",
    )
    assert error_of(lambda: queue.delete("nonsense"))[0] == "ReceiptHandleIsInvalid"
    gone = {"QueueUrl": queue.url + "-gone", "ReceiptHandle": "x"}
    assert error_of(lambda: sqs.delete_message(**gone)) == (
        "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist.",
    )
