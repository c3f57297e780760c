"""Denied calls in AWS's words, and the actions that IAM knows.

SQS writes the action in small letters and names the queue; what stands behind them says which kind
of policy refused. The forms are documented, SQS's spelling of them is seen in public reports.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.services import sqs

BATCH = "Batch"
DENIED = "AccessDenied"
_STATUS = 403
_QUEUES = "arn:aws:sqs:"
Queue = dict[str, Any]


def install() -> None:
    """Hook what decides and what words a denial; once per process."""
    iam_actions.extract_iam_action = _without_batches(iam_actions.extract_iam_action)
    iam_evaluator.combine_resource_policy = _naming_resource(iam_evaluator.combine_resource_policy)
    iam_actions.access_denied_response = _worded(iam_actions.access_denied_response)
    sqs._enforce_queue_policy = _refusing(sqs._enforce_queue_policy)


def iam_action(action: str) -> str:
    """The action that permits a call: batches have none of their own.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
    """
    return action.removesuffix(BATCH)


def denial(caller_arn: str, action: str, resource_arn: str, *, policy: str, explicit: bool) -> str:
    """The message; `policy` is the kind that decided, such as `identity-based`."""
    action = action.lower()
    reason = (
        f"with an explicit deny in {_a(policy)} policy"
        if explicit
        else f"because no {policy} policy allows the {action} action"
    )
    return (
        f"User: {caller_arn} is not authorized to perform: {action} "
        f"on resource: {resource_arn} {reason}"
    )


def _a(policy: str) -> str:
    return f"an {policy}" if policy.startswith("i") else f"a {policy}"


def _policy(resource_decided: bool) -> str:
    return "resource-based" if resource_decided else "identity-based"


def _without_batches(extract: Callable[..., str | None]) -> Callable[..., str | None]:
    def extracting(service: str, *rest: Any) -> str | None:
        action = extract(service, *rest)
        return iam_action(action) if action and service == "sqs" else action

    return extracting


def _naming_resource(combine: Callable[..., Any]) -> Callable[..., Any]:
    """The result says so where the identity's policies allow and the resource's is silent."""

    def combining(identity: Any, ctx: Any, *rest: Any, **named: Any) -> Any:
        result = combine(identity, ctx, *rest, **named)
        is_queue = ctx.resource_arn.startswith(_QUEUES)
        if is_queue and identity.decision == "Allow" and result.decision != "Allow":
            result.resource_policy_arn = ctx.resource_arn
        return result

    return combining


def _worded(respond: Callable[..., Any]) -> Callable[..., Any]:
    def responding(
        service: str, action: str, principal_arn: str, request_id: str, **named: Any
    ) -> Any:
        if service == "sqs" and not named.get("error_code") and not named.get("message"):
            named["message"] = denial(
                principal_arn,
                action,
                named.get("resource_arn", "*"),
                policy=_policy(bool(named.get("resource_policy_arn"))),
                explicit=bool(named.get("explicit_deny")),
            )
        return respond(service, action, principal_arn, request_id, **named)

    return responding


def _refusing(enforce: Callable[[Queue, str], None]) -> Callable[[Queue, str], None]:
    """What MiniStack's own look at the queue's policy refuses: a root user, or another account."""

    def enforcing(queue: Queue, action: str) -> None:
        try:
            enforce(queue, action)
        except sqs._Err as refused:
            arn = queue["attributes"]["QueueArn"]
            said = denial(
                iam_evaluator.caller_arn(),
                action,
                arn,
                policy=_policy(resource_decided=True),
                explicit=_is_explicit(queue, action, arn),
            )
            raise sqs._Err(DENIED, said, _STATUS) from refused

    return enforcing


def _is_explicit(queue: Queue, action: str, arn: str) -> bool:
    caller = iam_evaluator.caller_arn()
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
