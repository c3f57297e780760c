"""What a caller needs beside the action itself, so that SQS moves messages in the caller's name.

SQS makes those calls on the caller's behalf, which policies may see as aws:CalledViaLast. A task
whose caller loses a permission fails. The keys of encrypted queues are not asked for: KMS is not
emulated.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

import ministack.app
from ministack.core import iam_evaluator
from ministack.core.responses import get_region
from ministack.core.router import extract_access_key_id
from ministack.services import sqs

from local_account.sqs.denials import DENIED, denial

RECEIVING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
SENDING = ("sqs:SendMessage",)
LISTING = ("sqs:GetQueueAttributes",)
_BY_SQS = {"aws:CalledViaLast": "sqs.amazonaws.com", "aws:ViaAWSService": "true"}
_access_key: ContextVar[str] = ContextVar("local_account_sqs_access_key", default="")
_moving: ContextVar[bool] = ContextVar("local_account_sqs_moving", default=False)
Queue = dict[str, Any]


def install() -> None:
    """Hook what judges a queue's policy, after what words its refusals; once per process."""
    sqs._enforce_queue_policy = _judged_already(sqs._enforce_queue_policy)


def note_caller(headers: Mapping[str, str]) -> None:
    """Remember who calls, for as long as the call and what it starts go on."""
    _access_key.set(extract_access_key_id(headers, {}))


def require(actions: Iterable[str], queue_arn: str) -> None:
    """Raise the denial that the caller gets who lacks one of the actions on a queue."""
    for action in actions if ministack.app.AUTH else ():
        found = iam_evaluator.enforce(
            _access_key.get(), action, "sqs", get_region(), queue_arn, dict(_BY_SQS)
        )
        if found is not None:
            raise sqs._Err(DENIED, _words(found, action, queue_arn), 403)


def move_as_caller(move: Callable[[], None]) -> None:
    """Move with every permission having been required; in a copy of the caller's context."""
    _moving.set(True)
    move()


def _words(found: Any, action: str, queue_arn: str) -> str:
    by_resource = getattr(found, "resource_policy_arn", None)
    return denial(
        getattr(found, "principal_arn", None) or iam_evaluator.caller_arn(),
        action,
        queue_arn,
        policy="resource-based" if by_resource else "identity-based",
        explicit=getattr(found, "decision", "") == "Deny",
    )


def _judged_already(enforce: Callable[[Queue, str], None]) -> Callable[[Queue, str], None]:
    def enforcing(queue: Queue, action: str) -> None:
        if not _moving.get():
            enforce(queue, action)

    return enforcing
