"""Scenes in which something is amiss before the fault strikes: a bucket, a value, a death."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from botocore.exceptions import ClientError

from mendq.heal.undo import UndoOutcome
from tests.account.faults import Killed
from tests.heal.operators import (
    fail_calls,
    load_newest_case,
    make_context,
    move_case,
    outcomes_by_attribute,
    roll_back,
    send_decision,
)
from tests.prove.openings import Turn, approve_case, call_of, make_delivery, queue, waiting_case
from tests.prove.world import World


def roll_back_of_a_persons_value(world: World) -> Turn:
    """Nothing is written, and the answer says so."""
    queue_arn = queue(world)
    fail_calls(world.account, queue_arn)
    world.account.later(minutes=5)
    world.account.set_visibility(queue_arn, 50)
    case_id = load_newest_case(world.account).case_id

    def turn() -> bool:
        answered = roll_back(world.account, case_id)
        kept = {"VisibilityTimeout": UndoOutcome.VALUE_KEPT}
        return "error" not in answered and outcomes_by_attribute(answered) == kept

    return turn


def overrule_fix(world: World) -> Turn:
    queue_arn = queue(world)
    fail_calls(world.account, queue_arn)
    world.account.later(minutes=10)
    world.account.set_visibility(queue_arn, 40)
    world.account.later(minutes=10)
    return world.minute


def close_case(world: World) -> Turn:
    queue_arn = queue(world, KmsMasterKeyId="alias/orders")
    fail_calls(world.account, queue_arn, **call_of("kms_key_unusable"))
    world.account.later(minutes=5)
    case_id = load_newest_case(world.account).case_id
    return lambda: bool(send_decision(world.account, "close", case_id))


def approved_too_late(world: World) -> Turn:
    """The queue was changed since: the plan would be another. Over once that is told."""
    case_id = waiting_case(world)
    world.account.set_visibility(load_newest_case(world.account).queue_arn, 31)
    world.account.later(minutes=5)

    def turn() -> bool:
        send_decision(world.account, "approve", case_id)
        return world.minute() and not make_context(world.account).open_cases.list_unsettled_cases()

    return turn


@contextmanager
def _at(emitter: Any, event: str, error: BaseException) -> Iterator[None]:
    def act(**_: Any) -> None:
        raise error

    emitter.register(event, act, "scene")
    try:
        yield
    finally:
        emitter.unregister(event, unique_id="scene")


def bucket_down(world: World) -> Turn:
    """An older case is owed to it; it is back when the failed calls come again."""
    account = world.account
    events = account.clients.s3.meta.events
    refused = ClientError({"Error": {"Code": "SlowDown"}}, "PutObject")
    queue_arn = queue(world, "observe")
    with _at(events, "before-call.s3.PutObject", refused):
        fail_calls(account, queue_arn, "observed")
    account.tag(queue_arn, mendq="heal")
    account.later(minutes=40)
    deliver = make_delivery(world, queue_arn)
    is_down = [True]

    def turn() -> bool:
        if not is_down:
            return deliver()
        is_down.clear()
        with _at(events, "before-call.s3.PutObject", refused):
            return deliver()

    return turn


def _died_at_its_write(world: World, act: Callable[[], object]) -> Turn:
    events = world.account.clients.sqs_for_writing.meta.events
    with _at(events, "after-call.sqs.SetQueueAttributes", Killed()), suppress(Killed):
        act()
    world.account.later(minutes=3)
    return world.minute


def fix_died(world: World) -> Turn:
    """Nobody else asks; a person's late word must not end the case."""
    turn = _died_at_its_write(world, approve_case(world))
    assert (
        send_decision(world.account, "decline", load_newest_case(world.account).case_id)["error"]
        == "claimed"
    )
    return turn


def roll_back_died(world: World) -> Turn:
    """Of a case that had ended, so nothing but its claim brings it back."""
    fail_calls(world.account, queue(world))
    world.account.later(minutes=5)
    case = load_newest_case(world.account)
    move_case(world.account, case, "closed")
    world.account.later(minutes=5)
    return _died_at_its_write(world, lambda: roll_back(world.account, case.case_id))
