"""An outsider's plain script against the account: late deletes on three FIFO queues."""

from __future__ import annotations

import time
from functools import partial

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, eventually, fail_late, new_queue

pytestmark = pytest.mark.account
LEASE_SECONDS = 2
HEALED_WITHIN_SECONDS = 30


def _configuration(queue: Queue) -> dict[str, str]:
    return {
        name: value
        for name, value in queue.attributes().items()
        if not name.startswith("Approximate")
    }


def _has_looked_at(account: LocalAccount, queue: Queue) -> bool:
    logs = account.client("logs")
    return any(
        queue.arn in event["message"]
        for group in logs.describe_log_groups()["logGroups"]
        for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
    )


@pytest.mark.parametrize("auth", ["true", "false"])
def test_only_the_queue_that_says_heal_gets_a_longer_visibility(auth: str) -> None:
    with LocalAccount(environment={"AUTH": auth}) as account:
        observed, untagged, healed = (
            new_queue(account, fifo=True, tags=tags, VisibilityTimeout=str(LEASE_SECONDS))
            for tags in ({"mendq": "observe"}, {}, {"mendq": "heal"})
        )
        before = [_configuration(each) for each in (observed, untagged)]
        for queue in (observed, untagged, healed):
            fail_late(queue, times=4)
        failed_at = time.monotonic()
        eventually(
            lambda: int(healed.attributes()["VisibilityTimeout"]) > LEASE_SECONDS,
            HEALED_WITHIN_SECONDS,
        )
        assert time.monotonic() - failed_at < HEALED_WITHIN_SECONDS
        # The Lambda has looked at the others as well: they came before the one it fixed.
        for each in (observed, untagged):
            eventually(partial(_has_looked_at, account, each))
        assert [_configuration(each) for each in (observed, untagged)] == before
