"""Find out why messages reached a DLQ, if that cause is fixed, and if Mendq may move the messages.

The cases about the source tell the cause. A message moves only if both queues allow it: their mode,
their tags and their policies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mendq.model.case import Case
from mendq.model.consent import Consent
from mendq.model.facts import Facts, QueueFacts, is_aws_managed_key
from mendq.model.lifecycle import QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON
from mendq.model.message_calls import list_actions_allowing
from mendq.model.mode import Mode
from mendq.model.names import REDRIVE_ROLE_PURPOSE, role_name
from mendq.model.partitions import partition_of
from mendq.model.policy import (
    Statement,
    list_conditions,
    matches_wildcards,
    may_apply_to,
    parse_statements,
)
from mendq.model.queue import parse_queue_arn, why_unfit_as_dlq
from mendq.model.state import State
from mendq.model.tags import REDRIVE_ALLOWED_VALUE, REDRIVE_PERMISSION_TAG
from mendq.notifications.text import format_count

# A case of one of these symptoms about the source explains why its messages reached the DLQ. Only
# symptoms that page if messages reach the DLQ belong here, because the page about the DLQ waits for
# them. So `max_receive_count_too_low`, which is only reported, stays out.
CAUSE_SYMPTOMS = frozenset(
    {
        "visibility_timeout_too_short",
        "in_flight_limit",
        "consumer_crashes",
        "consumer_failing",
        "consumer_throttled",
        "function_errors",
        "function_times_out",
        "redrive_loop",
        "access_denied",
        "kms_denied",
        "kms_key_unusable",
        "kms_throttled",
    }
)

# A case of one of these symptoms that was refused without a page lost no message. So it explains no
# message in a DLQ, and a redrive need not wait for it.
SYMPTOMS_HARMLESS_WITHOUT_PAGE = frozenset({"consumer_crashes"})

# In these states a fix is proven, although the case is not closed yet.
PROVEN_STATES = frozenset({State.VERIFIED, State.WATCHING})
# The actor of a case that Mendq itself closed.
_FOLLOW_UP_ACTOR = "follow_up"


@dataclass(frozen=True)
class CauseCases:
    """The cases that may explain why messages reached a DLQ, by the state of their cause.

    Attributes:
        proven_cases: Cases whose fix is proven: it was verified, or Mendq watched it.
        unproven_cases: Cases that are closed without a proof: a person closed them, or the symptom
            only stayed away.
        unfixed_cases: Cases that are open without a proven fix, that ended without being closed, or
            that were closed because the queue is gone or no longer managed.
    """

    proven_cases: tuple[Case, ...] = ()
    unproven_cases: tuple[Case, ...] = ()
    unfixed_cases: tuple[Case, ...] = ()

    @property
    def fixed_cases(self) -> tuple[Case, ...]:
        """Cases whose cause is over, proven ones first."""
        return (*self.proven_cases, *self.unproven_cases)


def find_cause_cases(cases: Iterable[Case], first_message_at: datetime) -> CauseCases:
    """Return the cases that may explain why messages reached the DLQ.

    Only cases of the symptoms in CAUSE_SYMPTOMS count. A case that was over before the first
    message came did not cause that message.

    Args:
        cases: The newest case of each symptom about the source.
        first_message_at: The time when the first of the messages came.
    """
    proven_cases: list[Case] = []
    unproven_cases: list[Case] = []
    unfixed_cases: list[Case] = []
    for case in cases:
        if case.symptom not in CAUSE_SYMPTOMS or _lost_no_message(case):
            continue
        if not is_case_unresolved(case) and case.at < first_message_at:
            continue
        if _has_unfixed_cause(case):
            unfixed_cases.append(case)
        elif _has_proven_fix(case):
            proven_cases.append(case)
        else:
            unproven_cases.append(case)
    return CauseCases(tuple(proven_cases), tuple(unproven_cases), tuple(unfixed_cases))


def _lost_no_message(case: Case) -> bool:
    """Return True if the case only recorded a fault that lost no message."""
    return case.symptom in SYMPTOMS_HARMLESS_WITHOUT_PAGE and case.state is State.REFUSED


def is_case_unresolved(case: Case) -> bool:
    """Return True if the case is open and its fix is not proven."""
    return not case.is_final and case.state not in PROVEN_STATES


def _has_unfixed_cause(case: Case) -> bool:
    """Return True if the cause is not fixed, as far as the case shows.

    The case is then open without a proven fix, or it ended without being closed, or it was closed
    because the queue was deleted or is no longer managed.
    """
    if case.state in PROVEN_STATES:
        return False
    return case.state is not State.CLOSED or case.reason in (
        QUEUE_GONE_REASON,
        QUEUE_UNMANAGED_REASON,
    )


def _has_proven_fix(case: Case) -> bool:
    """Return True if the case is verified or watched, or if follow_up ended the watching.

    The state after the watching is not looked at. So call `_has_unfixed_cause` first: it finds
    cases whose fix failed while it was watched.
    """
    was_fix_watched = case.came_from is State.WATCHING and case.actor == _FOLLOW_UP_ACTOR
    return case.state in PROVEN_STATES or was_fix_watched


REDRIVE_TAG = REDRIVE_PERMISSION_TAG.key
KMS_READ_ACTION = "kms:Decrypt"
KMS_SEND_ACTION = "kms:GenerateDataKey"


def is_redrive_off(tags: Mapping[str, str]) -> bool:
    """Return True if the tag REDRIVE_TAG forbids moving messages: it is set, but not to `on`.

    The IAM policy of Mendq's redrive role has the same condition.
    """
    return tags.get(REDRIVE_TAG, REDRIVE_ALLOWED_VALUE) != REDRIVE_ALLOWED_VALUE


def find_move_objection(queue: Facts, consent: Consent) -> str | None:
    """Return why Mendq may not move messages out of this queue or into it; None if it may."""
    mode = consent.mode_of(parse_queue_arn(queue.queue_arn).name, queue.tags)
    if mode is None:
        return f"{queue.queue_arn} is not managed"
    if mode is Mode.OBSERVE:
        return f"{queue.queue_arn} is only observed"
    if is_redrive_off(queue.tags):
        return f"the tag {REDRIVE_TAG} of {queue.queue_arn} forbids it"
    return None


def find_redrive_objection(
    dlq: Facts, source: Facts, source_arns: Sequence[str], consent: Consent
) -> str | None:
    """Return why messages may not go back from the DLQ to the source; None if they may.

    Args:
        dlq: The queue that the messages leave.
        source: The queue that they go to.
        source_arns: The queues that name the DLQ.
        consent: The queues that Mendq may act on.
    """
    for queue in (dlq, source):
        if not queue.exists:
            return f"there is no queue {queue.queue_arn} any more"
    if source.dlq_arn != dlq.queue_arn:
        return f"{source.queue_arn} does not name it as its DLQ any more"
    # SQS names each message's source, but returns only the first messages of a FIFO group. So Mendq
    # would not see a returned message that waits behind messages of another source.
    if dlq.is_fifo and set(source_arns) - {source.queue_arn}:
        return (
            f"it is now the DLQ of {format_count(len(source_arns), 'queue')}. SQS returns only the "
            "first messages of a FIFO group, so Mendq could not see a message that fails again "
            "behind one of another queue"
        )
    if dlq.attributes.get("RedrivePolicy"):
        return "it has a DLQ itself"
    return (
        why_unfit_as_dlq(source.queue_arn, dlq.queue_arn)
        or find_move_objection(dlq, consent)
        or find_move_objection(source, consent)
    )


def describe_needed_grants(role_description: str, dlq: QueueFacts, source: QueueFacts) -> str:
    """Return a sentence about the grants on KMS keys that a role needs to move messages.

    `role_description` names the role. The text is empty if the role needs no grant. Everybody in
    the account who may use the queue may use the key that AWS manages. SQS's own encryption needs
    no grant. A quarantine has the same encryption as its source, so it needs no grant of its own.
    """
    queue_arns_by_kms_key = defaultdict[str, list[str]](list)
    for queue in (dlq, source):
        if queue.kms_key is not None and not is_aws_managed_key(queue.kms_key):
            queue_arns_by_kms_key[queue.kms_key].append(queue.queue_arn)
    needed_grants = []
    for key, queue_arns in queue_arns_by_kms_key.items():
        actions = (
            f"{KMS_READ_ACTION} and {KMS_SEND_ACTION}"
            if source.queue_arn in queue_arns
            else KMS_READ_ACTION
        )
        queue_names = ", ".join(parse_queue_arn(queue_arn).name for queue_arn in queue_arns)
        needed_grants.append(f"{actions} on {key} ({queue_names})")
    if not needed_grants:
        return ""
    where_to_grant_text = "in the key's policy, or in its own where that lets it"
    return f"{role_description} needs {'; '.join(needed_grants)}: {where_to_grant_text}"


# The IAM actions for moving messages: on the queue that they leave, and on the queue that they go
# to.
RECEIVE_AND_DELETE_ACTIONS = list_actions_allowing(("DeleteMessage", "ReceiveMessage"))
SEND_ACTIONS = list_actions_allowing(("SendMessage",))

# The change to a policy that lets Mendq's redrive role in.
NETWORK_DENY_REMEDY = (
    "except Mendq's redrive role by the further condition "
    '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}'
)

# Condition keys about the network from which a call comes.
_NETWORK_CONDITION_KEYS = frozenset(
    {"aws:sourceip", "aws:sourcevpc", "aws:sourcevpce", "aws:vpcsourceip"}
)
_IF_EXISTS_SUFFIX = "ifexists"
# Operators that hold for a value other than the given one.
_NEGATED_OPERATORS = frozenset({"arnnotequals", "arnnotlike", "stringnotequals", "stringnotlike"})


def describe_network_deny(policy: str, queue_arn: str, actions: Sequence[str]) -> str | None:
    """Return why the queue's policy denies Mendq's redrive role because of its network, or None.

    Mendq assumes that its Lambda function calls from none of the networks that a policy names. So a
    deny for every call from other networks concerns the role. A policy that cannot be read may have
    such a deny, so the result is a reason then too.

    Args:
        policy: The policy's text.
        queue_arn: The queue.
        actions: IAM actions that the role needs there.
    """
    statements = parse_statements(policy)
    if statements is None:
        return "its policy cannot be read"
    for statement in statements:
        if _denies_other_networks(statement, queue_arn, actions):
            statement_name = f' ("{statement.sid[:64]}")' if statement.sid else ""
            return (
                f"a statement of its policy{statement_name} denies whoever does not come from one "
                "network"
            )
    return None


def _denies_other_networks(statement: Statement, queue_arn: str, actions: Sequence[str]) -> bool:
    """Return True if the statement denies one of `actions` to callers from other networks.

    False if the statement excepts Mendq's redrive role.
    """
    if statement.allows or not may_apply_to(statement, actions, queue_arn):
        return False
    # A prefix such as `ForAnyValue:` is about keys with several values, and does not matter here.
    statement_conditions = [
        (operator.rpartition(":")[2], condition_key, condition_values)
        for operator, condition_key, condition_values in list_conditions(statement)
    ]
    is_about_network = any(
        condition_key in _NETWORK_CONDITION_KEYS
        and _does_condition_hold_outside_network(operator, condition_values)
        for operator, condition_key, condition_values in statement_conditions
    )
    excepts_redrive_role = any(
        _excepts_redrive_role(operator, condition_key, condition_values, queue_arn)
        for operator, condition_key, condition_values in statement_conditions
    )
    return is_about_network and not excepts_redrive_role


def _does_condition_hold_outside_network(operator: str, condition_values: frozenset[str]) -> bool:
    """Return True if the condition holds for a call that comes from none of the named networks.

    The condition holds if the call's value must differ from the named ones, or may be missing.
    """
    must_value_be_missing = operator == "null" and "true" in condition_values
    must_value_differ = "not" in operator.removesuffix(_IF_EXISTS_SUFFIX)
    return must_value_differ or _IF_EXISTS_SUFFIX in operator or must_value_be_missing


def _excepts_redrive_role(
    operator: str, condition_key: str, condition_values: frozenset[str], queue_arn: str
) -> bool:
    """Return True if the condition does not hold for Mendq's redrive role.

    A deny with this condition does not concern the role.
    """
    queue_parts = parse_queue_arn(queue_arn)
    role_path = (
        f":iam::{queue_parts.account}:role/{role_name(REDRIVE_ROLE_PURPOSE, queue_parts.region)}"
    )
    role_arn = f"arn:{partition_of(queue_parts.region)}{role_path}".lower()
    is_about_roles = (
        operator.removesuffix(_IF_EXISTS_SUFFIX) in _NEGATED_OPERATORS
        and condition_key == "aws:principalarn"
    )
    return is_about_roles and any(
        matches_wildcards(pattern, role_arn) for pattern in condition_values
    )
