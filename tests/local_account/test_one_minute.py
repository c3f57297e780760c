"""A minute of traffic on a queue made just now is enough, where the account's floor is lowered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from local_account.demo.redrive import consuming
from local_account.demo.stage import ONCE
from local_account.demo.traffic import Caller, numbered, send
from local_account.process import LocalAccount
from mendq.model.queue import Redrive
from tests.local_account.callers import invoked
from tests.local_account.mendq_here import mendq_here, newest_case
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = [pytest.mark.account, pytest.mark.long]
MESSAGES, WORKERS, RECEIVES = 200, 60, 3
SECONDS, WORK_SECONDS = 2, 3
NAME = "visibility_timeout_too_short"
SETTINGS = {"timing": {"measuringMinutes": 1}, "limits": {"massSymptomShare": 1}}


@pytest.fixture
def hasty() -> Iterator[LocalAccount]:
    with LocalAccount(SETTINGS) as running:
        yield running


def _worked_too_slowly(account: LocalAccount, queue: Queue) -> None:
    """Consumers that are not done in time, and delete all the same, until nothing is left."""
    caller = Caller(account.client("sqs", config=ONCE), queue.url, lambda _: None)

    def consume() -> None:
        messages = caller.receive(MaxNumberOfMessages=10)
        caller.enough.wait(WORK_SECONDS if messages else 0)
        for each in messages:
            caller.delete(each)

    with ExitStack() as consumed:
        send(caller, numbered(MESSAGES))
        consumed.enter_context(consuming(consume, WORKERS))
        eventually(lambda: not _left(queue), seconds=90, every_seconds=0.5)


def _left(queue: Queue) -> int:
    return queue.count() + queue.count("ApproximateNumberOfMessagesNotVisible")


def _found(account: LocalAccount, queue: Queue) -> list[Any]:
    shown = json.loads(mendq_here(account, "scan", "--dry-run", "--json").stdout)
    return [
        each
        for each in shown["findings"]
        if (each["queue_arn"], each["symptom"]) == (queue.arn, NAME)
    ]


def test_a_slow_consumer_is_found_within_its_first_minutes_dry_and_deployed(
    hasty: LocalAccount,
) -> None:
    assert "timing.measuringMinutes: 1 instead of at least 60" in hasty.floors_lowered
    dead = new_queue(hasty, MessageRetentionPeriod="1209600")
    policy = Redrive(dead.arn, RECEIVES).text
    tags = {"mendq": "heal", "mendq:max-processing-seconds": f"{WORK_SECONDS}"}
    source = new_queue(hasty, tags=tags, VisibilityTimeout=f"{SECONDS}", RedrivePolicy=policy)
    _worked_too_slowly(hasty, source)
    assert dead.count() > MESSAGES / 2
    eventually(lambda: _found(hasty, source), seconds=90, every_seconds=2)
    (found,) = _found(hasty, source)
    assert "messages were handled twice" in found["because"]
    assert invoked(hasty, "Scan", {})["findings"]
    eventually(lambda: newest_case(hasty, source).get("symptom") == NAME, every_seconds=0.5)
