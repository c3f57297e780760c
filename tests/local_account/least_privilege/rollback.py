"""rollback: a fix taken back, and a redrive stopped, which its owner is asked to do."""

from __future__ import annotations

from mendq.model.case import Case
from tests.local_account.least_privilege.cases import a_fixed_case, is_filed
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.queues import Queue
from tests.local_account.redriven import redriven

Scene = tuple[Queue, Case, Case]


def _fixed_and_redriven(here: Enforced) -> Scene:
    return (*a_fixed_case(here), redriven(here.account, messages=0).case)


def _taken_back(here: Enforced, scene: Scene) -> str:
    queue, *cases = scene
    announced = []
    for case in cases:
        asked = {"case_id": case.case_id, "actor": "a test", "dry_run": False}
        answer = here.call("rollback", asked)
        announced.append(answer.error or answer.document["state"])
    visibility = queue.attributes("VisibilityTimeout")["VisibilityTimeout"]
    filed = is_filed(here, cases[0].case_id, "rolled_back")
    return ", ".join(
        [*announced, f"visibility timeout {visibility}", *(["filed"] if filed else [])]
    )


PROOF = Proof(
    handler="rollback",
    prepare=_fixed_and_redriven,
    comes_of=_taken_back,
    whole="rolled_back, rolled_back, visibility timeout 30, filed",
    without={
        "dynamodb:DeleteItem": "unavailable, unavailable, visibility timeout 30",
        "dynamodb:GetItem": "unavailable, unavailable, visibility timeout 72",
        "dynamodb:PutItem": "unavailable, unavailable, visibility timeout 30",
        "dynamodb:Query": "unavailable, unavailable, visibility timeout 72",
        "dynamodb:UpdateItem": "unavailable, unavailable, visibility timeout 72",
        "lambda:InvokeFunction": "rolled_back, unavailable, visibility timeout 30, filed",
        "s3:PutObject": "rolled_back, rolled_back, visibility timeout 30",
        "sqs:GetQueueAttributes": "unavailable, unavailable, visibility timeout 72",
        "sqs:SetQueueAttributes": "aws_refused, rolled_back, visibility timeout 72",
    },
    elsewhere={
        "cloudtrail:LookupEvents": "a page about a case that a person overridden",
        "sns:Publish": "a page about a case that a person overridden",
        "sqs:ListQueueTags": "whether such a case is a drill",
    },
)
