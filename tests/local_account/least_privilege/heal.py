"""heal: failed calls that fix one queue, and propose of another, of which people are told."""

from __future__ import annotations

from tests.local_account.least_privilege.cases import (
    LATE_DELETE,
    VISIBILITY,
    CaseStores,
    hear_of,
    is_filed,
    queue_with_short_timeout,
)
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import LAST_CHANGE, Proof
from tests.local_account.queues import Queue

Scene = tuple[Queue, Queue]


def _two_queues(here: Enforced) -> Scene:
    CaseStores(here).wipe()
    CaseStores(here).spread(VISIBILITY)
    return queue_with_short_timeout(here, "heal"), queue_with_short_timeout(here, "propose")


def _heard(here: Enforced, scene: Scene) -> str:
    announced = []
    for queue in scene:
        answer = hear_of(here, queue.arn, LATE_DELETE)
        again = len(answer.document["batchItemFailures"])
        case = CaseStores(here).newest(queue.arn, VISIBILITY)
        visibility = queue.attributes("VisibilityTimeout")["VisibilityTimeout"]
        state = case.state if case else "no case"
        filed = case is None or is_filed(here, case.case_id, case.state)
        unfiled, heard = ("" if filed else " unfiled"), (" again" if again else "")
        announced.append(f"{state} at {visibility}{unfiled}{heard}")
    return "; ".join(announced)


PROOF = Proof(
    handler="heal",
    prepare=_two_queues,
    comes_of=_heard,
    whole="applied at 72; proposed at 30",
    without={
        "cloudwatch:GetMetricData": "no case at 30 again; no case at 30 again",
        "dynamodb:ConditionCheckItem": "no case at 30 again; proposed at 30",
        "dynamodb:DeleteItem": "no case at 72 again; no case at 30 again",
        "dynamodb:GetItem": "no case at 30 again; no case at 30 again",
        "dynamodb:PutItem": "no case at 72 again; no case at 30 again",
        "dynamodb:UpdateItem": "no case at 30 again; no case at 30 again",
        "kms:Decrypt": "applied at 72; proposed at 30 again",
        "kms:GenerateDataKey": "applied at 72; proposed at 30 again",
        "lambda:GetFunctionConfiguration": "no case at 30 again; no case at 30 again",
        "lambda:ListEventSourceMappings": "no case at 30 again; no case at 30 again",
        "s3:PutObject": "applied at 72 unfiled; proposed at 30 unfiled",
        "sns:Publish": "applied at 72; proposed at 30 again",
        "sqs:GetQueueAttributes": "no case at 30 again; no case at 30 again",
        "sqs:ListQueueTags": "no case at 30 again; no case at 30 again",
        "sqs:ListQueues": "no case at 30 again; no case at 30 again",
        "sqs:SetQueueAttributes": "escalated at 30; proposed at 30",
        "tag:GetResources": "no case at 30 again; no case at 30 again",
    },
    elsewhere={
        "cloudtrail:LookupEvents": LAST_CHANGE,
        "dynamodb:Query": "cases about other queues, where a scan found something",
        "sqs:ListDeadLetterSourceQueues": "what a scan found of a DLQ",
        "sqs:ListMessageMoveTasks": "the same",
    },
)
