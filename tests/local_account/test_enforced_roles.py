"""The local account enforces the heal Lambda's role as synthesized.

tests/infra/test_roles proves that every role allows exactly the actions that its function calls.
"""

from __future__ import annotations

import pytest

from local_account.process import LocalAccount
from tests.local_account.heal_role import remove_action_from_heal_role
from tests.local_account.mendq_here import wait_for_case
from tests.local_account.queues import fail_late, new_queue

pytestmark = pytest.mark.account


def test_heal_without_set_queue_attributes_right_escalates_and_changes_no_queue(
    account: LocalAccount,
) -> None:
    queue = new_queue(account, fifo=True, tags={"mendq": "heal"}, VisibilityTimeout="2")
    with remove_action_from_heal_role(account, "sqs:SetQueueAttributes"):
        fail_late(queue, times=4)
        wait_for_case(account, queue, "escalated")
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "2"}
