"""Name principals in sentences, and recognize the ARNs of IAM roles and users."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_MAXIMUM_SHOWN_NAMES = 3
_MAXIMUM_NAME_LENGTH = 96

ROLE_OR_USER_ARN_PATTERN = re.compile(
    r"arn:aws[a-z-]{0,16}:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9+=,.@_/-]{1,180}"
)


def name_first_principals(principals: Collection[str]) -> str:
    """Return the first three names as a part of a sentence, with the number of the others.

    Args:
        principals: ARNs or other names. If it is empty, the text says that CloudTrail does not name
            the caller.
    """
    left_out_count = len(principals) - _MAXIMUM_SHOWN_NAMES
    first_names = [
        _shorten_name(principal) for principal in list(principals)[:_MAXIMUM_SHOWN_NAMES]
    ]
    names_text = ", ".join(first_names) or "a caller that CloudTrail does not name"
    return f"{names_text} and {left_out_count} more" if left_out_count > 0 else names_text


def _shorten_name(principal: str) -> str:
    """Return the name, without its middle if it has more than 96 characters."""
    if len(principal) <= _MAXIMUM_NAME_LENGTH:
        return principal
    kept_end_length = _MAXIMUM_NAME_LENGTH // 2
    kept_start_length = _MAXIMUM_NAME_LENGTH - kept_end_length - 3
    return f"{principal[:kept_start_length]}...{principal[-kept_end_length:]}"


def is_role_arn(principal: str) -> bool:
    """Return True if `principal` is the IAM ARN of a role, not of a role's session."""
    return ROLE_OR_USER_ARN_PATTERN.fullmatch(principal) is not None and ":role/" in principal


def find_first_role_or_user(principals: Iterable[str]) -> str | None:
    """Return the first principal that is the ARN of an IAM role or user; None if there is none."""
    for principal in principals:
        if ROLE_OR_USER_ARN_PATTERN.fullmatch(principal):
            return principal
    return None


def has_role_or_user_outside_account(account: str, principals: Iterable[str]) -> bool:
    """Return True if one of the principals is an IAM role or user of another account."""
    role_and_user_arns = [
        principal for principal in principals if ROLE_OR_USER_ARN_PATTERN.fullmatch(principal)
    ]
    return any(role_or_user_arn.split(":")[4] != account for role_or_user_arn in role_and_user_arns)
