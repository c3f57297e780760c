"""Queues whose consumers take longer than the visibility timeout, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from local_account.demo.stage import NO_RETRIES_CONFIGURATION
from local_account.demo.traffic import Caller, make_bodies, run_consumers, send_bodies
from local_account.process import LocalAccount
from mendq.model.queue import RedrivePolicy
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, eventually, new_queue

TIMEOUT_SECONDS = 2
WORK_SECONDS = 3
RECEIVES = 3
TAGS = {"mendq": "heal", "mendq:max-processing-seconds": f"{WORK_SECONDS}"}
NAME = "visibility_timeout_too_short"


def make_source_and_dlq(
    account: LocalAccount, dlq_tags: Mapping[str, str] | None = None
) -> tuple[Queue, Queue]:
    """A source whose timeout is shorter than the work, and where its messages die."""
    dead = new_queue(account, tags=dlq_tags, MessageRetentionPeriod="1209600")
    policy = RedrivePolicy(dead.arn, RECEIVES).text
    timeout = f"{TIMEOUT_SECONDS}"
    source = new_queue(account, tags=TAGS, VisibilityTimeout=timeout, RedrivePolicy=policy)
    return source, dead


def consume_too_slowly(
    account: LocalAccount,
    messages: int,
    workers: int,
    *late: Queue,
    given_up: tuple[Queue, ...] = (),
) -> None:
    """Work until nothing is left: delete too late, or give up each time."""
    with ExitStack() as consumed:
        for queue in (*late, *given_up):
            caller = Caller(
                account.client("sqs", config=NO_RETRIES_CONFIGURATION), queue.url, lambda _: None
            )
            send_bodies(caller, make_bodies(messages))
            consume = _consumer(caller, deletes=queue in late)
            consumed.enter_context(run_consumers(consume, workers))
        left = (*late, *given_up)
        eventually(lambda: not any(map(_count_messages, left)), every_seconds=0.5)


def _consumer(caller: Caller, *, deletes: bool) -> Callable[[], None]:
    """Work for too long, and give up, or delete what others hold by then: SQS answers 200."""

    def consume() -> None:
        messages = caller.receive(MaxNumberOfMessages=10)
        caller.stop_requested.wait(WORK_SECONDS if messages else 0)
        for message in messages if deletes else ():
            caller.delete(message)

    return consume


def _count_messages(queue: Queue) -> int:
    return queue.count() + queue.count("ApproximateNumberOfMessagesNotVisible")


def scan_queues(account: LocalAccount, *queues: Queue) -> dict[tuple[str, str], Any]:
    """What `mendq scan --dry-run` finds of these queues, by queue and symptom."""
    shown = json.loads(mendq_here(account, "scan", "--dry-run", "--json").stdout)
    arns = {queue.arn for queue in queues}
    return {
        (finding["queue_arn"], finding["symptom"]): finding
        for finding in shown["findings"]
        if finding["queue_arn"] in arns
    }
