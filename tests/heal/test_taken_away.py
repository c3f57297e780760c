"""Queues that Mendq is told to leave, or that go, while a case of theirs is open."""

from __future__ import annotations

import pytest

from tests.follow_up.test_follow_up import World
from tests.heal.conftest import Account
from tests.heal.operators import case_of

UNMANAGED = "the queue is not managed any more"
GONE = "the queue is gone, or another one of its name"


@pytest.fixture
def world(account: Account) -> World:
    return World(account)


def take_away(account: Account, queue: str, how: str) -> None:
    if how == "off":
        account.tag(queue, mendq="off")
    elif how == "gone":
        account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    else:
        account.clients.sqs.untag_queue(QueueUrl=account.url(queue), TagKeys=["mendq"])


@pytest.mark.parametrize("how", ["off", "untagged", "gone"])
@pytest.mark.parametrize("state", ["applied", "watching"])
def test_what_nobody_listens_for_is_never_said_to_have_stayed_away(
    world: World, state: str, how: str
) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.deletes = 7
    world.minutes(19 if state == "watching" else 1)
    assert world.states()[-1] == state
    take_away(world.account, queue, how)
    for hour in range(50):
        if how != "gone":
            world.fail(queue, f"ignored {hour}")
        world.account.later(hours=1)
        assert world.follow().errors == {}
    closed = case_of(world.account)
    assert (closed.came_from, closed.state) == (state, "closed")
    assert closed.reason == (GONE if how == "gone" else UNMANAGED)
    assert "verified" not in world.states()[world.states().index(state) + 1 :]


@pytest.mark.parametrize("how", ["off", "untagged", "gone"])
def test_an_escalation_ends_with_what_it_is_about(world: World, how: str) -> None:
    account = world.account
    queue = account.queue(KmsMasterKeyId="alias/orders")
    denied = {"eventName": "SendMessage", "errorCode": "KMS.AccessDeniedException"}
    world.fail(queue, "a", **denied, errorMessage="no")
    account.later(hours=2)
    world.follow()
    assert world.states() == ["escalated"]
    take_away(account, queue, how)
    account.later(hours=1)
    world.follow()
    assert world.states() == ["escalated", "closed"]
    assert case_of(account).reason == (GONE if how == "gone" else UNMANAGED)
    assert len(account.pages("urgent")) == 1
