"""A redrive in the account: the deployed Lambda under its own role, and messages that did die."""

from __future__ import annotations

import pytest

from local_account.process import LocalAccount
from mendq.redrive.messages import REDRIVE_COUNT
from mendq.redrive.progress import Stage
from tests.local_account.dlq import Pipe, bodies, received
from tests.local_account.queues import Queue
from tests.local_account.redriven import redriven

pytestmark = pytest.mark.account


def test_messages_go_back_a_few_at_first_and_what_returns_is_retained_apart(
    account: LocalAccount,
) -> None:
    here = redriven(account, messages=7)
    first = here.tick()
    assert (first["stage"], first["moved"]) == ("soak", 5), first
    went = received(here.pipe.source, 5)
    assert {each["MessageAttributes"][REDRIVE_COUNT]["StringValue"] for each in went} == {"1"}
    for moved in (6, 7):
        here.soaked()
        ramp = here.tick()
        assert (ramp["stage"], ramp["moved"]) == ("ramp", moved), ramp
    _die_again(here.pipe)
    last = here.tick()
    assert (last["state"], last["stage"], last["returned"]) == ("escalated", "halted", 2), last
    sqs = account.client("sqs")
    name = f"{here.pipe.source.arn.rpartition(':')[2]}-quarantine"
    retained = Queue(sqs, sqs.get_queue_url(QueueName=name)["QueueUrl"], is_fifo=False)
    back = received(retained, 2)
    assert set(bodies(went)) | set(bodies(back)) == {f"message {number}" for number in range(7)}
    assert retained.attributes("MessageRetentionPeriod") == {"MessageRetentionPeriod": "1209600"}
    assert here.pipe.dead.count() == 0


def test_taken_back_nothing_goes_on(account: LocalAccount) -> None:
    here = redriven(account, messages=7)
    here.tick()
    off = here.tick(cancel=True)
    assert (off["stage"], off["code"]) == ("halted", "")
    here.soaked()
    assert here.progress.stage is Stage.HALTED
    assert here.tick()["state"] == "escalated"
    assert here.pipe.dead.count() == 2


def _die_again(pipe: Pipe) -> None:
    """What stands in the source, which takes no more than one failed receive."""
    before = pipe.dead.count()
    for _ in range(20):
        pipe.source.sqs.receive_message(
            QueueUrl=pipe.source.url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        if pipe.dead.count() >= before + 2:
            return
    raise AssertionError("nothing died")
