"""Which policy refused a call, from what IAM's message ends with; its middle is the caller's text.

https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

import re
from enum import StrEnum

from functions.healing.error_messages import may_be_cut

# No part that a caller fills in may hold a space, so no caller's sentence is taken for IAM's. Newer
# messages end with the policy's ARN:
# https://aws.amazon.com/blogs/security/enhanced-access-denied-error-messages-with-policy-arns/
_REFUSAL = re.compile(
    r"User: (?P<caller>\S{1,512}) is not authorized to perform: \S{1,100}"
    r"(?: on resource: \S{1,256})?"
    r"(?: because no (?P<silent>[A-Za-z -]{1,60}) allows the \S{1,100} action"
    r"| with an explicit deny in (?:an?|the) (?P<denies>[A-Za-z -]{1,100}))"
    r"(?:: arn:\S{1,400}|\.)?"
)
_THROUGH = " transitively through a "
_DENIED = "AccessDenied"


class RefusedBy(StrEnum):
    """The policies that IAM names, and whether they deny or only do not allow where that matters.

    An organization's, a boundary, a session's and an endpoint's policy bound what others grant.
    """

    RESOURCE_POLICY_DENIES = "an explicit deny in the queue's policy"
    NO_RESOURCE_POLICY = "no statement in the queue's policy"
    IDENTITY_POLICY_DENIES = "an explicit deny in the caller's identity policy"
    IDENTITY_POLICY = "the caller's identity policy"
    ABOVE_THE_ACCOUNT = "a service or resource control policy"
    PERMISSIONS_BOUNDARY = "a permissions boundary"
    SESSION_POLICY = "a session policy"
    VPC_ENDPOINT_POLICY = "a VPC endpoint policy"
    NOT_SAID = "IAM does not say which"


_BOUNDING = {
    "service control policy": RefusedBy.ABOVE_THE_ACCOUNT,
    "resource control policy": RefusedBy.ABOVE_THE_ACCOUNT,
    "permissions boundary": RefusedBy.PERMISSIONS_BOUNDARY,
    "session policy": RefusedBy.SESSION_POLICY,
    # So spelled in AWS's own example.
    "sessions policy": RefusedBy.SESSION_POLICY,
    "VPC endpoint policy": RefusedBy.VPC_ENDPOINT_POLICY,
}
_DENIES = {
    **_BOUNDING,
    "resource-based policy": RefusedBy.RESOURCE_POLICY_DENIES,
    "identity-based policy": RefusedBy.IDENTITY_POLICY_DENIES,
}
_ALLOWS_NOT = {
    **_BOUNDING,
    "resource-based policy": RefusedBy.NO_RESOURCE_POLICY,
    "identity-based policy": RefusedBy.IDENTITY_POLICY,
}


def refused_by(error_code: str, error_message: str) -> RefusedBy | None:
    """The policy behind an access denial (canonical code); None where the call is none."""
    if error_code == "VpceAccessDenied":
        return RefusedBy.VPC_ENDPOINT_POLICY
    if error_code != _DENIED:
        return None
    found = _refusal(error_message)
    if found is None:
        return RefusedBy.NOT_SAID
    if found["silent"]:
        return _ALLOWS_NOT.get(found["silent"], RefusedBy.NOT_SAID)
    _, _, last = found["denies"].rpartition(_THROUGH)
    return _DENIES.get(last, RefusedBy.NOT_SAID)


def caller_in(error_code: str, error_message: str) -> str:
    """The ARN of the caller whom IAM's refusal begins with; empty where it is no such refusal."""
    found = _refusal(error_message) if error_code == _DENIED else None
    return found["caller"] if found else ""


def _refusal(error_message: str) -> re.Match[str] | None:
    return None if may_be_cut(error_message) else _REFUSAL.fullmatch(error_message)
