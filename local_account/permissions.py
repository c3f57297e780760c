"""Permissions of services on roles, and of roles in calls that are made inside MiniStack.

With AUTH=false everything is allowed, as everywhere in the account. IAM Access Analyzer answers as
it is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ministack.app
from ministack.core import iam_actions, iam_evaluator, router
from ministack.core.responses import get_account_id, get_region
from ministack.services import iam

from local_account.account_page import SwitchRefused

ANALYZER = "access-analyzer"
CHECKS = {
    "/policy/check-no-public-access": "CheckNoPublicAccess",
    "/policy/check-no-new-access": "CheckNoNewAccess",
}
RESULTS = ("PASS", "FAIL", None)
HOW = "/_mendq/access-analyzer has both checks answer as it is told"


def refusal_to_assume(role_arn: str, service: str) -> str | None:
    """Tell why `service` (e.g. scheduler.amazonaws.com) cannot take on the role, or None."""
    role = iam._roles.get(role_arn.rpartition("/")[2])
    if role is None:
        return f"The role {role_arn} does not exist"
    if not ministack.app.AUTH:
        return None
    context = context_of(service, "Service", "sts:AssumeRole", role_arn)
    context.service_context = {"aws:sourceaccount": get_account_id()}
    trust = _with_resources(role["AssumeRolePolicyDocument"])
    decided = iam_evaluator.evaluate_resource_policy(trust, context, service=service)
    if decided.decision == "Allow":
        return None
    return f"The role {role_arn} does not let {service} assume it"


def refusal_to_act(role_arn: str, action: str, resource_arn: str) -> str | None:
    """Tell why the role may not do `action` on a resource, or None; resource policies aside."""
    if not ministack.app.AUTH:
        return None
    name = role_arn.rpartition("/")[2]
    session = f"arn:aws:sts::{get_account_id()}:assumed-role/{name}/service"
    policies = iam_evaluator._gather_role_policies(name, get_account_id())
    context = context_of(session, "AssumedRole", action, resource_arn)
    if iam_evaluator.evaluate(context, policies).decision == "Allow":
        return None
    return f"{session} is not authorized to perform: {action} on resource: {resource_arn}"


def context_of(principal: str, kind: str, action: str, resource_arn: str) -> Any:
    """What MiniStack's evaluator is told of a call that a service makes."""
    return iam_evaluator.EvalContext(
        principal_arn=principal,
        principal_type=kind,
        principal_account=get_account_id(),
        action=action,
        resource_arn=resource_arn,
        region=get_region(),
        secure_transport=True,
    )


def _with_resources(trust: str | Mapping[str, Any]) -> dict[str, Any]:
    """A trust policy names no resource, which is the role; the evaluator wants one."""
    document = json.loads(trust) if isinstance(trust, str) else trust
    statements = document["Statement"]
    listed = [statements] if isinstance(statements, dict) else statements
    return {**document, "Statement": [{"Resource": "*", **each} for each in listed]}


class AccessAnalyzer:
    """IAM Access Analyzer's checks of a policy: `result` is what both answer, None: refused.

    Nothing here reads a policy as it does: {"result": "PASS"} or {"result": "FAIL"} at
    /_mendq/access-analyzer has both checks answer so.
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoPublicAccess.html
    https://docs.aws.amazon.com/access-analyzer/latest/APIReference/API_CheckNoNewAccess.html
    """

    def __init__(self) -> None:
        self.result: str | None = None

    def install(self) -> None:
        """Hook MiniStack, once per process."""
        ministack.app.SERVICE_HANDLERS[ANALYZER] = self._handle
        router.SERVICE_PATTERNS[ANALYZER] = {"credential_scope": ANALYZER}  # not searched for
        iam_actions.SERVICE_TO_IAM_NAMESPACE[ANALYZER] = ANALYZER
        iam_actions._BOTOCORE_SERVICE_MAP[ANALYZER] = ["accessanalyzer"]

    def page(self, asked: Any) -> dict[str, Any]:
        """Have both checks answer so from now on, null: refuse them; raises SwitchRefused."""
        if asked is not None:
            if asked not in [{"result": each} for each in RESULTS]:
                raise SwitchRefused('send {"result": "PASS"}, "FAIL" or null')
            self.result = asked["result"]
        return {"result": self.result}

    async def _handle(self, _method: str, path: str, *_: Any) -> tuple[int, dict[str, str], bytes]:
        check = CHECKS.get(path.rstrip("/"))
        if check is None or self.result is None:
            status, message = 400, f"{check or path} is not emulated here; {HOW}"
            said: dict[str, Any] = {"__type": "NotEmulated", "message": message}
        else:
            status, message = 200, f"{check} answers as it was told to."
            reasons = [{"description": "It was told to fail."}] * (self.result == "FAIL")
            said = {"result": self.result, "message": message, "reasons": reasons}
        return status, {"Content-Type": "application/json"}, json.dumps(said).encode()
