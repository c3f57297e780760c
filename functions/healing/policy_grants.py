"""Whether a queue's policy grants a call; what cannot be said for sure is no grant.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from functions.healing.callers import IDENTITY
from functions.healing.policies import EVERYBODY, Statement, statements_of

# What nearly every policy denies, and no client of AWS's does: a call without TLS.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
_WITHOUT_TLS = {"bool": {"aws:securetransport": ("false",)}}


def grants(policy: str, principal_arn: str, action: str, queue_arn: str) -> bool:
    """Whether the text grants `action` to this role or user, by its own name and unconditionally.

    A grant to everybody or to an account is none of its own, a condition may not hold, and any
    statement that may deny it counts as one that does.
    """
    statements = statements_of(policy)
    if not statements or not IDENTITY.fullmatch(principal_arn):
        return False
    return any(_allows(each, principal_arn, action, queue_arn) for each in statements) and not any(
        _may_deny(each, principal_arn, action, queue_arn) for each in statements
    )


def is_open_to_everybody(policy: str) -> bool:
    """Whether a statement lets anybody in unconditionally; of what is no policy, who knows."""
    statements = statements_of(policy)
    if statements is None:
        return True
    return any(
        each.allows
        and (each.is_for_everybody or "Principal" in each.excepting)
        and not each.conditions
        for each in statements
    )


def _allows(statement: Statement, principal_arn: str, action: str, queue_arn: str) -> bool:
    return (
        statement.allows
        and not statement.conditions
        and not statement.excepting
        and principal_arn in statement.principals.get("AWS", ())
        and any(fits(each.lower(), action.lower()) for each in statement.actions)
        and any(_covers(each, queue_arn) for each in statement.resources)
    )


def _may_deny(statement: Statement, principal_arn: str, action: str, queue_arn: str) -> bool:
    if statement.allows or _lowered(statement) == _WITHOUT_TLS:
        return False
    to_it = "Principal" in statement.excepting or _may_name(statement, principal_arn)
    does_it = "Action" in statement.excepting or any(
        fits(each.lower(), action.lower()) for each in statement.actions
    )
    on_it = "Resource" in statement.excepting or any(
        fits(each, queue_arn) for each in statement.resources
    )
    return to_it and does_it and on_it


def _may_name(statement: Statement, principal_arn: str) -> bool:
    """Itself, its account, a session of it, or what a name that IAM no longer knows stands for."""
    return bool(statement.principals) and not all(
        IDENTITY.fullmatch(each) and each != principal_arn
        for named in statement.principals.values()
        for each in named
    )


def _lowered(statement: Statement) -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        operator.lower(): {
            key.lower(): tuple(each.lower() for each in values) for key, values in asked.items()
        }
        for operator, asked in statement.conditions.items()
    }


def _covers(pattern: str, queue_arn: str) -> bool:
    """Part by part: no wildcard of ours reaches over a colon."""
    if pattern == EVERYBODY:
        return True
    parts, wanted = pattern.split(":"), queue_arn.split(":")
    return len(parts) == len(wanted) and all(map(fits, parts, wanted))


def fits(pattern: str, text: str) -> bool:
    """IAM's `*` and `?`; a bracket is itself."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))
