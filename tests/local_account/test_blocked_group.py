"""One poisoned message and nine good ones of its group, from the finding to their way back.

SQS gives a batch one fate, so all ten die. Nothing is changed before a person agreed, in heal mode
too, and one command sends the nine back in order and leaves the poisoned one in the DLQ.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local_account.demo.traffic import run_consumers
from local_account.process import LocalAccount
from mendq.model.queue import arn_of_dlq
from tests.local_account.callers import invoke_function
from tests.local_account.mendq_here import mendq_here, newest_case
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.slow_consumers import scan_queues

pytestmark = [pytest.mark.account, pytest.mark.long, pytest.mark.timeout(1_800)]
BLOCKED = "fifo_group_blocked"
# Settings that allow Mendq the most without approval.
SETTINGS = {
    "timing": {"measuringMinutes": 1},
    "limits": {"massSymptomShare": 1},
    "autonomy": {"fifo_group_blocked": "heal", "dlq_missing": "heal"},
}
POISON = "poison"
GOOD = [f"good {number}" for number in range(1, 10)]


@pytest.fixture(scope="module")
def eager() -> Iterator[LocalAccount]:
    with LocalAccount(SETTINGS) as running:
        yield running


def working_in_order(queue: Queue, done: list[str]) -> Callable[[], None]:
    """A consumer that receives ten at once, and stops at the first message that fails."""

    def consume() -> None:
        for message in queue.receive_some(WaitTimeSeconds=1):
            if message["Body"] == POISON:
                return
            done.append(message["Body"])
            queue.delete(message["ReceiptHandle"])

    return consume


def bodies(queue: Queue) -> list[str]:
    """All that can be seen, of which each is visible again at once."""
    messages = queue.receive_some(VisibilityTimeout=60)
    for message in messages:
        queue.change(message["ReceiptHandle"], 0)
    return [message["Body"] for message in messages]


def mendq_json(account: LocalAccount, *arguments: str) -> Any:
    result = mendq_here(account, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_blocked_fifo_group_gets_a_dlq_once_approved_and_leave_first_returns_only_the_nine_good(
    eager: LocalAccount,
) -> None:
    queue = new_queue(eager, fifo=True, tags={"mendq": "heal"}, VisibilityTimeout="2")
    for body in (POISON, *GOOD):
        queue.send(body, group="customer-7")
    done = list[str]()

    def is_found() -> bool:
        return (queue.arn, BLOCKED) in scan_queues(eager, queue)

    def is_proposed() -> bool:
        case = newest_case(eager, queue)
        return (case.get("symptom"), case.get("state")) == (BLOCKED, "proposed")

    with run_consumers(working_in_order(queue, done), 1):
        eventually(is_found, seconds=900, every_seconds=5)
        invoke_function(eager, "Scan", {})
        eventually(is_proposed, every_seconds=1)
        case = newest_case(eager, queue)
        assert "Up to 9 good messages would move to the DLQ with the failing one" in case["reason"]
        assert "RedrivePolicy" not in queue.attributes(), "nobody has agreed yet"
        mendq_json(eager, "approve", case["case_id"], "--yes")
        name = arn_of_dlq(queue.arn).rpartition(":")[2]
        sqs = eager.client("sqs")
        eventually(lambda: "RedrivePolicy" in queue.attributes(), every_seconds=0.5)
        dlq = Queue(sqs, sqs.get_queue_url(QueueName=name)["QueueUrl"], is_fifo=True)
        eventually(lambda: dlq.count() == 10, every_seconds=0.5)
        assert done == [], "none of the good ones was handled"

        (command,) = (part for part in case["reason"].split("`") if "--leave-first" in part)
        words = shlex.split(command)[1:]
        assert mendq_json(eager, *words, "--dry-run")["matched"] == 9
        assert (dlq.count(), done) == (10, []), "a dry run moves nothing"
        assert mendq_json(eager, *words, "--yes")["moved"] == 9
        eventually(lambda: len(done) == 9, every_seconds=0.5)
    assert done == GOOD
    assert bodies(dlq) == [POISON]
    assert mendq_json(eager, *words, "--yes")["moved"] == 0
    assert bodies(dlq) == [POISON]
