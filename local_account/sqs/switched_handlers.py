"""The switch in front of MiniStack's handlers: a call that it fails is recorded like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import sqs

from local_account.sqs.denials import iam_action
from local_account.sqs.error_switch import ErrorSwitch
from local_account.sqs.message_handlers import raised
from local_account.sqs.switched_errors import ACTIONS, KINDS, Moment

Parameters = Mapping[str, Any]
Handler = Callable[[Parameters, str], Any]


def install(switch: ErrorSwitch) -> None:
    """Hook the actions that can be switched to fail, after everything else; once per process."""
    sqs._QUERY_COMPAT_CODES.update({name: kind.query_code for name, kind in KINDS.items()})
    for action in ACTIONS:
        sqs._HANDLERS[action] = _switched(action, sqs._HANDLERS[action], switch)


def _switched(action: str, handler: Handler, switch: ErrorSwitch) -> Handler:
    def handling(data: Parameters, url: str) -> Any:
        if switch.errors and (refusal := switch.refusal(_moment(action, data, url))):
            raise raised(refusal)
        return handler(data, url)

    return handling


def _moment(action: str, data: Parameters, url: str) -> Moment:
    """Raises as the call itself does where the queue is not there or its policy refuses."""
    queue = sqs._get_q(data.get("QueueUrl") or url, iam_action(f"sqs:{action}"))
    waits = data.get("WaitTimeSeconds")
    return Moment(
        action=action,
        queue_arn=queue["attributes"]["QueueArn"],
        is_fifo=queue["is_fifo"],
        attributes=queue["attributes"],
        wait_seconds=None if waits is None else int(waits),
        caller_arn=iam_evaluator.caller_arn(),
    )
