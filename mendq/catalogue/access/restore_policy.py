"""Plan to restore a pinned queue policy, and say which policy refused a call.

A pin is a policy that a person has called good. If a deployment overwrites the queue's policy later
and callers lose their access, Mendq proposes to write the pinned text again. The rules:

1. The pinned text goes back as a whole, byte for byte. Mendq never writes a statement of its own.
2. It must grant the refused calls to every refused caller by name and without a condition. A grant
   to everybody or to a whole account is not enough. A deny that may concern the caller rules it
   out, except the usual deny of calls without TLS.
3. It must not let everybody in.
4. `CheckedPin` says whether the last change of the policy may have been made on purpose. Until
   CloudTrail has reported who made the change, Mendq waits.
5. A person approves the write in every mode. The pinned text always adds access to the policy in
   force, and a person may have revoked that access in a way that CloudTrail does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote

from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.message_calls import list_actions_allowing
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal, Retry
from mendq.model.policy import (
    ALL_PRINCIPALS,
    CheckedPin,
    Pin,
    Statement,
    list_conditions,
    matches_wildcards,
    may_apply_to,
    parse_statements,
)
from mendq.model.principals import (
    ROLE_OR_USER_ARN_PATTERN,
    find_first_role_or_user,
    has_role_or_user_outside_account,
    name_first_principals,
)
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import RestorePolicy
from mendq.notifications.commands import get_attributes_command, make_aws_command
from mendq.notifications.links import quote_links

# The condition of a deny that does not concern AWS's clients, and that nearly every policy has: a
# call without TLS.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
_CONDITIONS_OF_CALLS_WITHOUT_TLS = [("bool", "aws:securetransport", frozenset({"false"}))]


def is_granted_by_name(policy: str, principal_arn: str, action: str, queue_arn: str) -> bool:
    """Return True if the policy grants `action` to this role or user by name, without a condition.

    A grant to everybody or to an account does not count, because people did not mean this caller. A
    conditional grant does not count, because the condition may not hold. A statement that may deny
    the call counts as a deny, except the usual one that denies calls without TLS.

    Args:
        policy: The policy's text. The result is False if it cannot be read.
        principal_arn: The caller. The result is False if it is not a role or user.
        action: The IAM action, such as `sqs:SendMessage`.
        queue_arn: The queue.
    """
    statements = parse_statements(policy)
    if not statements or not ROLE_OR_USER_ARN_PATTERN.fullmatch(principal_arn):
        return False
    is_denied = any(
        _may_deny_caller(statement, principal_arn, action, queue_arn) for statement in statements
    )
    if is_denied:
        return False
    return any(
        _allows_caller_by_name(statement, principal_arn, action, queue_arn)
        for statement in statements
    )


def is_open_to_everybody(policy: str) -> bool:
    """Return True if a statement lets anybody in, or if the policy cannot be read.

    A statement that denies is not considered.
    """
    statements = parse_statements(policy)
    if statements is None:
        return True
    return any(statement.lets_everybody_in for statement in statements)


def _allows_caller_by_name(
    statement: Statement, principal_arn: str, action: str, queue_arn: str
) -> bool:
    """Return True if the statement allows the action to this caller by name and unconditionally."""
    return (
        statement.allows
        and not statement.conditions
        and not statement.negated_elements
        and principal_arn in statement.principals.get("AWS", ())
        and may_apply_to(statement, (action,), queue_arn)
        and any(
            _does_resource_pattern_match_queue(pattern, queue_arn)
            for pattern in statement.resources
        )
    )


def _may_deny_caller(statement: Statement, principal_arn: str, action: str, queue_arn: str) -> bool:
    """Return True if the statement may deny the action to this caller.

    A deny under a condition counts, because the condition may hold. Only a deny of calls without
    TLS does not count.
    """
    if statement.allows or list_conditions(statement) == _CONDITIONS_OF_CALLS_WITHOUT_TLS:
        return False
    may_statement_name_caller = "Principal" in statement.negated_elements or _may_name_caller(
        statement, principal_arn
    )
    return may_statement_name_caller and may_apply_to(statement, (action,), queue_arn)


def _may_name_caller(statement: Statement, principal_arn: str) -> bool:
    """Return True if a principal of the statement may be the caller.

    Return False only if every principal is another role or user. An account, a session, or the
    internal id that IAM shows for a deleted role may be the caller.
    """
    for principals in statement.principals.values():
        for principal in principals:
            if not ROLE_OR_USER_ARN_PATTERN.fullmatch(principal) or principal == principal_arn:
                return True
    return False


def _does_resource_pattern_match_queue(resource_pattern: str, queue_arn: str) -> bool:
    """Return True if the resource of a statement covers the queue.

    The ARNs are compared part by part. In IAM a `*` may match across a colon; here it may not, so
    that Mendq never sees more access than people meant.
    """
    if resource_pattern == ALL_PRINCIPALS:
        return True
    pattern_parts = resource_pattern.split(":")
    queue_parts = queue_arn.split(":")
    if len(pattern_parts) != len(queue_parts):
        return False
    return all(map(matches_wildcards, pattern_parts, queue_parts))


_APPROVAL_SENTENCE = (
    "Putting it back gives access that the policy standing there does not: a person decides"
)


def plan_restoration(facts: Facts, first_sentence: str) -> Plan | Refusal | str:
    """Plan to restore the pinned policy. A person must approve it in every mode (rule 5).

    Args:
        facts: The queue and its failed calls.
        first_sentence: The sentence with which the plan's reason begins.

    Returns:
        The plan; a `Retry` as long as CloudTrail has not reported the last change; or a sentence
        that says why the policy is not restored. The sentence is empty if the queue has no pin.
    """
    checked_pin = facts.pin
    if checked_pin is None:
        return ""
    pin = checked_pin.pin
    if pin is None:
        return f"The queue's policy is pinned, and nothing is put back: {checked_pin.doubt}"
    current_policy = RestorePolicy.value_in(facts.attributes) or ""
    restoration_objection = _find_restoration_objection(pin.policy, current_policy, facts)
    if checked_pin.may_doubt_pass and not restoration_objection:
        # Mendq handles the calls again later, until CloudTrail has reported who changed the policy
        # or has had enough time to.
        return Retry("pin_not_judged_yet", checked_pin.doubt)
    restoration_objection = restoration_objection or checked_pin.doubt
    if restoration_objection:
        return f"{_describe_pin(pin)} is not put back: {restoration_objection}"
    reason = (
        f"{first_sentence}. {_describe_pin(pin)} grants it to every caller that was refused, "
        f"and {_describe_overwrite(checked_pin)}. {_APPROVAL_SENTENCE}"
    )
    return Plan((RestorePolicy(current_policy, pin.policy),), reason, highest_mode=Mode.PROPOSE)


def describe_granting_pin(facts: Facts) -> str:
    """Return a sentence: a deployment overwrote a pinned policy that grants the refused calls.

    The text is empty if there is no such pin, or if a caller is from another account. The sentence
    is for callers whose own IAM policy does not allow the call. They need a grant in only one of
    the two policies, their own or the queue's. Mendq cannot know which policy people meant, so it
    only informs them.
    """
    checked_pin = facts.pin
    if checked_pin is None or checked_pin.pin is None or not checked_pin.is_good:
        return ""
    pin = checked_pin.pin
    current_policy = RestorePolicy.value_in(facts.attributes) or ""
    if _find_restoration_objection(pin.policy, current_policy, facts):
        return ""
    if has_role_or_user_outside_account(parse_queue_arn(facts.queue_arn).account, facts.principals):
        return ""
    return (
        f"{_describe_pin(pin)} grants it, and {_describe_overwrite(checked_pin)}. "
        "It is not put back, because "
        "IAM names the caller's own policy: a person decides which of the two is to grant it"
    )


def _find_restoration_objection(pinned_policy: str, current_policy: str, facts: Facts) -> str:
    """Return why the pinned policy must not be restored now; empty if nothing is against it.

    The reasons are: the queue could not be read, the pinned policy is in force already, it does not
    grant all the refused calls, or it lets everybody in.
    """
    if not facts.exists:
        return "the queue could not be looked at"
    if current_policy == pinned_policy:
        return "it stands there, and the calls are refused all the same"
    if not _grants_all_refused_calls(pinned_policy, facts):
        return "it does not grant the calls to everybody who was refused, by name"
    if is_open_to_everybody(pinned_policy):
        return "it lets everybody in"
    return ""


def _grants_all_refused_calls(policy: str, facts: Facts) -> bool:
    """Return True if the policy grants every refused action to every refused caller.

    False if no caller or no action is known.
    """
    actions = list_actions_allowing(facts.event_names)
    if not facts.principals or not actions:
        return False
    return all(
        is_granted_by_name(policy, principal, action, facts.queue_arn)
        for principal in facts.principals
        for action in actions
    )


def _describe_pin(pin: Pin) -> str:
    return (
        f"The policy that {name_first_principals((pin.pinned_by,))} pinned on "
        f"{pin.pinned_at:%Y-%m-%d} "
        f"(generation {pin.generation}, sha256 {pin.digest[:12]})"
    )


def _describe_overwrite(checked_pin: CheckedPin) -> str:
    overwrite = checked_pin.deployment_change
    if overwrite is None:
        return "nobody is known to have overwritten it"
    return (
        f"{name_first_principals((overwrite.who,))} overwrote it at {overwrite.at:%Y-%m-%d %H:%M} "
        "UTC"
    )


def _make_policy_command(facts: Facts) -> str:
    """Return the command that shows the queue's policy."""
    return get_attributes_command(facts.queue_arn, "Policy")


