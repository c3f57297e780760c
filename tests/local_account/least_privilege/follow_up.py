"""follow_up, a day ahead: one fix looked at, one case told of, one handed to its owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from functions.healing.case import Case, opened
from functions.healing.evidence import Evidence, Sighting
from functions.healing.states import State
from functions.healing.steps import SetVisibilityTimeout
from tests.local_account.least_privilege.cases import LEASE, Ledgers, is_filed, mended
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
    ledgers = Ledgers(here)
    ledgers.wipe()
    _, proposed = mended(here, "propose")
    redriven(here.account, letters=0)
    fixed = [ledgers.put(_fixed(here, lease)) for lease in (OURS, OURS + 1)]
    return (*fixed, ledgers.approved(proposed))


def _fixed(here: Enforced, lease: int) -> Case:
    """Some hours ago, and messages have been deleted since."""
    queue = new_queue(here.account, tags=HEAL, VisibilityTimeout=str(lease))
    here.account.put_back(queue.arn, minutes=240)
    queue.send()
    queue.delete(queue.receive())
    here.account.put_back(queue.arn, minutes=60)
    at = datetime.now(UTC) - timedelta(minutes=200)
    return opened(
        State.APPLIED,
        queue_arn=queue.arn,
        symptom=LEASE,
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
    told = [f"{answer.document[each]} {each}" for each in ("called", "errors")]
    for before in scene:
        case = Ledgers(here).case(before.queue_arn, before.symptom)
        filed = is_filed(here, case.case_id, case.state)
        told.append(f"{case.state}{'' if filed else ' unfiled'}")
    return ", ".join(told)


PROOF = Proof(
    handler="follow_up",
    prepare=_due,
    comes_of=_followed,
    whole="1 called, 0 errors, verified, contested, expired",
    without={
        "cloudwatch:GetMetricData": "1 called, 0 errors, applied_unproven, contested, expired",
        "dynamodb:DeleteItem": "1 called, 3 errors, applied, applied, approved",
        "dynamodb:GetItem": UNREAD,
        "dynamodb:PutItem": "1 called, 3 errors, applied, applied, approved",
        "dynamodb:Query": "LedgerUnavailable",
        "dynamodb:UpdateItem": "0 called, 4 errors, applied, applied, approved",
        "kms:Decrypt": "1 called, 2 errors, verified, contested, expired",
        "kms:GenerateDataKey": "1 called, 2 errors, verified, contested, expired",
        "lambda:InvokeFunction": "0 called, 1 errors, verified, contested, expired",
        "s3:PutObject": "1 called, 4 errors, verified unfiled, contested unfiled, expired unfiled",
        "sns:Publish": "1 called, 2 errors, verified, contested, expired",
        "sqs:GetQueueAttributes": "1 called, 0 errors, verified, verified, expired",
        "sqs:ListQueueTags": "1 called, 0 errors, verified, verified, expired",
    },
    elsewhere={
        "cloudtrail:LookupEvents": LAST_CHANGE,
    },
)
