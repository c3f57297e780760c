"""Sections of a notification about refused calls: the least policy that would allow them.

The policy is ready to paste, but a person decides whether to paste it. So another section says who
else the grant may concern: other callers that the queue's policy lets in, functions that read the
queue, functions that run as the same role, and other users of the queue's KMS key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any

from mendq.model.facts import Facts, is_aws_managed_key
from mendq.model.failed_call import RefusedBy
from mendq.model.message_calls import SEND_MESSAGE_ACTION, list_actions_allowing
from mendq.model.partitions import list_service_names, partition_of
from mendq.model.policy import ALL_PRINCIPALS, parse_statements
from mendq.model.principals import ROLE_OR_USER_ARN_PATTERN, name_first_principals
from mendq.model.queue import parse_queue_arn
from mendq.notifications.commands import list_consumers_command, make_aws_command
from mendq.notifications.text import Section, command_or_note, format_exact_json, to_plain_text

# Actions of a consumer. Lambda asks for three of them; a consumer that works longer than the
# visibility timeout also calls ChangeMessageVisibility.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
_CONSUMER_ACTIONS = (
    "ChangeMessageVisibility",
    "DeleteMessage",
    "GetQueueAttributes",
    "ReceiveMessage",
)
_SENDER_ACTIONS = ("GetQueueUrl", "SendMessage")
_EXPLICIT_DENIES = {RefusedBy.RESOURCE_POLICY_DENIES, RefusedBy.IDENTITY_POLICY_DENIES}


def make_caller_lookup_command(event_name: str, queue_arn: str) -> str:
    """Return the command that shows who called a management API on the queue, and when.

    CloudTrail answers for the last 90 days.
    """
    queue_parts = parse_queue_arn(queue_arn)
    queue_filter = f"contains(CloudTrailEvent, '/{queue_parts.account}/{queue_parts.name}\\\"')"
    lookup_options = f"--lookup-attributes AttributeKey=EventName,AttributeValue={event_name}"
    query_option = f'--query "Events[?{queue_filter}].[EventTime,Username]"'
    return make_aws_command(
        "cloudtrail lookup-events", queue_arn, f"{lookup_options} {query_option}"
    )


def make_grant_sections(facts: Facts) -> tuple[Section, ...]:
    """Return the sections of a notification about refused calls.

    The section with the policy is empty if no caller is a role or user, or if no called action can
    be granted.
    """
    callers = [
        principal for principal in facts.principals if ROLE_OR_USER_ARN_PATTERN.fullmatch(principal)
    ]
    actions = list_actions_allowing(facts.event_names)
    policy_lines: tuple[str, ...] = ()
    if callers and actions:
        policy_lines = tuple(_list_policy_lines(facts, callers, actions))
    return (
        Section("WHO ELSE MAY BE CONCERNED", tuple(_list_other_users(facts, callers))),
        Section("MINIMUM POLICY", policy_lines, can_be_cut=False),
    )


def _list_other_users(facts: Facts, callers: Sequence[str]) -> Iterator[str]:
    """Yield lines about others that the grant may concern, most of them commands for a person.

    Mendq does not receive the events of successful calls, so it cannot say who else uses the queue.
    """
    queue_arn = facts.queue_arn
    yield f"its policy {_describe_other_principals(facts, callers)}"
    yield f"functions that read it: {command_or_note(list_consumers_command(queue_arn))}"
    role_arn_part = f"::{parse_queue_arn(queue_arn).account}:role/"
    caller_roles = [caller for caller in callers if role_arn_part in caller]
    if caller_roles:
        functions_query_option = f"--query \"Functions[?Role=='{caller_roles[0]}'].FunctionName\""
        functions_command = make_aws_command(
            "lambda list-functions", queue_arn, functions_query_option
        )
        yield f"functions that run as the refused role: {command_or_note(functions_command)}"
    if facts.kms_key is not None:
        key_options = f"--key-id {quote(facts.kms_key)} --query KeyMetadata.Arn --output text"
        key_arn = f'"$({make_aws_command("kms describe-key", queue_arn, key_options)})"'
        lookup_options = f"--lookup-attributes AttributeKey=ResourceName,AttributeValue={key_arn}"
        key_users_command = make_aws_command("cloudtrail lookup-events", queue_arn, lookup_options)
        yield f"who used its key, for which queue: {command_or_note(key_users_command)}"
    yield "not known here: whose calls succeed; the trail's files say, where it records this queue"


def _describe_other_principals(facts: Facts, callers: Sequence[str]) -> str:
    """Return the end of a sentence about other callers that the queue's policy lets in."""
    statements = parse_statements(facts.attributes.get("Policy", ""))
    if statements is None:
        return "cannot be read"
    other_principals = set[str]()
    for statement in statements:
        if statement.allows:
            for principals in statement.principals.values():
                other_principals.update(principals)
    other_principals.difference_update(callers)
    if ALL_PRINCIPALS in other_principals:
        return "lets in everybody"
    if other_principals:
        return f"lets in {to_plain_text(name_first_principals(sorted(other_principals)), 400)}"
    return "lets in nobody else"


