"""Queues whose policy somebody pins, who overwrites it, and whom that shuts out."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any

from typer.testing import Result

from local_account.demo.mailbox import Mailbox, Message
from local_account.demo.stage import DONE
from local_account.process import LocalAccount
from local_account.where import ACCOUNT
from tests.local_account.callers import ALL_OF_SQS, OTHER_ACCOUNT, policy
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, error_of, eventually, new_queue

REFUSED_CALLS = 3
OLD_MINUTES = 90
COLUMNS = 100
# Longer than Mendq waits for what CloudTrail tells, and short of what needs nobody's word.
SAID_MINUTES = 25


@dataclass
class Role:
    """A role of some account, and SQS as a session of it sees it."""

    arn: str
    sqs: Any


def new_role(account: LocalAccount, *statements: dict[str, Any], of: str = ACCOUNT) -> Role:
    """One that its own account may assume, with these permissions."""
    root, name = {"aws_access_key_id": of}, f"role-{uuid.uuid4().hex[:8]}"
    trust = {"Effect": "Allow", "Principal": {"AWS": of}, "Action": "sts:AssumeRole"}
    iam = account.client("iam", **root)
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(*statements))
    session = account.client("sts", **root).assume_role(RoleArn=arn, RoleSessionName="any")
    given = session["Credentials"]
    keys = {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }
    return Role(arn, account.client("sqs", **keys))


@dataclass
class PinnedQueue:
    """A queue of some time ago, that lets a role of another account send."""

    account: LocalAccount
    queue: Queue
    caller: Role
    deployer: Role
    good: str

    @classmethod
    def made(cls, account: LocalAccount, caller: Role | None = None) -> PinnedQueue:
        """Pinned with `mendq policy pin`; a change by `deployer` may be undone."""
        queue = new_queue(account, tags={"mendq": "propose"})
        caller = caller or new_role(account, ALL_OF_SQS, of=OTHER_ACCOUNT)
        deployer = new_role(account, ALL_OF_SQS)
        # Nobody's JSON library spells it like this: what is put back is the text.
        good = json.dumps(
            json.loads(policy(statement(queue, caller.arn))), indent=3, separators=(" ,", " : ")
        )
        queue.set(Policy=good)
        account.put_back(queue.arn, OLD_MINUTES)
        made = cls(account, queue, caller, deployer, good)
        done = made.mendq("policy", "pin", queue.arn, "--automation", deployer.arn, "--yes")
        assert done.exit_code == DONE, done.output
        return made

    @property
    def policy(self) -> str:
        return self.queue.attributes("Policy").get("Policy", "")

    def mendq(self, *arguments: str) -> Result:
        return mendq_here(self.account, *arguments, columns=COLUMNS)

    def announced(self, *arguments: str) -> Any:
        """The document of `--json`; what is said beside it goes to standard error."""
        return json.loads(self.mendq(*arguments, "--json").stdout)

    def send(self) -> None:
        self.caller.sqs.send_message(QueueUrl=self.queue.url, MessageBody="hello")

    def overwritten_by(self, sqs: Any, announced: bool = True) -> str:
        """The policy that stands there then; `told`: CloudTrail had the time to tell of it."""
        text = policy(statement(self.queue, f"arn:aws:iam::{ACCOUNT}:user/{uuid.uuid4().hex}"))
        sqs.set_queue_attributes(QueueUrl=self.queue.url, Attributes={"Policy": text})
        if announced:
            self.account.put_back(self.queue.arn, SAID_MINUTES, of="last_change")
        return text

    def refuse(self, names: str = "resource-based") -> None:
        """As many calls as heal believes; `names` the kind of policy, as IAM does."""
        for _ in range(REFUSED_CALLS):
            code, message = error_of(partial(self.send))
            assert code == "AccessDenied"
            assert message.endswith(f"because no {names} policy allows the sqs:sendmessage action")

    def case(self) -> dict[str, Any]:
        """The newest; empty where there is none."""
        cases = self.announced("cases")
        return dict(next((each for each in cases if each["queue_arn"] == self.queue.arn), {}))

    def until(self, state: str) -> dict[str, Any]:
        """The case when it has come to that state."""
        found: dict[str, Any] = {}

        def come() -> bool:
            found.update(self.case())
            assert found.get("state", state) == state, found.get("reason")
            return bool(found)

        eventually(come)
        return found

    def notified(self, box: Mailbox, subject: str) -> Message:
        """The one page about this queue that begins so."""

        def mine() -> list[Message]:
            name = self.queue.url.rpartition("/")[2]
            return [e for e in box.messages if e.subject.startswith(subject) and name in e.text]

        eventually(lambda: box.look() or mine())
        (page,) = mine()
        return page


def statement(queue: Queue, who: str) -> dict[str, Any]:
    """That lets them send."""
    return {
        "Sid": "Senders",
        "Effect": "Allow",
        "Principal": {"AWS": who},
        "Action": "sqs:SendMessage",
        "Resource": queue.arn,
    }
