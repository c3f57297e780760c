"""SQS's own redrives: message movement tasks, as boto3 sees them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import RedrivePolicy
from tests.local_account.callers import ALL_OF_SQS, allow, user
from tests.local_account.queues import Queue, error_of, eventually, new_queue

pytestmark = pytest.mark.account
DLQ_RIGHTS = ["sqs:StartMessageMoveTask", "sqs:ReceiveMessage", "sqs:DeleteMessage"]


def _new_source(account: LocalAccount, *bodies: str, fifo: bool = False) -> tuple[Queue, Queue]:
    """A queue and its DLQ, which has messages of the queue with these bodies."""
    dlq = new_queue(account, fifo=fifo)
    source = new_queue(account, fifo=fifo, RedrivePolicy=RedrivePolicy(dlq.arn, 1).text)
    for body in bodies:
        source.send(body)
        source.receive(seconds=0)
        assert source.receive_some() == []
    assert dlq.count() == len(bodies)
    return source, dlq


def _list_tasks(dlq: Queue) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = dlq.sqs.list_message_move_tasks(
        SourceArn=dlq.arn, MaxResults=10
    )["Results"]
    return results


def _wait_for_end(dlq: Queue) -> dict[str, Any]:
    """The newest task of a DLQ, as soon as it has ended."""
    eventually(lambda: _list_tasks(dlq)[0]["Status"] not in ("RUNNING", "CANCELLING"))
    return _list_tasks(dlq)[0]


@pytest.mark.parametrize("fifo", [False, True])
def test_move_task_sends_each_message_back_to_its_source_as_a_new_message(
    tiny: LocalAccount, fifo: bool
) -> None:
    source, dlq = _new_source(tiny, "first", "second", fifo=fifo)
    (old_message, _) = dlq.receive_some(VisibilityTimeout=0, WaitTimeSeconds=5)
    dlq.sqs.start_message_move_task(SourceArn=dlq.arn)
    task = _wait_for_end(dlq)
    assert (task["Status"], "TaskHandle" in task) == ("COMPLETED", False)
    assert (task["ApproximateNumberOfMessagesMoved"], dlq.count()) == (2, 0)
    messages = source.receive_some(AttributeNames=["All"], WaitTimeSeconds=5)
    assert [message["Body"] for message in messages] == ["first", "second"]
    assert old_message["MessageId"] not in {message["MessageId"] for message in messages}
    assert {message["Attributes"]["ApproximateReceiveCount"] for message in messages} == {"1"}


def test_second_task_of_a_dlq_is_refused_until_the_first_is_cancelled(tiny: LocalAccount) -> None:
    source, dlq = _new_source(tiny, "first", "second", "third")
    handle = dlq.sqs.start_message_move_task(SourceArn=dlq.arn, MaxNumberOfMessagesPerSecond=1)[
        "TaskHandle"
    ]
    code, text = error_of(lambda: dlq.sqs.start_message_move_task(SourceArn=dlq.arn))
    assert (code, text.startswith("There is already a task running.")) == (
        "InvalidParameterValue",
        True,
    )
    dlq.sqs.cancel_message_move_task(TaskHandle=handle)
    assert _wait_for_end(dlq)["Status"] == "CANCELLED"
    moved = _list_tasks(dlq)[0]["ApproximateNumberOfMessagesMoved"]
    assert (source.count(), dlq.count()) == (moved, 3 - moved)
    dlq.sqs.start_message_move_task(SourceArn=dlq.arn)
    assert _wait_for_end(dlq)["Status"] == "COMPLETED"


def test_move_task_is_refused_for_a_queue_that_is_no_dlq_and_for_missing_queues(
    tiny: LocalAccount,
) -> None:
    source, dlq = _new_source(tiny, "stays")
    start = dlq.sqs.start_message_move_task
    assert error_of(lambda: start(SourceArn=source.arn)) == (
        "InvalidParameterValue",
        "Source queue must be configured as a Dead Letter Queue.",
    )
    missing = f"{dlq.arn}-missing"
    assert error_of(lambda: start(SourceArn=missing))[0] == "ResourceNotFoundException"
    for destination, code in (
        (missing, "ResourceNotFoundException"),
        (dlq.arn, "InvalidParameterValue"),
        (new_queue(tiny, fifo=True).arn, "InvalidParameterValue"),
    ):
        call = {"SourceArn": dlq.arn, "DestinationArn": destination}
        assert error_of(partial(start, **call))[0] == code
    assert error_of(lambda: start(SourceArn=dlq.arn, MaxNumberOfMessagesPerSecond=501))[0] == (
        "InvalidParameterValue"
    )
    assert (_list_tasks(dlq), dlq.count()) == ([], 1)


def test_task_handle_that_names_no_running_task_cancels_nothing(tiny: LocalAccount) -> None:
    _, dlq = _new_source(tiny, "first")
    handle = dlq.sqs.start_message_move_task(SourceArn=dlq.arn)["TaskHandle"]
    _wait_for_end(dlq)
    cancel = dlq.sqs.cancel_message_move_task
    assert error_of(lambda: cancel(TaskHandle="nonsense"))[0] == "InvalidParameterValue"
    assert error_of(lambda: cancel(TaskHandle=handle))[0] == "ResourceNotFoundException"
    assert _list_tasks(dlq)[0]["Status"] == "COMPLETED"


def test_move_task_fails_if_a_message_was_sent_to_the_dlq_directly(tiny: LocalAccount) -> None:
    _, dlq = _new_source(tiny)
    dlq.send()
    dlq.sqs.start_message_move_task(SourceArn=dlq.arn)
    task = _wait_for_end(dlq)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert dlq.count() == 1


def test_move_task_needs_the_rights_to_read_the_dlq_and_to_send(tiny: LocalAccount) -> None:
    source, dlq = _new_source(tiny, "stays")
    _, credentials = user(tiny, allow("sqs:StartMessageMoveTask", dlq.arn))
    starter = tiny.client("sqs", **credentials)
    call = {"SourceArn": dlq.arn, "DestinationArn": source.arn}
    assert error_of(lambda: starter.start_message_move_task(**call))[0] == "AccessDenied"
    rights = [*DLQ_RIGHTS, "sqs:GetQueueAttributes"]
    _, credentials = user(tiny, allow(rights, dlq.arn))
    reader = tiny.client("sqs", **credentials)
    assert error_of(lambda: reader.start_message_move_task(**call))[0] == "AccessDenied"
    reader.start_message_move_task(SourceArn=dlq.arn)
    task = _wait_for_end(dlq)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "AccessDenied")
    assert (source.count(), dlq.count()) == (0, 1)


def test_move_task_fails_if_the_key_of_a_message_is_disabled(tiny: LocalAccount) -> None:
    kms = tiny.client("kms")
    key_arn = kms.create_key()["KeyMetadata"]["Arn"]
    source, dlq = _new_source(tiny)
    source.set(KmsMasterKeyId=key_arn)
    source.send()
    source.receive(seconds=0)
    assert source.receive_some() == []
    kms.disable_key(KeyId=key_arn)
    dlq.sqs.start_message_move_task(SourceArn=dlq.arn)
    task = _wait_for_end(dlq)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "KMS.DisabledException")
    assert dlq.count() == 1


def test_move_task_is_listed_only_with_the_right_to_list_it(tiny: LocalAccount) -> None:
    _, dlq = _new_source(tiny)
    _, credentials = user(tiny, allow("sqs:ReceiveMessage", "*"))
    refused = replace(dlq, sqs=tiny.client("sqs", **credentials))
    listing = {"SourceArn": dlq.arn}
    code, _ = error_of(lambda: refused.sqs.list_message_move_tasks(**listing))
    assert code.startswith("AccessDenied")
    _, credentials = user(tiny, ALL_OF_SQS)
    allowed = tiny.client("sqs", **credentials)
    assert allowed.list_message_move_tasks(**listing)["Results"] == []
