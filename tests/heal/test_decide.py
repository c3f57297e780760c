from __future__ import annotations

import pytest

from tests.heal.conftest import Account

OF_A_STACK = {
    "aws:cloudformation:stack-name": "shop",
    "aws:cloudformation:logical-id": "Orders",
}


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_a_case_says_which_stack_deploys_its_queue(account: Account, tag: str) -> None:
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    url = account.clients.sqs.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
    account.clients.sqs.tag_queue(QueueUrl=url, Tags=OF_A_STACK)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (case,) = account.transitions()
    assert (case["evidence"]["stack"], case["evidence"]["resource"]) == ("shop", "Orders")
    assert case["evidence"]["failed_calls"] == 3


def test_a_case_of_a_queue_without_a_stack_names_none(account: Account) -> None:
    account.heal(account.late_deletes(account.queue(VisibilityTimeout="30"), "1", "2", "3"))
    (case,) = account.transitions()
    assert not {"stack", "resource"} & set(case["evidence"])
