"""Denied calls in AWS's words, and the actions that IAM knows.

SQS writes the action in lower case and names the queue; what stands behind them says which kind
of policy refused. The forms are documented, SQS's spelling of them is seen in public reports.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.services import sqs

from local_account.hooks import around

DENIED = "AccessDenied"
Queue = dict[str, Any]


def install() -> None:
    """Hook what decides and what words a denial; once per process."""

    @around(iam_actions, "extract_iam_action")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        """Batches have no action of their own."""
        action = inner(service, *rest)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    @around(iam_evaluator, "combine_resource_policy")
    def combine(inner: Any, identity: Any, ctx: Any, *rest: Any, **named: Any) -> Any:
        """Say that the queue's policy decided where the identity's allow and it is silent."""
        result = inner(identity, ctx, *rest, **named)
        is_queue = ctx.resource_arn.startswith("arn:aws:sqs:")
        if is_queue and identity.decision == "Allow" and result.decision != "Allow":
            result.resource_policy_arn = ctx.resource_arn
        return result

    @around(iam_actions, "access_denied_response")
    def respond(
        inner: Any, service: str, action: str, principal: str, *rest: Any, **named: Any
    ) -> Any:
        if service == "sqs" and not named.get("error_code") and not named.get("message"):
            named["message"] = denial(
                principal,
                action,
                named.get("resource_arn", "*"),
                by_queue=bool(named.get("resource_policy_arn")),
                explicit=bool(named.get("explicit_deny")),
            )
        return inner(service, action, principal, *rest, **named)

    @around(sqs, "_enforce_queue_policy")
    def enforce(inner: Any, queue: Queue, action: str) -> None:
        """Word what MiniStack's own look at the policy refuses: a root user, another account."""
        try:
            inner(queue, action)
        except sqs._Err as refused:
            arn, caller = queue["attributes"]["QueueArn"], iam_evaluator.caller_arn()
            denied = _is_denied(queue, caller, action, arn)
            said = denial(caller, action, arn, by_queue=True, explicit=denied)
            raise sqs._Err(DENIED, said, 403) from refused


def denial(
    caller_arn: str, action: str, resource_arn: str, *, by_queue: bool, explicit: bool
) -> str:
    """The message; `by_queue` says that the queue's policy decided, not the caller's."""
    action = action.lower()
    policy = "resource-based" if by_queue else "identity-based"
    reason = f"because no {policy} policy allows the {action} action"
    if explicit:
        reason = f"with an explicit deny in {'a' if by_queue else 'an'} {policy} policy"
    return (
        f"User: {caller_arn} is not authorized to perform: {action} "
        f"on resource: {resource_arn} {reason}"
    )


def _is_denied(queue: Queue, caller: str, action: str, arn: str) -> bool:
    context = iam_evaluator.EvalContext(
        principal_arn=caller,
        principal_type="Root",
        principal_account=caller.split(":")[4],
        action=action,
        resource_arn=arn,
        region=arn.split(":")[3],
    )
    policy = queue["attributes"].get("Policy")
    return bool(iam_evaluator.evaluate_resource_policy(policy, context).decision == "Deny")