def _list_policy_lines(
    facts: Facts, callers: Sequence[str], actions: Sequence[str]
) -> Iterator[str]:
    """Yield lines with the policy that a consumer, a sender or both need; `actions` decides which.

    If `callers` has callers of other accounts, the lines also have the statements for the policies
    of the queue and of its KMS key, for at most three of them.
    """
    includes_sending = SEND_MESSAGE_ACTION in actions
    includes_receiving = set(actions) != {SEND_MESSAGE_ACTION}
    action_names: list[str] = []
    caller_kinds: list[str] = []
    if includes_receiving:
        action_names += _CONSUMER_ACTIONS
        caller_kinds.append("consumer")
    if includes_sending:
        action_names += _SENDER_ACTIONS
        caller_kinds.append("sender")
    queue_statement = _make_allow_statement(
        [f"sqs:{action_name}" for action_name in action_names], facts.queue_arn
    )
    key_statement = _make_key_statement(facts, includes_sending=includes_sending)
    if facts.refused_by & _EXPLICIT_DENIES:
        yield "an explicit deny has to go first: no grant lifts it"
    caller_kinds_text = " and ".join(caller_kinds)
    yield (
        f"a {caller_kinds_text} of this queue alone, in the policy of a caller that you mean to "
        "let in:"
    )
    statements = [queue_statement]
    if key_statement:
        statements.append(key_statement)
    yield command_or_note(format_exact_json({"Version": "2012-10-17", "Statement": statements}))
    queue_account = parse_queue_arn(facts.queue_arn).account
    callers_of_other_accounts = [
        caller for caller in callers if caller.split(":")[4] != queue_account
    ][:3]
    if callers_of_other_accounts:
        principal_element = {"Principal": {"AWS": callers_of_other_accounts}}
        yield "and, of another account's that you know and mean to let in, in the queue's policy:"
        yield command_or_note(format_exact_json(queue_statement | principal_element))
        if key_statement:
            yield "and in the key's policy:"
            yield command_or_note(
                format_exact_json(key_statement | principal_element | {"Resource": ALL_PRINCIPALS})
            )


def _make_allow_statement(
    actions: Sequence[str], resource: str, **other_statement_elements: Any
) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Action": [*actions],
        "Resource": resource,
        **other_statement_elements,
    }


def _make_key_statement(facts: Facts, *, includes_sending: bool) -> dict[str, Any]:
    """Return the statement that allows the use of the queue's KMS key, through SQS only.

    Empty if the queue has no KMS key, or has the key that AWS manages: nobody can grant the use of
    that key, and callers of its account need no grant. Senders need kms:Decrypt too. A policy
    cannot name an alias as its resource, so for an alias the statement names all keys of the
    account, under the condition that they have this alias.
    https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
    """
    key = facts.kms_key
    if key is None or is_aws_managed_key(key):
        return {}
    queue_parts = parse_queue_arn(facts.queue_arn)
    region = queue_parts.region
    key_arn = key
    if not key.startswith("arn:"):
        key_name = key if "/" in key else f"key/{key}"
        key_arn = f"arn:{partition_of(region)}:kms:{region}:{queue_parts.account}:{key_name}"
    arn_prefix, alias_separator, alias_name = key_arn.partition("alias/")
    sqs_names = list_service_names("sqs", region)
    via_service = sqs_names[0] if len(sqs_names) == 1 else sqs_names
    condition_element: dict[str, dict[str, Any]] = {"StringEquals": {"kms:ViaService": via_service}}
    if alias_separator:
        key_arn = f"{arn_prefix}key/*"
        condition_element["ForAnyValue:StringEquals"] = {
            "kms:ResourceAliases": f"alias/{alias_name}"
        }
    actions = ("kms:Decrypt", "kms:GenerateDataKey") if includes_sending else ("kms:Decrypt",)
    return _make_allow_statement(actions, key_arn, Condition=condition_element)
