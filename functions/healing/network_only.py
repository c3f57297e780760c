"""Policies that let in one network alone, and so keep out Mendq's redrive role, which is in none.

A policy can except the role by aws:PrincipalArn.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from functions.healing.callers import granted_by
from functions.healing.own_roles import REDRIVE, role_name
from functions.healing.policies import Statement, statements_of
from functions.healing.policy_grants import fits
from functions.healing.queue_names import partition_of, parts_of

# What moves letters, of the queue that they leave and of the one that they go to.
LEAVING = granted_by(("DeleteMessage", "ReceiveMessage"))
ARRIVING = granted_by(("SendMessage",))
CURE = (
    "except Mendq's redrive role by the further condition "
    '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}'
)
_NETWORK = frozenset({"aws:sourceip", "aws:sourcevpc", "aws:sourcevpce", "aws:vpcsourceip"})
_IF_EXISTS = "ifexists"
_DIFFERS = frozenset({"arnnotequals", "arnnotlike", "stringnotequals", "stringnotlike"})


def keeps_out(policy: str, queue_arn: str, actions: Iterable[str]) -> str | None:
    """Why the redrive role may not do one of `actions` there, though others may; else None.

    Total: a policy that cannot be read may say anything, so it keeps out.
    """
    statements = statements_of(policy)
    if statements is None:
        return "its policy cannot be read"
    wanted = tuple(each.lower() for each in actions)
    denying = next((e for e in statements if _is_for_a_network(e, queue_arn, wanted)), None)
    if denying is None:
        return None
    named = f' ("{denying.sid[:64]}")' if denying.sid else ""
    return f"a statement of its policy{named} denies whoever does not come from one network"


def _is_for_a_network(statement: Statement, queue_arn: str, wanted: tuple[str, ...]) -> bool:
    if statement.allows or not _concerns(statement, queue_arn, wanted):
        return False
    asked = tuple(_asked_in(statement))
    networks = any(key in _NETWORK and _holds_elsewhere(how, what) for how, key, what in asked)
    return networks and not any(_excepts_us(*each, queue_arn) for each in asked)


def _concerns(statement: Statement, queue_arn: str, wanted: tuple[str, ...]) -> bool:
    does_it = "Action" in statement.excepting or any(
        fits(pattern.lower(), each) for pattern in statement.actions for each in wanted
    )
    on_it = "Resource" in statement.excepting or any(
        fits(each, queue_arn) for each in statement.resources
    )
    return does_it and on_it


def _asked_in(statement: Statement) -> Iterable[tuple[str, str, frozenset[str]]]:
    """Operator, key and values, in lower case; of an operator over many, the operator itself."""
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] = statement.conditions
    for operator, asked in conditions.items():
        how = operator.lower().rpartition(":")[2]
        for key, values in asked.items():
            yield how, key.lower(), frozenset(each.lower() for each in values)


def _holds_elsewhere(how: str, what: frozenset[str]) -> bool:
    """Whether a call from no network fulfils it: what is asked to differ does, or to be missing."""
    return "not" in how.removesuffix(_IF_EXISTS) or _IF_EXISTS in how or _missing(how, what)


def _missing(how: str, what: frozenset[str]) -> bool:
    return how == "null" and "true" in what


def _excepts_us(how: str, key: str, what: frozenset[str], queue_arn: str) -> bool:
    """Whether a call of the redrive role does not fulfil it, and so is not denied."""
    queue = parts_of(queue_arn)
    role = f":iam::{queue.account}:role/{role_name(REDRIVE, queue.region)}"
    arn = f"arn:{partition_of(queue.region)}{role}".lower()
    is_about_roles = how.removesuffix(_IF_EXISTS) in _DIFFERS and key == "aws:principalarn"
    return is_about_roles and any(fits(each, arn) for each in what)
