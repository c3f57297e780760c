"""attach_dlq: an approved queue gets one, made and attached."""

from __future__ import annotations

from mendq.model.case import Case
from tests.local_account.least_privilege.cases import CaseStores, is_filed, request_about
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.queues import Queue, new_queue

SYMPTOM = "dlq_missing"
PUT_BACK_MINUTES = 66
Scene = tuple[Queue, Case]


def coming_back(here: Enforced) -> Queue:
    """A queue without one whose message comes back again and again."""
    queue = new_queue(here.account, tags={"mendq": "propose"}, VisibilityTimeout="1")
    for _ in range(2):  # the first whole minute is an empty queue's
        here.account.put_back(queue.arn, minutes=1)
    queue.send()
    for _ in range(8):
        queue.change(queue.receive(), 0)
    here.account.put_back(queue.arn, minutes=PUT_BACK_MINUTES)
    return queue


def _approved(here: Enforced) -> Scene:
    queue, case_stores = coming_back(here), CaseStores(here)
    here.call("heal", {"found": [{"queue_arn": queue.arn, "symptom": SYMPTOM}]})
    case_stores.spread(SYMPTOM)
    return queue, case_stores.approved(case_stores.case(queue.arn, SYMPTOM))


def _attached(here: Enforced, scene: Scene) -> str:
    queue, case = scene
    answer = here.call("attach_dlq", request_about(case))
    now = CaseStores(here).case(queue.arn, SYMPTOM)
    made = queue.sqs.list_queues(QueueNamePrefix=f"{queue.arn.rpartition(':')[2]}-dlq")
    announced = [
        answer.error or answer.document["code"] or "done",
        now.state,
        *(["made"] if made.get("QueueUrls") else []),
        *(["attached"] if "RedrivePolicy" in queue.attributes() else []),
        *(["filed"] if is_filed(here, case.case_id, "applied") else []),
    ]
    return ", ".join(announced)


PROOF = Proof(
    handler="attach_dlq",
    prepare=_approved,
    comes_of=_attached,
    whole="done, applied, made, attached, filed",
    without={
        "cloudwatch:GetMetricData": "FactsUnavailable, approved",
        "dynamodb:ConditionCheckItem": "CaseStoreUnavailable, approved",
        "dynamodb:DeleteItem": "CaseStoreUnavailable, approved, made, attached",
        "dynamodb:GetItem": "CaseStoreUnavailable, approved",
        "dynamodb:PutItem": "CaseStoreUnavailable, approved, made, attached",
        "dynamodb:Query": "CaseStoreUnavailable, approved",
        "dynamodb:UpdateItem": "CaseStoreUnavailable, approved",
        "lambda:ListEventSourceMappings": "FactsUnavailable, approved",
        "s3:PutObject": "done, applied, made, attached",
        "sqs:CreateQueue": "aws_refused, expired",
        "sqs:GetQueueAttributes": "FactsUnavailable, approved",
        "sqs:ListDeadLetterSourceQueues": "FactsUnavailable, approved",
        "sqs:ListMessageMoveTasks": "FactsUnavailable, approved",
        "sqs:ListQueueTags": "FactsUnavailable, approved",
        "sqs:ListQueues": "FactsUnavailable, approved",
        "sqs:SetQueueAttributes": "aws_refused, expired, made",
        "tag:GetResources": "FactsUnavailable, approved",
    },
    elsewhere={
        "cloudtrail:LookupEvents": "a page about a case that ends otherwise",
        "lambda:GetFunctionConfiguration": "a queue that a Lambda reads",
        "sns:Publish": "a page about a case that ends otherwise",
    },
)
