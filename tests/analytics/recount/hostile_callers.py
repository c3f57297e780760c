"""Who calls, and where: Mendq's own roles among them, and callers that look like one."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.analytics.recount.plain_trail import OUR_PARTS

Record = dict[str, Any]
ACCOUNTS = ("111122223333", "444455556666", "999999999999")
REGIONS = ("us-east-1", "eu-west-1", "us-gov-west-1")


@dataclass(frozen=True)
class Place:
    """The account and region of a call, and its queue; None where the record tells none."""

    account: str
    region: str
    queue: str | None

    @property
    def arn(self) -> str:
        partition = "aws-us-gov" if self.region.startswith("us-gov") else "aws"
        return f"arn:{partition}:sqs:{self.region}:{self.account}:{self.queue}"


def make_role(account: str, session: str, name: str, path: str = "") -> Record:
    return {
        "type": "AssumedRole",
        "arn": f"arn:aws:sts::{account}:assumed-role/{name}/{session}",
        "accountId": account,
        "sessionContext": {
            "sessionIssuer": {
                "type": "Role", "arn": f"arn:aws:iam::{account}:role/{path}{name}",
                "accountId": account, "userName": name,
            },
            "attributes": {"creationDate": "2024-02-28T22:13:06Z"},
        },
    }  # fmt: skip


def choose_identity(random: Random, place: Place) -> Any:
    way = random.random()
    if way < 0.6:
        name = f"worker-{random.randrange(14)}"
        return make_role(place.account, f"{random.getrandbits(32):08x}", name)
    if way < 0.7:  # almost a role of Mendq's own
        return make_role(place.account, "heal", f"mendq-heal-{place.region}-2")
    if way < 0.8:
        user = f"arn:aws:iam::{place.account}:user/u{random.randrange(3)}"
        return {"type": "IAMUser", "arn": user, "userName": "u"}
    if way < 0.9:
        return {"type": "AWSService", "invokedBy": "lambda.amazonaws.com"}
    return make_role(random.choice(ACCOUNTS), "mendq", "guest")


def make_own_role(random: Random, place: Place) -> Record:
    """A role of Mendq's own, in the account and region of the call."""
    part = random.choice(OUR_PARTS)
    made = make_role(place.account, f"mendq-{part}", f"mendq-{part}-{place.region}")
    if random.random() < 0.5:  # as AWS's published SQS record spells the issuer
        spelled = made["arn"].rpartition("/")[0]
        made["sessionContext"]["sessionIssuer"]["arn"] = spelled
    return made