def _make_simulation_command(facts: Facts) -> str:
    """Return the command that shows how IAM decides by the caller's own policies.

    It evaluates the caller's policies, its permissions boundary and the policies of its
    organization. If no caller is a role or user, or if no refused action is known, return the
    command that shows the queue's policy.
    """
    caller_arn = find_first_role_or_user(facts.principals)
    actions = list_actions_allowing(facts.event_names)
    if caller_arn is None or not actions:
        return _make_policy_command(facts)
    return quote_links(
        f"aws iam simulate-principal-policy --policy-source-arn {quote(caller_arn)} "
        f"--action-names {' '.join(actions)} --resource-arns {facts.queue_arn}"
    )


def _make_sessions_command(facts: Facts) -> str:
    """Return the command that shows who assumed roles lately, and with which session policy."""
    lookup_options = "--lookup-attributes AttributeKey=EventName,AttributeValue=AssumeRole"
    return make_aws_command("cloudtrail lookup-events", facts.queue_arn, lookup_options)


def _make_endpoints_command(facts: Facts) -> str:
    """Return the command that shows the VPC endpoints for SQS and their policies."""
    filter_option = "--filters 'Name=service-name,Values=*.sqs'"
    return make_aws_command("ec2 describe-vpc-endpoints", facts.queue_arn, filter_option)


