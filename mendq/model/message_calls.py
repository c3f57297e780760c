"""The SQS calls that work with messages, and the IAM action that allows each."""

from __future__ import annotations

from collections.abc import Iterable

# The calls that send, receive, delete or hide messages, and the IAM action that allows each. A
# batch needs the permission of the single call.
_ACTION_BY_EVENT_NAME = {
    "ReceiveMessage": "ReceiveMessage",
    "ChangeMessageVisibility": "ChangeMessageVisibility",
    "DeleteMessage": "DeleteMessage",
    "SendMessage": "SendMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "DeleteMessageBatch": "DeleteMessage",
    "SendMessageBatch": "SendMessage",
}

MESSAGE_CALLS = frozenset(_ACTION_BY_EVENT_NAME)
SEND_MESSAGE_ACTION = "sqs:SendMessage"
RECEIVE_MESSAGE_ACTION = "sqs:ReceiveMessage"


def list_actions_allowing(event_names: Iterable[str]) -> tuple[str, ...]:
    """Return the IAM actions that allow these calls, sorted.

    Calls that are not in MESSAGE_CALLS are left out.
    """
    actions = {_ACTION_BY_EVENT_NAME[name] for name in event_names if name in _ACTION_BY_EVENT_NAME}
    return tuple(sorted(f"sqs:{action}" for action in actions))


# The IAM actions that moving messages needs, on the DLQ and on its source.
MESSAGE_ACTIONS = list_actions_allowing(MESSAGE_CALLS)
