"""Statements that SQS refuses in the policy of a queue.

SQS refuses a call that sets such a policy, so a template with it cannot be deployed. A text that
only the deployment determines has a stand-in here (`UNKNOWN_TEXT`), and is never refused.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-overview-of-managing-access.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mendq.model.admission import UNKNOWN_TEXT
from mendq.model.queue_limits import QueueRefusal

POLICY_ATTRIBUTE = "Policy"
_MOST_ACTIONS = 7
_EFFECTS = ("Allow", "Deny")
_REQUIRED_ELEMENTS = ("Effect", "Principal", "Action")
# An action of another service. SQS says "Policy statement action out of service scope".
_OTHER_ACTION_REGEX = re.compile(r"(?!sqs:)[a-z0-9-]+:[a-z*?]+", re.IGNORECASE)
_MOST_SHOWN_CHARACTERS = 60


def find_policy_refusal(document: Any) -> QueueRefusal | None:
    """Return why SQS refuses a policy, by its first statement at fault; None if SQS accepts it.

    Args:
        document: The decoded policy, with UNKNOWN_TEXT in place of values that are not known.
    """
    if not isinstance(document, dict) or any("::" in name for name in document):
        return None
    if "Statement" not in document:
        reason = "SQS refuses the policy: it has no Statement"
        return QueueRefusal(POLICY_ATTRIBUTE, reason, "add the list Statement")
    statements = document["Statement"]
    if isinstance(statements, dict):
        statements = [statements]
    if not isinstance(statements, list):
        return None
    for number, statement in enumerate(statements, 1):
        if not isinstance(statement, dict) or any("::" in name for name in statement):
            continue
        for reason, advice in _list_objections(statement):
            name = _name_statement(statement, number)
            return QueueRefusal(
                POLICY_ATTRIBUTE, f"SQS refuses the policy: {name} {reason}", advice
            )
    return None


def _name_statement(statement: Mapping[str, Any], number: int) -> str:
    sid = statement.get("Sid")
    if isinstance(sid, str) and sid and sid != UNKNOWN_TEXT:
        return f"its statement {sid[:_MOST_SHOWN_CHARACTERS]!r}"
    return f"its statement {number}"


def _list_objections(statement: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each reason why SQS refuses a statement, with what to change."""
    for element in _REQUIRED_ELEMENTS:
        if element not in statement and f"Not{element}" not in statement:
            yield f"has no {element}", f"add {element} to the statement"
    effect = statement.get("Effect", UNKNOWN_TEXT)
    if isinstance(effect, str) and effect not in (*_EFFECTS, UNKNOWN_TEXT):
        shown_effect = effect[:_MOST_SHOWN_CHARACTERS]
        yield f"has the Effect {shown_effect!r}", f"set Effect to {' or '.join(_EFFECTS)}"
    actions = statement.get("Action", [])
    actions = actions if isinstance(actions, list) else [actions]
    for action in actions:
        if isinstance(action, str) and _OTHER_ACTION_REGEX.fullmatch(action):
            shown_action = action[:_MOST_SHOWN_CHARACTERS]
            yield f"has the Action {shown_action!r}, which is not SQS's", "name actions of SQS only"
    if len(actions) > _MOST_ACTIONS:
        yield (
            f"has {len(actions)} actions, and SQS accepts {_MOST_ACTIONS} in a statement",
            f"split the statement, so that each has at most {_MOST_ACTIONS} actions",
        )