@dataclass(frozen=True)
class PolicyFinding:
    """The explanation of a refusal by one kind of policy, for people.

    Attributes:
        code: The code of the refusal.
        sentence: A sentence that says which policy refused and who owns it.
        make_command: Takes the facts, and returns the command that people run first.
    """

    code: str
    sentence: str
    make_command: Callable[[Facts], str] = _make_simulation_command


# The order counts: if several policies refused, the first of them leads the notification.
FINDING_BY_REFUSING_POLICY: Mapping[RefusedBy, PolicyFinding] = {
    RefusedBy.RESOURCE_POLICY_DENIES: PolicyFinding(
        "queue_policy_denies",
        "The queue's policy denies it explicitly: its owner's word, which no grant elsewhere lifts",
        _make_policy_command,
    ),
    RefusedBy.NO_RESOURCE_POLICY: PolicyFinding(
        "queue_policy_lacks_grant",
        "No statement of the queue's policy allows it",
        _make_policy_command,
    ),
    RefusedBy.IDENTITY_POLICY_DENIES: PolicyFinding(
        "identity_policy_denies",
        "The caller's identity policy denies it explicitly, which no grant elsewhere lifts",
    ),
    RefusedBy.IDENTITY_POLICY: PolicyFinding(
        "identity_policy_lacks_grant", "The caller's identity policy does not allow it"
    ),
    RefusedBy.ORGANIZATION_POLICY: PolicyFinding(
        "organization_refuses",
        "A service or resource control policy refuses it: "
        "a matter for whoever administers the AWS organization",
    ),
    RefusedBy.PERMISSIONS_BOUNDARY: PolicyFinding(
        "boundary_refuses",
        "The caller's permissions boundary refuses it: a matter for whoever set the boundary",
    ),
    RefusedBy.SESSION_POLICY: PolicyFinding(
        "session_policy_refuses",
        "The session's own policy refuses it: a matter for the program that assumes the role",
        _make_sessions_command,
    ),
    RefusedBy.VPC_ENDPOINT_POLICY: PolicyFinding(
        "vpc_endpoint_refuses",
        "The policy of a VPC endpoint refuses it: a matter for whoever runs the network",
        _make_endpoints_command,
    ),
    RefusedBy.POLICY_NOT_NAMED: PolicyFinding(
        "policy_not_named",
        "IAM does not say which policy refused; of callers from other organizations it seldom does",
        _make_policy_command,
    ),
}


def choose_leading_policy(facts: Facts) -> RefusedBy:
    """Return the first policy of `FINDING_BY_REFUSING_POLICY` that refused a call.

    POLICY_NOT_NAMED if IAM named none.
    """
    for refused_by in FINDING_BY_REFUSING_POLICY:
        if refused_by in facts.refused_by:
            return refused_by
    return RefusedBy.POLICY_NOT_NAMED
