"""By which policy refused: what to tell a person, and what they look at first.

https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.healing.callers import first_identity, granted_by
from functions.healing.denials import RefusedBy
from functions.healing.facts import Facts
from functions.healing.look_commands import get_attributes
from functions.healing.queue_names import parts_of


@dataclass(frozen=True)
class Finding:
    """What to tell a person where this policy refused, and what they look at first."""

    refused_by: RefusedBy
    code: str
    because: str
    look: Callable[[Facts], str]
    lacks_a_grant: bool = False


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


def leading(facts: Facts) -> Finding:
    """The one that leads a page: of several policies that refused, the first of FINDINGS."""
    return next((each for each in FINDINGS if each.refused_by in facts.refused_by), NOT_SAID)
