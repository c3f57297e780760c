"""Plans to restore a pinned queue policy, and which policy refused a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mendq.model.evidence import (
    IDENTITY,
    actions_allowing,
    first_identity,
    has_identity_outside,
    name_first_few,
)
from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.limits import Mode
from mendq.model.plan import Plan, Refusal, Retry
from mendq.model.policy import (
    EVERYBODY,
    CheckedPin,
    Pin,
    Statement,
    concerns,
    conditions_of,
    fits,
    statements_of,
)
from mendq.model.queue import parts_of
from mendq.model.steps import RestorePolicy
from mendq.notifications.commands import aws_command, get_attributes

# What nearly every policy denies, and no client of AWS's does: a call without TLS.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
_WITHOUT_TLS = [("bool", "aws:securetransport", frozenset({"false"}))]


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
    """Whether a statement lets anybody in, deny or no deny; of what is no policy, who knows."""
    statements = statements_of(policy)
    if statements is None:
        return True
    return any(each.lets_everybody_in for each in statements)


def _allows(statement: Statement, principal_arn: str, action: str, queue_arn: str) -> bool:
    return (
        statement.allows
        and not statement.conditions
        and not statement.excepting
        and principal_arn in statement.principals.get("AWS", ())
        and concerns(statement, (action,), queue_arn)
        and any(_covers(pattern, queue_arn) for pattern in statement.resources)
    )


def _may_deny(statement: Statement, principal_arn: str, action: str, queue_arn: str) -> bool:
    if statement.allows or conditions_of(statement) == _WITHOUT_TLS:
        return False
    to_it = "Principal" in statement.excepting or _may_name(statement, principal_arn)
    return to_it and concerns(statement, (action,), queue_arn)


def _may_name(statement: Statement, principal_arn: str) -> bool:
    """Itself, its account, a session of it, or what a name that IAM no longer knows stands for."""
    return bool(statement.principals) and not all(
        IDENTITY.fullmatch(named) and named != principal_arn
        for of_kind in statement.principals.values()
        for named in of_kind
    )


def _covers(pattern: str, queue_arn: str) -> bool:
    """Part by part: no wildcard of ours reaches over a colon."""
    parts, wanted = pattern.split(":"), queue_arn.split(":")
    return pattern == EVERYBODY or (len(parts) == len(wanted) and all(map(fits, parts, wanted)))


_ASK = "Putting it back gives access that the policy standing there does not: a person decides"


def restoration(facts: Facts, because: str) -> Plan | Refusal | str:
    """The plan that puts the pinned policy back, the refusal to decide yet, or why not at all.

    Never by itself, whatever settings say: it gives back what is missing, so it always adds access
    to what stands, and a revocation that CloudTrail never told of is known to people alone.

    `because` begins the plan's reason. An empty text where nothing is pinned.
    """
    pinned = facts.pin
    if pinned is None:
        return ""
    pin = pinned.pin
    if pin is None:
        return f"The queue's policy is pinned, and nothing is put back: {pinned.doubt}"
    stands = RestorePolicy.standing_in(facts.attributes) or ""
    pointless = _pointless(pin.policy, stands, facts)
    if pinned.passes and not pointless:
        # Events come again until CloudTrail has told who changed it, or had the time to.
        return Retry("pin_not_judged_yet", pinned.doubt)
    if against := pointless or pinned.doubt:
        return f"{_the_pin(pin)} is not put back: {against}"
    reason = (
        f"{because}. {_the_pin(pin)} grants it to every caller that was refused, "
        f"and {_overwritten_by(pinned)}. {_ASK}"
    )
    return Plan((RestorePolicy(stands, pin.policy),), reason, at_most=Mode.PROPOSE)


def granted_by_the_pin(facts: Facts) -> str:
    """A sentence where a deployment overwrote the pinned policy, which grants the refused calls.

    For refusals that IAM lays at the caller's own policy: in the queue's account either of the two
    may grant, and which of them people meant is not Mendq's to say.
    """
    pinned, stands = facts.pin, RestorePolicy.standing_in(facts.attributes) or ""
    if pinned is None or pinned.pin is None or not pinned.is_good:
        return ""
    pin, account = pinned.pin, parts_of(facts.queue_arn).account
    if _pointless(pin.policy, stands, facts) or has_identity_outside(account, facts.principals):
        return ""
    return (
        f"{_the_pin(pin)} grants it, and {_overwritten_by(pinned)}. It is not put back, because "
        "IAM names the caller's own policy: a person decides which of the two is to grant it"
    )


def _pointless(policy: str, stands: str, facts: Facts) -> str:
    if not facts.exists:
        return "the queue could not be looked at"
    if stands == policy:
        return "it stands there, and the calls are refused all the same"
    if not _grants_it_to_all(policy, facts):
        return "it does not grant the calls to everybody who was refused, by name"
    if is_open_to_everybody(policy):
        return "it lets everybody in"
    return ""


def _grants_it_to_all(policy: str, facts: Facts) -> bool:
    actions = actions_allowing(facts.event_names)
    pairs = [(who, action) for who in facts.principals for action in actions]
    return bool(pairs) and all(
        grants(policy, who, action, facts.queue_arn) for who, action in pairs
    )


def _the_pin(pin: Pin) -> str:
    return (
        f"The policy that {name_first_few((pin.pinned_by,))} pinned on {pin.pinned_at:%Y-%m-%d} "
        f"(generation {pin.generation}, sha256 {pin.digest[:12]})"
    )


def _overwritten_by(pinned: CheckedPin) -> str:
    change = pinned.changed
    if change is None:
        return "nobody is known to have overwritten it"
    return f"{name_first_few((change.who,))} overwrote it at {change.at:%Y-%m-%d %H:%M} UTC"


def _queue_policy(facts: Facts) -> str:
    return get_attributes(facts.queue_arn, "Policy")


def _simulation(facts: Facts) -> str:
    """What IAM makes of the caller's own policies, its boundary and its organization's."""
    identity = first_identity(facts.principals)
    actions = actions_allowing(facts.event_names)
    if identity is None or not actions:
        return _queue_policy(facts)
    return (
        f"aws iam simulate-principal-policy --policy-source-arn {identity} "
        f"--action-names {' '.join(actions)} --resource-arns {facts.queue_arn}"
    )


def _sessions(facts: Facts) -> str:
    options = "--lookup-attributes AttributeKey=EventName,AttributeValue=AssumeRole"
    return aws_command("cloudtrail lookup-events", facts.queue_arn, options)


def _endpoints(facts: Facts) -> str:
    options = "--filters 'Name=service-name,Values=*.sqs'"
    return aws_command("ec2 describe-vpc-endpoints", facts.queue_arn, options)


@dataclass(frozen=True)
class Finding:
    """What to tell a person where a policy refused, and what they look at first."""

    code: str
    because: str
    command: Callable[[Facts], str] = _simulation


FINDINGS: Mapping[RefusedBy, Finding] = {
    RefusedBy.RESOURCE_POLICY_DENIES: Finding(
        "queue_policy_denies",
        "The queue's policy denies it explicitly: its owner's word, which no grant elsewhere lifts",
        _queue_policy,
    ),
    RefusedBy.NO_RESOURCE_POLICY: Finding(
        "queue_policy_lacks_grant", "No statement of the queue's policy allows it", _queue_policy
    ),
    RefusedBy.IDENTITY_POLICY_DENIES: Finding(
        "identity_policy_denies",
        "The caller's identity policy denies it explicitly, which no grant elsewhere lifts",
    ),
    RefusedBy.IDENTITY_POLICY: Finding(
        "identity_policy_lacks_grant", "The caller's identity policy does not allow it"
    ),
    RefusedBy.ABOVE_THE_ACCOUNT: Finding(
        "organization_refuses",
        "A service or resource control policy refuses it: "
        "a matter for whoever administers the AWS organization",
    ),
    RefusedBy.PERMISSIONS_BOUNDARY: Finding(
        "boundary_refuses",
        "The caller's permissions boundary refuses it: a matter for whoever set the boundary",
    ),
    RefusedBy.SESSION_POLICY: Finding(
        "session_policy_refuses",
        "The session's own policy refuses it: a matter for the program that assumes the role",
        _sessions,
    ),
    RefusedBy.VPC_ENDPOINT_POLICY: Finding(
        "vpc_endpoint_refuses",
        "The policy of a VPC endpoint refuses it: a matter for whoever runs the network",
        _endpoints,
    ),
    RefusedBy.NOT_SAID: Finding(
        "policy_not_named",
        "IAM does not say which policy refused; of callers from other organizations it seldom does",
        _queue_policy,
    ),
}


def leading(facts: Facts) -> RefusedBy:
    """The one that leads a page: of several policies that refused, the first of FINDINGS."""
    return next((each for each in FINDINGS if each in facts.refused_by), RefusedBy.NOT_SAID)
