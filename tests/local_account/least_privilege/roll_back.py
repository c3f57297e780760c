"""roll_back: a fix taken back, and a redrive stopped, which its owner is asked to do."""

from __future__ import annotations

from functions.healing.case import Case
from tests.local_account.least_privilege.cases import is_filed, mended
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.queues import Queue
from tests.local_account.redriven import redriven

Scene = tuple[Queue, Case, Case]


def _fixed_and_redriven(here: Enforced) -> Scene:
    return (*mended(here), redriven(here.account, letters=0).case)


def _taken_back(here: Enforced, scene: Scene) -> str:
    queue, *cases = scene
    told = []
    for case in cases:
        asked = {"case_id": case.case_id, "actor": "a test", "dry_run": False}
        answer = here.call("roll_back", asked)
        told.append(answer.error or answer.document["state"])
    lease = queue.attributes("VisibilityTimeout")["VisibilityTimeout"]
    filed = is_filed(here, cases[0].case_id, "rolled_back")
    return ", ".join([*told, f"lease {lease}", *(["filed"] if filed else [])])


PROOF = Proof(
    handler="roll_back",
    prepare=_fixed_and_redriven,
    comes_of=_taken_back,
    whole="rolled_back, rolled_back, lease 30, filed",
    without={
        "dynamodb:DeleteItem": "unavailable, unavailable, lease 30",
        "dynamodb:GetItem": "unavailable, unavailable, lease 72",
        "dynamodb:PutItem": "unavailable, unavailable, lease 30",
        "dynamodb:Query": "unavailable, unavailable, lease 72",
        "dynamodb:UpdateItem": "unavailable, unavailable, lease 72",
        "lambda:InvokeFunction": "rolled_back, unavailable, lease 30, filed",
        "s3:PutObject": "rolled_back, rolled_back, lease 30",
        "sqs:GetQueueAttributes": "unavailable, unavailable, lease 72",
        "sqs:SetQueueAttributes": "aws_refused, rolled_back, lease 72",
    },
    elsewhere={
        "cloudtrail:LookupEvents": "a page about a case that a person contested",
        "sns:Publish": "a page about a case that a person contested",
        "sqs:ListQueueTags": "whether such a case is a drill",
    },
)
