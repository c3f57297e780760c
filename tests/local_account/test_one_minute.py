"""A minute of traffic on a queue made just now is enough, where the account's floor is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from local_account.demo.traffic import run_consumers
from local_account.process import LocalAccount
from tests.local_account.callers import invoke_function
from tests.local_account.mendq_here import newest_case
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.slow_consumers import (
    NAME,
    RECEIVES,
    consume_too_slowly,
    make_source_and_dlq,
    scan_queues,
)

pytestmark = [pytest.mark.account, pytest.mark.long]
MESSAGES = 200
WORKERS = 60
SETTINGS = {"timing": {"measuringMinutes": 1}, "limits": {"massSymptomShare": 1}}


@pytest.fixture(scope="module")
def hasty() -> Iterator[LocalAccount]:
    with LocalAccount(SETTINGS) as running:
        yield running


def test_slow_consumer_is_found_by_dry_run_and_deployed_scan_within_minutes(
    hasty: LocalAccount,
) -> None:
    assert "timing.measuringMinutes: 1 instead of at least 60" in hasty.floors_lowered
    (late, late_dlq), (gives_up, given_up) = (make_source_and_dlq(hasty) for _ in range(2))
    consume_too_slowly(hasty, MESSAGES, WORKERS // 2, late, given_up=(gives_up,))
    assert late_dlq.count() > MESSAGES / 2
    assert given_up.count() == MESSAGES
    told = (
        (late.arn, "messages were handled twice"),
        (gives_up.arn, f"{MESSAGES} messages left without a delete after {RECEIVES}.0 receives"),
    )

    def are_found() -> bool:
        shown = scan_queues(hasty, late, gives_up)
        return all(said in shown.get((arn, NAME), {}).get("because", "") for arn, said in told)

    eventually(are_found, every_seconds=2)
    assert invoke_function(hasty, "Scan", {})["findings"]
    both = (late, gives_up)
    eventually(lambda: {newest_case(hasty, queue).get("symptom") for queue in both} == {NAME})


BLOCKED = "fifo_group_blocked"
STUCK = "stuck"
GROUPS = 5


def _worked_in_groups(queue: Queue) -> Callable[[], None]:
    """Send to five groups and work them off; what the sixth holds always fails."""
    waiting: list[dict[str, Any]] = []

    def consume() -> None:
        waiting.extend(queue.receive_some(MessageSystemAttributeNames=["MessageGroupId"]))
        while waiting:
            message = waiting.pop()
            if message["Attributes"]["MessageGroupId"] != STUCK:
                queue.delete(message["ReceiptHandle"])
        for group in range(GROUPS):
            queue.send(group=f"group-{group}")

    return consume


def test_scan_finds_a_blocked_fifo_group_beside_five_working_groups_within_minutes(
    hasty: LocalAccount,
) -> None:
    blocked, flows = (
        new_queue(hasty, fifo=True, tags={"mendq": "propose"}, VisibilityTimeout="2")
        for _ in range(2)
    )
    blocked.send(group=STUCK)
    with ExitStack() as worked:
        for queue in (blocked, flows):
            worked.enter_context(run_consumers(_worked_in_groups(queue), 1))
        eventually(
            lambda: (blocked.arn, BLOCKED) in scan_queues(hasty, blocked, flows),
            seconds=240,
            every_seconds=3,
        )
        shown = scan_queues(hasty, blocked, flows)
    assert "At least one group is held up" in shown[blocked.arn, BLOCKED]["because"]
    assert shown[blocked.arn, BLOCKED]["would"] == "proposes"
    assert (flows.arn, BLOCKED) not in shown
