"""The quarantine is made for the first returned message. Until SQS knows it, no message is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.model.state import State
from tests.account.receivers import confirm_receiver
from tests.redrive.world import LATE, RedriveWorld, make_bodies
from tests.waiting import replace_sleep


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_sleep(monkeypatch)


def return_one_message(world: RedriveWorld) -> str:
    """Send five messages back and let one of them return to the DLQ."""
    world.begin(*make_bodies(9), bounds=LATE).tick()
    (poison, *_) = sorted(world.read_bodies(world.source))
    world.consume(frozenset({poison}))
    world.account.later(minutes=2)
    return poison


class HiddenQuarantine:
    """Make SQS answer that the quarantine does not exist, while `is_hidden`."""

    def __init__(self, world: RedriveWorld) -> None:
        self.url = world.account.url(world.quarantine_arn)
        self.is_hidden = True
        events = world.account.clients.sqs.meta.events
        events.register_first("before-call.sqs.GetQueueAttributes", self._answer)

    def _answer(self, params: dict[str, Any], **_: Any) -> None:
        if self.is_hidden and json.loads(params["body"])["QueueUrl"] == self.url:
            none: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue"}}
            raise ClientError(none, "GetQueueAttributes")


def test_returned_message_stays_in_the_dlq_until_the_new_quarantine_queue_is_usable(
    world: RedriveWorld,
) -> None:
    poison = return_one_message(world)
    hidden = HiddenQuarantine(world)
    assert world.tick().quarantined_count == 0
    assert not world.progress.is_over, world.progress.because
    assert poison in world.read_bodies(world.dlq)
    hidden.is_hidden = False
    world.account.later(minutes=1)
    outcome = world.run_minutes(30)
    assert outcome.case is not None
    assert world.read_bodies(world.quarantine_arn) == {poison}
    assert poison not in world.read_bodies(world.dlq)


def test_redrive_escalates_if_its_new_quarantine_queue_never_becomes_usable(
    world: RedriveWorld,
) -> None:
    poison = return_one_message(world)
    HiddenQuarantine(world)
    assert world.run_minutes(30).case is not None
    assert world.state is State.ESCALATED
    assert "was made and cannot be used yet" in world.progress.because
    assert poison in world.read_bodies(world.dlq)


def test_returned_message_stays_in_the_dlq_while_the_quarantines_name_is_blocked(
    world: RedriveWorld,
) -> None:
    poison = return_one_message(world)
    world.refuse("CreateQueue", "AWS.SimpleQueueService.QueueDeletedRecently", about="quarantine")
    assert world.tick().quarantined_count == 0
    assert not world.progress.is_over, world.progress.because
    world.refusals.clear()
    world.account.later(minutes=1)
    assert world.run_minutes(30).case is not None
    assert world.read_bodies(world.quarantine_arn) == {poison}


def test_redrive_escalates_at_once_if_the_quarantine_name_belongs_to_another_queue(
    world: RedriveWorld,
) -> None:
    """A retry would not help, and a queue of another owner must get none of the messages."""
    poison = return_one_message(world)
    world.account.queue("orders-quarantine", tag=None, MessageRetentionPeriod="60")
    confirm_receiver(world.account, world.quarantine_arn)
    assert world.tick().case is not None
    assert world.state is State.ESCALATED
    assert "there is another queue" in world.progress.because
    assert world.count_visible_messages(world.quarantine_arn) == 0
    assert poison in world.read_bodies(world.dlq)
