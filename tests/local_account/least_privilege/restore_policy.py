"""restore_policy: a pinned policy that a deployment overwrote is put back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache, partial

from mendq.cases.pins import Pins
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.policy import Pin, digest_of
from tests.local_account.callers import ALL_OF_SQS, OTHER_ACCOUNT, policy
from tests.local_account.least_privilege.cases import CaseStores, hear_of, is_filed, request_about
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.pinned import OLD_MINUTES, PinnedQueue, Role, new_role, statement
from tests.local_account.queues import error_of, new_queue

SYMPTOM = "access_denied"
Scene = tuple[PinnedQueue, Case]


@cache
def _roles(here: Enforced) -> tuple[Role, Role]:
    """Who sends, and who deploys."""
    return new_role(here.account, ALL_OF_SQS, of=OTHER_ACCOUNT), new_role(here.account, ALL_OF_SQS)


def _pinned(here: Enforced) -> PinnedQueue:
    queue = new_queue(here.account, tags={"mendq": "propose"})
    caller, deployer = _roles(here)
    good = policy(statement(queue, caller.arn))
    queue.set(Policy=good)
    here.account.put_back(queue.arn, OLD_MINUTES)
    facts = Facts(queue.arn, queue.attributes(), {})
    assert facts.created_at is not None
    assert facts.modified_at is not None
    pin = Pin(
        queue_arn=queue.arn,
        policy=good,
        digest=digest_of(good),
        generation=1,
        pinned_at=datetime.now(UTC),
        pinned_by="a test",
        queue_created_at=facts.created_at,
        queue_modified_at=facts.modified_at,
        automation=(deployer.arn,),
    )
    assert Pins(here.account.client("dynamodb"), here.outputs["CaseTable"]).put(pin)
    return PinnedQueue(here.account, queue, caller, deployer, good)


def _approved(here: Enforced) -> Scene:
    here.account.have_access_analyzer_answer("PASS")
    pinned, case_stores = _pinned(here), CaseStores(here)
    pinned.overwritten_by(pinned.deployer.sqs)
    code, message = error_of(partial(pinned.send))
    issuer = {"type": "Role", "arn": pinned.caller.arn}
    denied = {
        "eventName": "SendMessage",
        "errorCode": code,
        "errorMessage": message,
        "userIdentity": {
            "type": "AssumedRole",
            "arn": message.split()[1],
            "sessionContext": {"sessionIssuer": issuer},
        },
    }
    hear_of(here, pinned.queue.arn, denied)
    case_stores.spread(SYMPTOM)
    return pinned, case_stores.approved(case_stores.case(pinned.queue.arn, SYMPTOM))


def _restored(here: Enforced, scene: Scene) -> str:
    pinned, case = scene
    answer = here.call("restore_policy", request_about(case))
    announced = [
        answer.error or answer.document["code"] or "done",
        CaseStores(here).case(case.queue_arn, SYMPTOM).state,
        *(["put back"] if json.loads(pinned.policy) == json.loads(pinned.good) else []),
        *(["filed"] if is_filed(here, case.case_id, "applied") else []),
    ]
    return ", ".join(announced)


PROOF = Proof(
    handler="restore_policy",
    prepare=_approved,
    comes_of=_restored,
    whole="done, applied, put back, filed",
    without={
        "access-analyzer:CheckNoNewAccess": "access_not_checked, expired",
        "access-analyzer:CheckNoPublicAccess": "access_not_checked, expired",
        "cloudtrail:LookupEvents": "queue_policy_lacks_grant, expired",
        "dynamodb:ConditionCheckItem": "CaseStoreUnavailable, approved",
        "dynamodb:DeleteItem": "CaseStoreUnavailable, approved, put back",
        "dynamodb:GetItem": "CaseStoreUnavailable, approved",
        "dynamodb:PutItem": "CaseStoreUnavailable, approved, put back",
        "dynamodb:UpdateItem": "CaseStoreUnavailable, approved",
        "s3:PutObject": "done, applied, put back",
        "sqs:GetQueueAttributes": "FactsUnavailable, approved",
        "sqs:ListQueueTags": "FactsUnavailable, approved",
        "sqs:ListQueues": "FactsUnavailable, approved",
        "sqs:SetQueueAttributes": "aws_refused, expired",
        "tag:GetResources": "FactsUnavailable, approved",
    },
    elsewhere={
        "sns:Publish": "a page about a case that ends otherwise",
    },
)
