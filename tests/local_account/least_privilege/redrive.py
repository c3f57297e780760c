"""redrive: messages go back in, and one that was sent back before is kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mendq.redrive.messages import REDRIVE_COUNT
from tests.local_account.least_privilege.cases import is_filed
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import LAST_CHANGE, Proof
from tests.local_account.redriven import Redriven, redriven

# So many sent back, so many kept apart.
MOVED, NONE = "5+1", "0+0"
REFUSED = f"halted {NONE} escalated; moved_on; moved_on; filed"
STILL = f"canary {NONE}; halted {NONE}; halted {NONE} escalated; filed"
IN_FLIGHT_HERE = f"soak {MOVED}; halted {MOVED}; halted {MOVED} escalated; 2 in hand; filed"


def _messages(here: Enforced) -> Redriven:
    found = redriven(here.account, messages=7)
    found.pipe.die(
        "poison", MessageAttributes={REDRIVE_COUNT: {"DataType": "Number", "StringValue": "1"}}
    )
    return found


def _ticked(here: Enforced, found: Redriven) -> str:
    """A tick; taken back; the tick after it, which ends the case."""
    announced = []
    for more in ({}, {"cancel": True}, {}):
        answer = here.call("redrive", {**found.request, **more})
        announced.append(answer.error or _said(answer.document))
    filed = is_filed(here, found.case.case_id, "escalated")
    held = found.pipe.dead.count("ApproximateNumberOfMessagesNotVisible")
    return "; ".join(
        [*announced, *([f"{held} in hand"] if held else []), *(["filed"] if filed else [])]
    )


def _said(document: Mapping[str, Any]) -> str:
    if "stage" not in document:
        return str(document["code"])
    moved, retained = document["moved"], document["quarantined"]
    state = f" {document['state']}" if document["state"] else ""
    return f"{document['stage']} {moved}+{retained}{state}"


PROOF = Proof(
    handler="redrive",
    prepare=_messages,
    comes_of=_ticked,
    whole=f"soak {MOVED}; halted {MOVED}; halted {MOVED} escalated; filed",
    without={
        "cloudwatch:GetMetricData": "canary 0+1; halted 0+1; halted 0+1 escalated; filed",
        **dict.fromkeys(
            ("dynamodb:DeleteItem", "dynamodb:PutItem"),
            f"soak {MOVED}; halted {MOVED}; CaseStoreUnavailable",
        ),
        **dict.fromkeys(
            ("dynamodb:GetItem", "dynamodb:UpdateItem"),
            "CaseStoreUnavailable; CaseStoreUnavailable; CaseStoreUnavailable",
        ),
        "dynamodb:Query": f"CaseStoreUnavailable; halted {NONE}; CaseStoreUnavailable",
        **dict.fromkeys(
            ("kms:Decrypt", "kms:GenerateDataKey", "sns:Publish"),
            f"soak {MOVED}; halted {MOVED}; NotificationNotSent; filed",
        ),
        "s3:PutObject": f"soak {MOVED}; halted {MOVED}; halted {MOVED} escalated",
        "sqs:CreateQueue": REFUSED,
        "sqs:SendMessage": REFUSED,
        "sqs:ReceiveMessage": STILL,
        "sqs:DeleteMessage": STILL,
        "sqs:ChangeMessageVisibility": IN_FLIGHT_HERE,
        "sqs:GetQueueAttributes": STILL,
        "sqs:ListDeadLetterSourceQueues": STILL,
        "sqs:ListMessageMoveTasks": STILL,
        "sqs:ListQueueTags": STILL,
    },
    elsewhere={
        "cloudtrail:LookupEvents": LAST_CHANGE,
        **dict.fromkeys(
            (
                "dynamodb:ConditionCheckItem",
                "lambda:GetFunctionConfiguration",
                "lambda:ListEventSourceMappings",
                "sqs:ListQueues",
                "sqs:SetQueueAttributes",
                "tag:GetResources",
            ),
            "taking the case up, before the first message goes",
        ),
    },
)
