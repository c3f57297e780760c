"""The quarantine is made when the first message needs it: until SQS knows it, nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.model.state import State
from tests.redrive.world import LATE, Redriving, texts
from tests.waiting import replace_sleep


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_sleep(monkeypatch)


def came_back(here: Redriving) -> str:
    """One of five messages that went back died again."""
    here.begun(*texts(9), bounds=LATE).tick()
    (poison, *_) = sorted(here.bodies(here.source))
    here.consume(frozenset({poison}))
    here.account.later(minutes=2)
    return poison


class Hidden:
    """SQS answers about the quarantine as if there were none, while it `lasts`."""

    def __init__(self, here: Redriving) -> None:
        self.url = here.account.url(here.quarantine)
        self.lasts = True
        events = here.account.clients.sqs.meta.events
        events.register_first("before-call.sqs.GetQueueAttributes", self._answer)

    def _answer(self, params: dict[str, Any], **_: Any) -> None:
        if self.lasts and json.loads(params["body"])["QueueUrl"] == self.url:
            none: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue"}}
            raise ClientError(none, "GetQueueAttributes")


def test_returned_message_stays_in_the_dlq_until_the_new_quarantine_queue_is_usable(
    here: Redriving,
) -> None:
    poison = came_back(here)
    hidden = Hidden(here)
    assert here.tick().quarantined_count == 0
    assert not here.progress.is_over, here.progress.because
    assert poison in here.bodies(here.dlq)
    hidden.lasts = False
    here.account.later(minutes=1)
    outcome = here.minutes(30)
    assert outcome.case is not None
    assert here.bodies(here.quarantine) == {poison}
    assert poison not in here.bodies(here.dlq)


def test_redrive_escalates_if_its_new_quarantine_queue_never_becomes_usable(
    here: Redriving,
) -> None:
    poison = came_back(here)
    Hidden(here)
    assert here.minutes(30).case is not None
    assert here.state is State.ESCALATED
    assert "was made and cannot be used yet" in here.progress.because
    assert poison in here.bodies(here.dlq)


def test_returned_message_stays_in_the_dlq_while_sqs_blocks_the_name_of_a_deleted_quarantine(
    here: Redriving,
) -> None:
    poison = came_back(here)
    here.refuse("CreateQueue", "AWS.SimpleQueueService.QueueDeletedRecently", about="quarantine")
    assert here.tick().quarantined_count == 0
    assert not here.progress.is_over, here.progress.because
    here.refusals.clear()
    here.account.later(minutes=1)
    assert here.minutes(30).case is not None
    assert here.bodies(here.quarantine) == {poison}


def test_redrive_escalates_at_once_if_the_quarantine_name_belongs_to_another_queue(
    here: Redriving,
) -> None:
    """Asking again would not help, and a queue that is somebody's must get none of the messages."""
    poison = came_back(here)
    here.account.queue("orders-quarantine", tag=None, MessageRetentionPeriod="60")
    assert here.tick().case is not None
    assert here.state is State.ESCALATED
    assert "there is another queue" in here.progress.because
    assert here.waiting(here.quarantine) == 0
    assert poison in here.bodies(here.dlq)
