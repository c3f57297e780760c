"""Who starts a move task has to be allowed what SQS then does in the caller's name."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import policy, user
from tests.local_account.dead_letters import Pipe, bodies, ended, new_pipe, received, tasks
from tests.local_account.queues import Queue, error_of, new_queue
from tests.local_account.roles import allow

pytestmark = pytest.mark.account
START, CANCEL = "sqs:StartMessageMoveTask", "sqs:CancelMessageMoveTask"
TAKING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


def _client(account: LocalAccount, *statements: dict[str, Any]) -> Any:
    return account.client("sqs", **user(account, *statements)[1])


def _pipe(account: LocalAccount, letters: int = 2) -> Pipe:
    pipe = new_pipe(account)
    pipe.die(*(f"letter {n}" for n in range(letters)))
    return pipe


def _refused(call: partial[Any], action: str, queue: Queue) -> None:
    code, message = error_of(call)
    assert code.startswith("AccessDenied")
    assert f"not authorized to perform: {action.lower()} on resource: {queue.arn}" in message


def test_who_has_every_permission_moves(account: LocalAccount) -> None:
    pipe = _pipe(account)
    sqs = _client(
        account,
        allow([START, *TAKING], pipe.dead.arn),
        allow("sqs:SendMessage", pipe.source.arn),
    )
    sqs.start_message_move_task(SourceArn=pipe.dead.arn)
    assert bodies(received(pipe.source, 2)) == ["letter 0", "letter 1"]


@pytest.mark.parametrize("missing", [START, *TAKING])
def test_each_permission_on_the_dead_letter_queue_is_needed(
    account: LocalAccount, missing: str
) -> None:
    pipe = _pipe(account)
    had = [each for each in (START, *TAKING) if each != missing]
    sqs = _client(account, allow(had, pipe.dead.arn), allow("sqs:SendMessage", pipe.source.arn))
    _refused(partial(sqs.start_message_move_task, SourceArn=pipe.dead.arn), missing, pipe.dead)
    assert (tasks(pipe.dead), pipe.dead.count()) == ([], 2)


def test_sending_to_every_possible_destination_is_needed(account: LocalAccount) -> None:
    pipe = _pipe(account)
    other = new_pipe(account, dead=pipe.dead).source
    sqs = _client(
        account,
        allow([START, *TAKING], pipe.dead.arn),
        allow("sqs:SendMessage", pipe.source.arn),
    )
    start = partial(sqs.start_message_move_task, SourceArn=pipe.dead.arn)
    _refused(start, "sqs:SendMessage", other)
    elsewhere = new_queue(account)
    _refused(partial(start, DestinationArn=elsewhere.arn), "sqs:SendMessage", elsewhere)
    assert (tasks(pipe.dead), pipe.dead.count()) == ([], 2)
    start(DestinationArn=pipe.source.arn)


def _denying(queue: Queue, condition: dict[str, Any] | None = None) -> str:
    denied = {"Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage"}
    more = {"Condition": condition} if condition else {}
    return policy({**denied, "Resource": queue.arn, **more})


def test_the_destination_s_policy_is_asked(account: LocalAccount) -> None:
    pipe = _pipe(account)
    sqs = _client(account, allow("sqs:*", "*"))
    pipe.source.set(Policy=_denying(pipe.source))
    start = partial(sqs.start_message_move_task, SourceArn=pipe.dead.arn)
    code, message = error_of(start)
    assert code.startswith("AccessDenied")
    assert "with an explicit deny in a resource-based policy" in message
    assert (tasks(pipe.dead), pipe.dead.count()) == ([], 2)


def test_a_policy_that_lets_sqs_itself_through_lets_a_task_through(account: LocalAccount) -> None:
    pipe = _pipe(account)
    sqs = _client(account, allow("sqs:*", "*"))
    by_others = {
        "StringNotEquals": {"aws:SourceVpc": "vpc-1234567890abcdef0"},
        "StringNotEqualsIfExists": {"aws:CalledViaLast": "sqs.amazonaws.com"},
    }
    pipe.source.set(Policy=_denying(pipe.source, by_others))
    direct = partial(sqs.send_message, QueueUrl=pipe.source.url, MessageBody="x")
    assert error_of(direct)[0].startswith("AccessDenied")
    sqs.start_message_move_task(SourceArn=pipe.dead.arn)
    assert bodies(received(pipe.source, 2)) == ["letter 0", "letter 1"]


def test_a_permission_that_is_taken_away_ends_the_task(account: LocalAccount) -> None:
    pipe = _pipe(account, letters=6)
    arn, identity = user(account, allow("sqs:*", "*"))
    sqs = account.client("sqs", **identity)
    sqs.start_message_move_task(SourceArn=pipe.dead.arn, MaxNumberOfMessagesPerSecond=2)
    account.client("iam").delete_user_policy(UserName=arn.rpartition("/")[2], PolicyName="p")
    failed = ended(pipe.dead, "FAILED")
    assert failed["FailureReason"] == "AccessDenied"
    assert failed["ApproximateNumberOfMessagesMoved"] < 6
    assert pipe.dead.count() > 0


def test_cancelling_needs_what_moving_needs(account: LocalAccount) -> None:
    pipe = _pipe(account, letters=6)
    handle = pipe.dead.sqs.start_message_move_task(
        SourceArn=pipe.dead.arn, MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    for missing in (CANCEL, *TAKING):
        had = [each for each in (CANCEL, *TAKING) if each != missing]
        sqs = _client(account, allow(had, pipe.dead.arn))
        _refused(partial(sqs.cancel_message_move_task, TaskHandle=handle), missing, pipe.dead)
    assert tasks(pipe.dead)[0]["Status"] == "RUNNING"
    _client(account, allow([CANCEL, *TAKING], pipe.dead.arn)).cancel_message_move_task(
        TaskHandle=handle
    )


def test_listing_needs_the_queue_s_attributes_too(account: LocalAccount) -> None:
    dead = new_pipe(account).dead
    listing = _client(account, allow("sqs:ListMessageMoveTasks", dead.arn))
    call = partial(listing.list_message_move_tasks, SourceArn=dead.arn)
    _refused(call, "sqs:GetQueueAttributes", dead)
    both = ["sqs:ListMessageMoveTasks", "sqs:GetQueueAttributes"]
    _client(account, allow(both, dead.arn)).list_message_move_tasks(SourceArn=dead.arn)
