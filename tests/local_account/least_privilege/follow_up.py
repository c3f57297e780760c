"""follow_up, a day ahead: one fix looked at, one case told of, one handed to its owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.steps import SetVisibilityTimeout
from tests.local_account.least_privilege.cases import VISIBILITY, CaseStores, a_fixed_case, is_filed
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import LAST_CHANGE, Proof
from tests.local_account.queues import new_queue
from tests.local_account.redriven import HEAL, redriven

Scene = tuple[Case, ...]
AHEAD = timedelta(hours=25)
OURS = 72
UNREAD = "0 called, 4 errors" + ", applied unfiled" * 2 + ", approved unfiled"


def _due(here: Enforced) -> Scene:
    """A fix that helps, one that a person overruled, an old approval; a redrive that goes on."""
    case_stores = CaseStores(here)
    case_stores.wipe()
    _, proposed = a_fixed_case(here, "propose")
    redriven(here.account, messages=0)
    fixed = [case_stores.put(_fixed(here, visibility)) for visibility in (OURS, OURS + 1)]
    return (*fixed, case_stores.approved(proposed))


def _fixed(here: Enforced, visibility: int) -> Case:
    """Some hours ago, and messages have been deleted since."""
    queue = new_queue(here.account, tags=HEAL, VisibilityTimeout=str(visibility))
    here.account.put_back(queue.arn, minutes=240)
    queue.send()
    queue.delete(queue.receive())
    here.account.put_back(queue.arn, minutes=60)
    at = datetime.now(UTC) - timedelta(minutes=200)
    return opened(
        State.APPLIED,
        queue_arn=queue.arn,
        symptom=VISIBILITY,
        reason="any",
        evidence=Evidence((Sighting.of_measurement(at),)),
        steps=(SetVisibilityTimeout(30, OURS),),
        now=at,
        actor="heal",
    )


def _followed(here: Enforced, scene: Scene) -> str:
    answer = here.call("follow_up", {"time": (datetime.now(UTC) + AHEAD).isoformat()})
    if answer.error:
        return answer.error
    announced = [f"{answer.document[each]} {each}" for each in ("called", "errors")]
    for before in scene:
        case = CaseStores(here).case(before.queue_arn, before.symptom)
        filed = is_filed(here, case.case_id, case.state)
        announced.append(f"{case.state}{'' if filed else ' unfiled'}")
    return ", ".join(announced)


PROOF = Proof(
    handler="follow_up",
    prepare=_due,
    comes_of=_followed,
    whole="1 called, 0 errors, verified, overridden, expired",
    without={
        "cloudwatch:GetMetricData": "1 called, 0 errors, unverified, overridden, expired",
        "dynamodb:DeleteItem": "1 called, 3 errors, applied, applied, approved",
        "dynamodb:GetItem": UNREAD,
        "dynamodb:PutItem": "1 called, 3 errors, applied, applied, approved",
        "dynamodb:Query": "CaseStoreUnavailable",
        "dynamodb:UpdateItem": "0 called, 4 errors, applied, applied, approved",
        "kms:Decrypt": "1 called, 2 errors, verified, overridden, expired",
        "kms:GenerateDataKey": "1 called, 2 errors, verified, overridden, expired",
        "lambda:InvokeFunction": "0 called, 1 errors, verified, overridden, expired",
        "s3:PutObject": "1 called, 4 errors, verified unfiled, overridden unfiled, expired unfiled",
        "sns:Publish": "1 called, 2 errors, verified, overridden, expired",
        "sqs:GetQueueAttributes": "1 called, 0 errors, verified, verified, expired",
        "sqs:ListQueueTags": "1 called, 0 errors, verified, verified, expired",
    },
    elsewhere={
        "cloudtrail:LookupEvents": LAST_CHANGE,
    },
)
