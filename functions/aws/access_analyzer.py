"""What AWS itself makes of a policy, by reasoning over everything that it may allow.

https://docs.aws.amazon.com/IAM/latest/UserGuide/access-analyzer-custom-policy-checks.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import is_passing
from functions.healing.plan import Refusal
from functions.healing.states import State

PASSED = "PASS"
_MOST_REASONS = 3


def refusal_to_write(clients: Clients, policy: str, approved: str) -> Refusal | None:
    """None where the policy lets nobody in from outside and adds no access to the approved one.

    Fails closed: whatever is not a PASS refuses, for now where AWS may answer another time.
    """
    analyzer = clients.access_analyzer
    checks: dict[str, Callable[[], Mapping[str, Any]]] = {
        "CheckNoPublicAccess": lambda: analyzer.check_no_public_access(
            policyDocument=policy, resourceType="AWS::SQS::Queue"
        ),
        "CheckNoNewAccess": lambda: analyzer.check_no_new_access(
            newPolicyDocument=policy,
            existingPolicyDocument=approved,
            policyType="RESOURCE_POLICY",
        ),
    }
    for name, check in checks.items():
        try:
            answer = check()
        except (ClientError, BotoCoreError) as error:
            return _unanswered(name, error)
        if answer.get("result") != PASSED:
            return _failed(name, answer)
    return None


def _unanswered(check: str, error: ClientError | BotoCoreError) -> Refusal:
    reason = f"Access Analyzer's {check} of the pinned policy did not answer: {error}"
    if is_passing(error):
        return Refusal("access_not_checked", reason, becomes=None, again=True)
    return Refusal("access_not_checked", reason, becomes=State.ESCALATED)


def _failed(check: str, answer: Mapping[str, Any]) -> Refusal:
    listed = answer.get("reasons")
    given = listed[:_MOST_REASONS] if isinstance(listed, list) else []
    reasons = [str(each.get("description", "")) for each in given if isinstance(each, dict)]
    sentences = [str(answer.get("message", "")), *reasons]
    said = "; ".join(each.rstrip(". ") for each in sentences)
    reason = f"the pinned policy does not pass Access Analyzer's {check}: {said}"
    return Refusal("access_check_failed", reason, becomes=State.ESCALATED)
