"""Move tasks as boto3 sees them, beyond what was recorded."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.sqs.move_tasks import CANCELLING_SECONDS
from tests.local_account.dead_letters import bodies, ended, new_pipe, received, tasks
from tests.local_account.queues import Queue, error_of, eventually, new_queue

pytestmark = pytest.mark.account


def _start(dead: Queue, **more: Any) -> str:
    handle: str = dead.sqs.start_message_move_task(SourceArn=dead.arn, **more)["TaskHandle"]
    return handle


@pytest.mark.parametrize("rate", [0, -1, 501])
def test_a_rate_beyond_500_is_refused(account: LocalAccount, rate: int) -> None:
    pipe = new_pipe(account)
    pipe.die("poison")
    code, message = error_of(partial(_start, pipe.dead, MaxNumberOfMessagesPerSecond=rate))
    assert code == "InvalidParameterValue"
    assert "MaxNumberOfMessagesPerSecond" in message
    assert (tasks(pipe.dead), pipe.dead.count()) == ([], 1)


def test_the_destination_is_another_queue_of_the_same_type(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("poison")
    for destination in (pipe.dead.arn, new_queue(account, fifo=True).arn):
        code, message = error_of(partial(_start, pipe.dead, DestinationArn=destination))
        assert code == "InvalidParameterValue"
        assert destination in message
    assert (tasks(pipe.dead), pipe.dead.count()) == ([], 1)


def test_there_has_to_be_a_source(account: LocalAccount) -> None:
    sqs = account.client("sqs")
    gone = f"{new_queue(account).arn}-gone"
    for call in (sqs.start_message_move_task, sqs.list_message_move_tasks):
        assert error_of(partial(call, SourceArn=gone))[0] == "ResourceNotFoundException"


def test_what_did_not_die_here_has_no_source_to_go_back_to(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("poison")
    pipe.dead.send("by hand")
    _start(pipe.dead)
    failed = ended(pipe.dead, "FAILED")
    assert failed["FailureReason"] == "CouldNotDetermineMessageSource"
    assert failed["ApproximateNumberOfMessagesMoved"] == 1
    assert pipe.dead.count() == 1
    to = new_queue(account)
    _start(pipe.dead, DestinationArn=to.arn)
    assert bodies(received(to, 1)) == ["by hand"]


def test_who_may_name_the_queue_for_dead_letters_says_nothing_of_the_way_back(
    account: LocalAccount,
) -> None:
    pipe = new_pipe(account)
    pipe.die("poison")
    pipe.dead.set(RedriveAllowPolicy=json.dumps({"redrivePermission": "denyAll"}))
    _start(pipe.dead)
    assert bodies(received(pipe.source, 1)) == ["poison"]


def test_what_somebody_holds_stays(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("held", "free")
    held = pipe.dead.receive(seconds=600)
    _start(pipe.dead)
    done = ended(pipe.dead, "COMPLETED")
    assert (done["ApproximateNumberOfMessagesMoved"], pipe.source.count()) == (1, 1)
    pipe.dead.delete(held)


def test_what_dies_again_meanwhile_is_moved_again(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("poison", "other poison", "third")
    handle = _start(pipe.dead, MaxNumberOfMessagesPerSecond=2)

    def moved_again() -> bool:
        pipe.source.sqs.receive_message(
            QueueUrl=pipe.source.url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        return bool(tasks(pipe.dead)[0]["ApproximateNumberOfMessagesMoved"] > 3)

    eventually(moved_again)
    (task,) = tasks(pipe.dead)
    assert task["ApproximateNumberOfMessagesToMove"] == 3
    pipe.dead.sqs.cancel_message_move_task(TaskHandle=handle)


def test_a_task_that_is_being_cancelled_is_still_the_only_one(account: LocalAccount) -> None:
    pipe, to = new_pipe(account), new_queue(account)
    pipe.dead.sqs.send_message_batch(
        QueueUrl=pipe.dead.url,
        Entries=[{"Id": f"{n}", "MessageBody": "x"} for n in range(10)],
    )
    asked = {"DestinationArn": to.arn, "MaxNumberOfMessagesPerSecond": 1}
    handle = _start(pipe.dead, **asked)
    began = time.monotonic()
    pipe.dead.sqs.cancel_message_move_task(TaskHandle=handle)
    cancel = partial(pipe.dead.sqs.cancel_message_move_task, TaskHandle=handle)
    assert error_of(cancel)[0] == "AWS.SimpleQueueService.UnsupportedOperation"
    code, message = error_of(partial(_start, pipe.dead, **asked))
    assert code == "InvalidParameterValue"
    assert message.startswith("There is already a task running.")
    ended(pipe.dead, "CANCELLED")
    assert time.monotonic() - began >= CANCELLING_SECONDS - 0.5
    _start(pipe.dead, DestinationArn=to.arn)
    ended(pipe.dead, "COMPLETED")
    assert to.count() == 10


def test_the_newest_task_comes_first_and_alone_unless_more_are_asked_for(
    account: LocalAccount,
) -> None:
    dead = new_pipe(account).dead
    handles = []
    for rate in range(1, 13):
        handles.append(_start(dead, MaxNumberOfMessagesPerSecond=rate))
        ended(dead, "COMPLETED")
    rates = [each["MaxNumberOfMessagesPerSecond"] for each in tasks(dead)]
    assert rates == list(range(12, 2, -1))
    alone = dead.sqs.list_message_move_tasks(SourceArn=dead.arn)["Results"]
    assert [each["MaxNumberOfMessagesPerSecond"] for each in alone] == [12]
    late = partial(dead.sqs.cancel_message_move_task, TaskHandle=handles[-1])
    assert error_of(late)[0] == "AWS.SimpleQueueService.UnsupportedOperation"
    beyond = partial(dead.sqs.list_message_move_tasks, SourceArn=dead.arn, MaxResults=11)
    assert error_of(beyond)[0] == "InvalidParameterValue"


def test_a_task_put_back_by_36_hours_is_over(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("1", "2", "3", "4", "5")
    _start(pipe.dead, MaxNumberOfMessagesPerSecond=1)
    (before,) = tasks(pipe.dead)
    account.put_back(pipe.dead.arn, minutes=60)
    (running,) = tasks(pipe.dead)
    assert running["Status"] == "RUNNING"
    assert running["StartedTimestamp"] == before["StartedTimestamp"] - 3_600_000
    account.put_back(pipe.dead.arn, minutes=35 * 60)
    assert ended(pipe.dead, "FAILED")["ApproximateNumberOfMessagesMoved"] < 5
    assert pipe.dead.count() > 0


def test_an_account_has_a_hundred_active_tasks(account: LocalAccount) -> None:
    to = new_queue(account)
    entries = [{"Id": f"{n}", "MessageBody": "x"} for n in range(10)]
    asked = {"DestinationArn": to.arn, "MaxNumberOfMessagesPerSecond": 1}
    made: list[Queue] = []
    refused: tuple[str, str] | None = None
    try:
        for _ in range(101):
            dead = new_pipe(account).dead
            made.append(dead)
            for _ in range(2):
                dead.sqs.send_message_batch(QueueUrl=dead.url, Entries=entries)
        for dead in made[:-1]:
            _start(dead, **asked)
        refused = error_of(partial(_start, made[-1], **asked))
        nothing = tasks(made[-1])
    finally:
        for dead in made:
            dead.sqs.delete_queue(QueueUrl=dead.url)
    assert refused[0] == "AWS.SimpleQueueService.UnsupportedOperation"
    assert nothing == []


def _recorded(account: LocalAccount, event_name: str, about: str) -> list[dict[str, Any]]:
    """The records of one kind of call in CloudTrail's event history that mention this."""
    asked = [{"AttributeKey": "EventName", "AttributeValue": event_name}]
    found = account.client("cloudtrail").lookup_events(LookupAttributes=asked)["Events"]
    texts = (each["CloudTrailEvent"] for each in found)
    return [json.loads(each) for each in texts if about in each]


def test_calls_about_tasks_are_management_events(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("1", "2", "3")
    handle = _start(pipe.dead, MaxNumberOfMessagesPerSecond=1)
    error_of(partial(_start, pipe.dead))
    tasks(pipe.dead)
    pipe.dead.sqs.cancel_message_move_task(TaskHandle=handle)
    refused, started = _recorded(account, "StartMessageMoveTask", pipe.dead.arn)
    (listed,) = _recorded(account, "ListMessageMoveTasks", pipe.dead.arn)
    (cancelled,) = _recorded(account, "CancelMessageMoveTask", handle)
    assert started["requestParameters"]["sourceArn"] == pipe.dead.arn
    assert started["responseElements"] == {"taskHandle": handle}
    assert refused["errorCode"] == "InvalidParameterValue"
    assert cancelled["requestParameters"] == {"taskHandle": handle}
    assert [each["readOnly"] for each in (started, listed, cancelled)] == [False, True, False]
    assert {each["eventCategory"] for each in (started, listed, cancelled)} == {"Management"}
