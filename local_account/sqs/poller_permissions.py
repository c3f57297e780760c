"""What the poller of an SQS event source mapping needs of the function's role.

Under AUTH=true MiniStack polls for a role that may not; AWS does not.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import ministack.app
from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import lambda_svc, sqs

NEEDED = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
Receive = Callable[[str, int], list[dict[str, Any]]]
logger = logging.getLogger("mendq.poller")


def install() -> None:
    """Hook the poller, before anything else does; once per process."""
    if ministack.app.AUTH:
        sqs._receive_messages_for_esm = permitted(sqs._receive_messages_for_esm)


def permitted(receive: Receive) -> Receive:
    """A receive that gives nothing to a role that may not poll the queue."""
    said: set[str] = set()

    def receiving(queue_url: str, most: int) -> list[dict[str, Any]]:
        arn = sqs._queues[queue_url]["attributes"]["QueueArn"]
        missing = [each for role in _roles_polling(arn) for each in missing_actions(role, arn)]
        if not missing:
            return receive(queue_url, most)
        line = f"the mapping of {arn} polls nothing: its function's role lacks {missing[0]}"
        if line not in said:
            said.add(line)
            logger.error(line)
        return []

    return receiving


def missing_actions(role_name: str, queue_arn: str) -> list[str]:
    """The actions that a role lacks on a queue."""
    policies = iam_evaluator._gather_role_policies(role_name, get_account_id())
    return [
        action
        for action in NEEDED
        if iam_evaluator.evaluate(_context(role_name, action, queue_arn), policies).decision
        != "Allow"
    ]


def _context(role_name: str, action: str, queue_arn: str) -> Any:
    account = get_account_id()
    return iam_evaluator.EvalContext(
        principal_arn=f"arn:aws:sts::{account}:assumed-role/{role_name}/poller",
        principal_type="AssumedRole",
        principal_account=account,
        action=action,
        resource_arn=queue_arn,
        region=get_region(),
        secure_transport=True,
    )


def _roles_polling(queue_arn: str) -> list[str]:
    roles = []
    for _, _, mapping in lambda_svc._iter_all_esms():
        if mapping.get("EventSourceArn") == queue_arn and mapping.get("Enabled", True):
            _, config = lambda_svc._get_func_record_for_qualifier(
                mapping["FunctionName"], mapping.get("Qualifier")
            )
            roles.append(_role_name(config or {}))
    return roles


def _role_name(config: Mapping[str, Any]) -> str:
    return str(config.get("Role", "")).rpartition("/")[2]
