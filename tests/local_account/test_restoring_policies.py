"""Pinned policies in the account: real refused calls, `mendq`, the deployed restore_policy.

Nothing here judges a policy as Access Analyzer does: its answers are told.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from typer.testing import Result

from local_account.demo.mailbox import Mailbox, Message
from local_account.process import LocalAccount
from local_account.where import ACCOUNT
from mendq.model.case import Severity
from tests.local_account.callers import (
    ALL_OF_SQS,
    OTHER_ACCOUNT,
    allow,
    new_role,
    policy,
    session_of,
)
from tests.local_account.mendq_here import mendq_here, newest_case, wait_for_case
from tests.local_account.queues import Queue, error_of, eventually, new_queue

pytestmark = pytest.mark.account
REFUSED_CALLS = 3
OLD_MINUTES = 90
# Longer than Mendq waits for what CloudTrail tells, and short of what needs nobody's word.
SAID_MINUTES = 25


@dataclass
class PinnedQueue:
    """A queue of some time ago, that lets a role of another account send."""

    account: LocalAccount
    queue: Queue
    caller: str
    deployer: str
    good: str

    @classmethod
    def make(cls, account: LocalAccount) -> PinnedQueue:
        """Pinned with `mendq policy pin`; a change by `deployer` may be undone."""
        queue = new_queue(account, tags={"mendq": "propose"})
        accounts = (OTHER_ACCOUNT, ACCOUNT)
        caller, deployer = (
            new_role(account, {"AWS": account_id}, ALL_OF_SQS, of=account_id)
            for account_id in accounts
        )
        # No JSON library writes this spacing, so the test sees whether the exact text is restored.
        text = json.loads(policy(_lets_send(queue, caller)))
        good = json.dumps(text, indent=3, separators=(" ,", " : "))
        queue.set(Policy=good)
        account.put_back(queue.arn, OLD_MINUTES)
        make = cls(account, queue, caller, deployer, good)
        done = make.mendq("policy", "pin", queue.arn, "--automation", deployer, "--yes")
        assert done.exit_code == 0, done.output
        return make

    @property
    def policy(self) -> str:
        return self.queue.attributes("Policy").get("Policy", "")

    def mendq(self, *arguments: str) -> Result:
        return mendq_here(self.account, *arguments, columns=100)

    def send(self) -> None:
        session = session_of(self.account, self.caller, OTHER_ACCOUNT)
        sqs = self.account.client("sqs", **session)
        sqs.send_message(QueueUrl=self.queue.url, MessageBody="hello")

    def overwrite(self) -> str:
        """The policy that stands there after a deployment, of which CloudTrail tells already."""
        text = policy(_lets_send(self.queue, f"arn:aws:iam::{ACCOUNT}:user/{uuid.uuid4().hex}"))
        sqs = self.account.client("sqs", **session_of(self.account, self.deployer))
        sqs.set_queue_attributes(QueueUrl=self.queue.url, Attributes={"Policy": text})
        self.account.put_back(self.queue.arn, SAID_MINUTES, of="last_change")
        return text

    def wait_for_proposal(self) -> str:
        """The case that proposes to undo it, after as many refused calls as heal believes."""
        for _ in range(REFUSED_CALLS):
            code, message = error_of(partial(self.send))
            assert (code, "no resource-based policy" in message) == ("AccessDenied", True)
        return wait_for_case(self.account, self.queue, "proposed")

    def wait_for_notification(self, box: Mailbox, subject: str) -> Message:
        """The one page about this queue that begins so."""
        name = self.queue.url.rpartition("/")[2]

        def mine() -> list[Message]:
            box.receive_new()
            return [
                message
                for message in box.messages
                if message.subject.startswith(subject) and name in message.text
            ]

        eventually(mine)
        (page,) = mine()
        return page


def _lets_send(queue: Queue, who: str) -> dict[str, Any]:
    to_whom = {"Sid": "Senders", "Principal": {"AWS": who}}
    return {**allow("sqs:SendMessage", queue.arn), **to_whom}


def test_approved_case_restores_a_queue_policy_byte_for_byte_and_its_rollback_only_prints(
    account: LocalAccount,
) -> None:
    box = Mailbox.open(account)
    pinned = PinnedQueue.make(account)
    pinned.send()
    emptied = pinned.overwrite()
    case_id = pinned.wait_for_proposal()
    page = pinned.wait_for_notification(box, "Mendq proposed: access denied")
    assert page.severity is Severity.INFO
    assert f"by {pinned.caller}" in page.text
    assert f"{pinned.deployer} overwrote it" in page.text
    assert pinned.policy == emptied, "nothing before a person's word"
    account.have_access_analyzer_answer("PASS")
    assert pinned.mendq("approve", case_id, "--yes").exit_code == 0
    account.have_access_analyzer_answer(None)
    assert pinned.policy == pinned.good
    assert newest_case(account, pinned.queue)["state"] == "applied"
    pinned.send()
    undone = pinned.mendq("rollback", case_id, "--yes").output
    assert "  printed  Policy" in undone
    assert "aws sqs set-queue-attributes" in undone
    assert pinned.policy == pinned.good, "a policy is never rolled back by a write"
