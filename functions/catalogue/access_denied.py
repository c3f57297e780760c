"""Callers are refused by a policy; which one decides whose matter it is.

It pages: what a policy grants is decided by people, and no statement is ever made up here.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from functions.healing import examples
from functions.healing.callers import (
    MESSAGE_TRAFFIC,
    are_strangers_to,
    first_identity,
    granted_by,
    named,
)
from functions.healing.denials import RefusedBy
from functions.healing.facts import Facts, Need
from functions.healing.failed_call import FailedCall
from functions.healing.limits import Limits
from functions.healing.look_commands import get_attributes
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# A new session's permissions take a moment to be known everywhere.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
SESSION_SETTLES = timedelta(seconds=60)


def speaks(call: FailedCall) -> bool:
    """Message traffic alone, and not while the caller's session is new."""
    created = call.session_created_at
    settled = created is None or call.event_time - created > SESSION_SETTLES
    return call.event_name in MESSAGE_TRAFFIC and settled


@dataclass(frozen=True)
class Finding:
    """What to tell a person where this policy refused, and what they look at first."""

    refused_by: RefusedBy
    code: str
    because: str
    look: Callable[[Facts], str]
    lacks_a_grant: bool = False


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page; where several policies refused, the one that stands first in FINDINGS leads it."""
    finding = next((each for each in FINDINGS if each.refused_by in facts.refused_by), NOT_SAID)
    actions = ", ".join(granted_by(facts.event_names)) or "the call"
    sentences = [
        f"{actions} on {facts.queue_arn} is refused",
        finding.because,
        *_missing_grant(facts, finding),
        *_other_refusals(facts, finding),
        f"Who called: {named(facts.principals)}",
    ]
    reason = ". ".join(sentences)
    return Refusal(finding.code, reason, State.ESCALATED, next_command=finding.look(facts))


def _missing_grant(facts: Facts, finding: Finding) -> list[str]:
    if not finding.lacks_a_grant:
        return []
    if are_strangers_to(parts_of(facts.queue_arn).account, facts.principals):
        return ["A caller of another account needs it in the queue's policy and in its own"]
    return ["Of its own account, a caller needs it in one of the two: its own or the queue's"]


def _other_refusals(facts: Facts, finding: Finding) -> list[str]:
    others = sorted(facts.refused_by - {finding.refused_by})
    return [f"Other calls were refused by {', '.join(others)}"] if others else []


def _queue_policy(facts: Facts) -> str:
    return get_attributes(facts.queue_arn, "Policy")


def _simulation(facts: Facts) -> str:
    """What IAM makes of the caller's own policies, its boundary and its organization's."""
    identity = first_identity(facts.principals)
    actions = granted_by(facts.event_names)
    if identity is None or not actions:
        return _queue_policy(facts)
    return (
        f"aws iam simulate-principal-policy --policy-source-arn {identity} "
        f"--action-names {' '.join(actions)} --resource-arns {facts.queue_arn}"
    )


def _sessions(facts: Facts) -> str:
    region = parts_of(facts.queue_arn).region
    return (
        f"aws cloudtrail lookup-events --region {region} "
        "--lookup-attributes AttributeKey=EventName,AttributeValue=AssumeRole"
    )


def _endpoints(facts: Facts) -> str:
    region = parts_of(facts.queue_arn).region
    return (
        f"aws ec2 describe-vpc-endpoints --region {region} "
        "--filters 'Name=service-name,Values=*.sqs'"
    )


NOT_SAID = Finding(
    RefusedBy.NOT_SAID,
    "policy_not_named",
    "IAM does not say which policy refused; of callers from other organizations it seldom does",
    _queue_policy,
)
FINDINGS = (
    Finding(
        RefusedBy.RESOURCE_POLICY_DENIES,
        "queue_policy_denies",
        "The queue's policy denies it explicitly: its owner's word, which no grant elsewhere lifts",
        _queue_policy,
    ),
    Finding(
        RefusedBy.NO_RESOURCE_POLICY,
        "queue_policy_lacks_grant",
        "No statement of the queue's policy allows it",
        _queue_policy,
        lacks_a_grant=True,
    ),
    Finding(
        RefusedBy.IDENTITY_POLICY_DENIES,
        "identity_policy_denies",
        "The caller's identity policy denies it explicitly, which no grant elsewhere lifts",
        _simulation,
    ),
    Finding(
        RefusedBy.IDENTITY_POLICY,
        "identity_policy_lacks_grant",
        "The caller's identity policy does not allow it",
        _simulation,
        lacks_a_grant=True,
    ),
    Finding(
        RefusedBy.ABOVE_THE_ACCOUNT,
        "organization_refuses",
        "A service or resource control policy refuses it: "
        "a matter for whoever administers the AWS organization",
        _simulation,
    ),
    Finding(
        RefusedBy.PERMISSIONS_BOUNDARY,
        "boundary_refuses",
        "The caller's permissions boundary refuses it: a matter for whoever set the boundary",
        _simulation,
    ),
    Finding(
        RefusedBy.SESSION_POLICY,
        "session_policy_refuses",
        "The session's own policy refuses it: a matter for the program that assumes the role",
        _sessions,
    ),
    Finding(
        RefusedBy.VPC_ENDPOINT_POLICY,
        "vpc_endpoint_refuses",
        "The policy of a VPC endpoint refuses it: a matter for whoever runs the network",
        _endpoints,
    ),
    NOT_SAID,
)

_REFUSED = (
    "User: arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc is not authorized to "
    f"perform: sqs:sendmessage on resource: {examples.QUEUE_ARN} "
)
_NOT_GRANTED = f"{_REFUSED}because no resource-based policy allows the sqs:sendmessage action"
_DENIED = f"{_REFUSED}with an explicit deny in a resource-based policy"
_CALLED = replace(
    examples.queue(),
    principals=("arn:aws:iam::123456789012:role/orders-worker",),
    event_names=("SendMessage",),
)

ACCESS_DENIED = Symptom(
    name="access_denied",
    sentence="Callers are refused by a policy, so their messages are neither sent nor handled.",
    plan_in_words="Page with the policy that refused, the grant that is missing and whose matter "
    "it is; never write a policy.",
    aws_page="https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html",
    seen_as=seen_as_labelled("access_denied"),
    needs=frozenset({Need.QUEUE}),
    plan=plan,
    speaks=speaks,
    shows=("Policy",),
    mass_advice="Look for what these queues have in common: a role, a policy, an organization's.",
    caught=(
        Caught(
            "the queue's policy does not name the caller",
            examples.failed_call("SendMessage", "AccessDenied", _NOT_GRANTED),
            replace(_CALLED, refused_by=frozenset({RefusedBy.NO_RESOURCE_POLICY})),
            code="queue_policy_lacks_grant",
        ),
        Caught(
            "the queue's policy denies",
            examples.failed_call("SendMessageBatch", "AccessDeniedException", _DENIED),
            replace(_CALLED, refused_by=frozenset({RefusedBy.RESOURCE_POLICY_DENIES})),
            code="queue_policy_denies",
        ),
        Caught(
            "nobody says which policy it was",
            examples.failed_call(
                "ReceiveMessage", "AccessDenied", "Access to the resource is denied."
            ),
            replace(_CALLED, refused_by=frozenset({RefusedBy.NOT_SAID})),
            code="policy_not_named",
        ),
    ),
    near_misses=(
        NearMiss(
            "KMS's refusal is another policy's",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.AccessDeniedException", _DENIED),
        ),
        NearMiss(
            "a call without a signature that SQS takes",
            "no_match",
            call=examples.failed_call("SendMessage", "InvalidSecurity", "Request denied."),
        ),
        NearMiss(
            "a caller who writes IAM's sentence into a parameter",
            "no_match",
            call=examples.failed_call("SendMessage", "InvalidParameterValue", _DENIED),
        ),
    ),
)
