"""The local account enforces roles as synthesized: heal does not without an action of its own.

That every role holds what its function calls and nothing else is proven in tests/infra/test_roles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.mendq_here import case_in
from tests.local_account.queues import fail_late, new_queue

pytestmark = pytest.mark.account
ROLE = "mendq-heal-us-east-1"


@contextmanager
def without_action(account: LocalAccount, action: str) -> Iterator[None]:
    """Heal's role with one action taken out of its policies; put back afterwards."""
    iam, before = account.client("iam"), dict[str, Any]()
    for name in iam.list_role_policies(RoleName=ROLE)["PolicyNames"]:
        before[name] = iam.get_role_policy(RoleName=ROLE, PolicyName=name)["PolicyDocument"]

    def put(name: str, text: str) -> None:
        iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=text)

    for name, document in before.items():
        put(name, json.dumps(document).replace(f'"{action}"', '"sqs:Nothing"'))
    try:
        yield
    finally:
        for name, document in before.items():
            put(name, json.dumps(document))


def test_without_an_action_of_its_role_heal_does_not(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True, tags={"mendq": "heal"}, VisibilityTimeout="2")
    with without_action(account, "sqs:SetQueueAttributes"):
        fail_late(queue, times=4)
        case_in(account, queue, "escalated")
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "2"}
