"""An outsider's plain script against an account where everybody may do everything."""

from __future__ import annotations

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import eventually, fail_late, new_queue

pytestmark = pytest.mark.account


def test_only_the_queue_that_says_heal_gets_a_longer_visibility() -> None:
    with LocalAccount(environment={"AUTH": "false"}) as account:
        untagged, healed = (
            new_queue(account, fifo=True, tags=tags, VisibilityTimeout="2")
            for tags in ({}, {"mendq": "heal"})
        )
        for queue in (untagged, healed):
            fail_late(queue, times=4)
        eventually(lambda: int(healed.attributes()["VisibilityTimeout"]) > 2)
        assert untagged.attributes()["VisibilityTimeout"] == "2"
