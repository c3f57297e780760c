"""Read queue policies statement by statement, and check pins.

A pin is a policy that a person stored as good. Mendq may restore it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import Any

from mendq.model.json_text import parse_finite_float, refuse_nan_constant
from mendq.model.queue import refuse_repeated_keys
from mendq.model.time_text import format_time

ALL_PRINCIPALS = "*"
# The longest policy that SQS accepts. A longer text counts as unreadable.
_MAXIMUM_POLICY_LENGTH = 20_480

# Elements that may also have the prefix "Not" in a statement, to name exceptions.
_NEGATABLE_ELEMENTS = ("Principal", "Action", "Resource")
_NEGATED_ELEMENTS = tuple(f"Not{element}" for element in _NEGATABLE_ELEMENTS)
_KNOWN_ELEMENTS = {"Sid", "Effect", "Condition", *_NEGATABLE_ELEMENTS, *_NEGATED_ELEMENTS}


@dataclass(frozen=True)
class Statement:
    """A statement of a policy. All texts are spelled as in the policy.

    Attributes:
        allows: True for Allow, False for Deny.
        principals: Principals by kind (`AWS`, `Service`, `Federated`, ...). `"Principal": "*"` is
            ALL_PRINCIPALS of kind `AWS`.
        actions: The actions; the excluded actions if `negated_elements` contains `Action`.
        resources: The resources; the excluded resources if `negated_elements` contains `Resource`.
        conditions: The values by operator and key.
        negated_elements: The elements that the policy spells as NotPrincipal, NotAction or
            NotResource.
        sid: The statement's id; empty if it has none.
    """

    allows: bool
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    negated_elements: frozenset[str] = frozenset()
    sid: str = ""

    @property
    def is_for_everybody(self) -> bool:
        """True if the statement names all principals (`*`)."""
        return ALL_PRINCIPALS in self.principals.get("AWS", ())

    @property
    def lets_everybody_in(self) -> bool:
        """True if the statement allows calls by everyone, and no condition limits who may call."""
        names_everybody = self.is_for_everybody or "Principal" in self.negated_elements
        return (
            self.allows and names_everybody and not any(map(_limits_callers, list_conditions(self)))
        )


def parse_statements(policy: str) -> tuple[Statement, ...] | None:
    """Return the statements of a policy's text.

    Returns:
        The statements; empty for an empty text. None if the policy is unreadable: it is longer than
        SQS accepts, a key is repeated or unknown, or a value does not follow IAM's grammar. One
        unreadable statement makes the whole policy unreadable, because the others alone prove
        nothing.
    """
    if not policy:
        return ()
    if len(policy) > _MAXIMUM_POLICY_LENGTH:
        return None
    try:
        document = json.loads(
            policy,
            object_pairs_hook=refuse_repeated_keys,
            parse_constant=refuse_nan_constant,
            parse_float=parse_finite_float,
        )
        statements = document["Statement"]
        if not isinstance(statements, list):
            statements = [statements]
        return tuple(_parse_statement(statement) for statement in statements)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _parse_statement(document: dict[str, Any]) -> Statement:
    """Return the parsed statement.

    Raise KeyError, TypeError, ValueError or AttributeError if it violates IAM's grammar.
    """
    if document.keys() - _KNOWN_ELEMENTS or document["Effect"] not in ("Allow", "Deny"):
        raise ValueError("no statement of IAM's grammar")
    negated_elements = frozenset(
        element for element in _NEGATABLE_ELEMENTS if f"Not{element}" in document
    )
    if any(element in document for element in negated_elements):
        raise ValueError("what is given is also given by what it is not")
    value_by_element: dict[str, Any] = {}
    for element in _NEGATABLE_ELEMENTS:
        value_by_element[element] = document.get(element, document.get(f"Not{element}", []))
    conditions: dict[str, dict[str, tuple[str, ...]]] = {}
    for operator, values_by_key in document.get("Condition", {}).items():
        conditions[operator] = {
            key: _parse_texts(condition_values) for key, condition_values in values_by_key.items()
        }
    return Statement(
        allows=document["Effect"] == "Allow",
        principals=_parse_principals(value_by_element["Principal"]),
        actions=_parse_texts(value_by_element["Action"]),
        resources=_parse_texts(value_by_element["Resource"]),
        conditions=conditions,
        negated_elements=negated_elements,
        sid=str(document.get("Sid", "")),
    )


def _parse_principals(principal_element: Any) -> dict[str, tuple[str, ...]]:
    """Return the principals by kind. `*` alone gives ALL_PRINCIPALS of kind `AWS`."""
    if principal_element == ALL_PRINCIPALS:
        return {"AWS": (ALL_PRINCIPALS,)}
    return (
        {
            principal_kind: _parse_texts(principal_names)
            for principal_kind, principal_names in principal_element.items()
        }
        if principal_element
        else {}
    )


def _parse_texts(value: Any) -> tuple[str, ...]:
    """Return a list's values as texts. A single value counts as a list of one."""
    return tuple(map(_parse_text, value if isinstance(value, list) else [value]))


def _parse_text(value: Any) -> str:
    """Return a text, number or boolean as text, as IAM does in conditions.

    Raise TypeError for any other value.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise TypeError("neither a text nor a number")
    return str(value)


StatementCondition = tuple[str, str, frozenset[str]]


def list_conditions(statement: Statement) -> list[StatementCondition]:
    """Return the operator, the key and the values of each condition, all in lower case."""
    conditions: list[StatementCondition] = []
    for operator, values_by_key in statement.conditions.items():
        for key, values in values_by_key.items():
            lowercase_values = frozenset(value.lower() for value in values)
            conditions.append((operator.lower(), key.lower(), lowercase_values))
    return conditions


def may_apply_to(statement: Statement, actions: Iterable[str], queue_arn: str) -> bool:
    """Return True if the statement may apply to one of the actions on the queue.

    The statement's principals and conditions are not checked.
    """
    return _may_apply_to_actions(statement, actions) and _may_apply_to_queue(statement, queue_arn)


def _may_apply_to_actions(statement: Statement, actions: Iterable[str]) -> bool:
    """Return True if the statement may apply to one of the actions."""
    if "Action" in statement.negated_elements:
        return True
    return any(_names_action(statement, action) for action in actions)


def _may_apply_to_queue(statement: Statement, queue_arn: str) -> bool:
    """Return True if the statement may apply to the queue."""
    is_queue_named = any(matches_wildcards(pattern, queue_arn) for pattern in statement.resources)
    return "Resource" in statement.negated_elements or is_queue_named


def matches_wildcards(pattern: str, text: str) -> bool:
    """Return True if the text matches a pattern with IAM's wildcards `*` and `?`.

    All other characters of the pattern, including brackets, match only themselves.
    """
    return fnmatchcase(text, pattern.replace("[", "[[]"))


# Condition keys about the caller or the caller's network. AWS does not consider a policy public if
# its conditions compare these keys with fixed values.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html
# https://docs.aws.amazon.com/config/latest/developerguide/sqs-queue-no-public-access.html
_CALLER_KEY_PATTERN = re.compile(
    "aws:(userid|principal(account|arn|orgid|orgpaths)|vpce(account|orgid|orgpaths)"
    "|source(account|arn|ip|orgid|orgpaths|owner|vpc|vpcarn|vpce))"
)
# Condition keys about AWS services. They do not narrow an allow, because AWS services call for any
# of their customers. Denies often use them to exempt services.
_SERVICE_KEYS = frozenset({"aws:principalisawsservice", "aws:viaawsservice"})
_NARROWING_OPERATOR_PATTERN = re.compile(
    "string(equals(ignorecase)?|like)|arn(equals|like)|ipaddress"
)
# The shortest network prefix by the number of bits in an address (IPv4, IPv6). A network with a
# shorter prefix is too large to belong to one owner.
_SHORTEST_PREFIX_BY_ADDRESS_BITS = {32: 8, 128: 32}
# An ARN with an account, or the ARN of a bucket, whose name belongs to one owner.
_ARN_OF_ONE_OWNER_PATTERN = re.compile(
    r"arn:[^:]+:(s3:[^:]*:[^:]*:[^:*?]+|[^:]+:[^:]*:[0-9]{12}:.*)"
)
# `o-1234567890/*` means one organization, `AROA1234567890:*` one role.
_TEXT_BEFORE_WILDCARD_PATTERN = re.compile(r"[^*?]*[/:]")


def list_public_statements(policy: str, queue_arn: str) -> tuple[tuple[int, Statement], ...]:
    """Return the statements that let everyone call the queue, each with its number from 1.

    A statement is left out if a deny of the policy refuses to outsiders everything that the
    statement allows. An unreadable policy gives an empty tuple.
    """
    statements = parse_statements(policy) or ()
    public_statements: list[tuple[int, Statement]] = []
    for statement_number, grant in enumerate(statements, start=1):
        if not grant.lets_everybody_in or not _may_apply_to_queue(grant, queue_arn):
            continue
        if not any(_keeps_outsiders_out(denial, grant, queue_arn) for denial in statements):
            public_statements.append((statement_number, grant))
    return tuple(public_statements)


def _keeps_outsiders_out(denial: Statement, grant: Statement, queue_arn: str) -> bool:
    """Return True if the statement `denial` refuses to outsiders everything that `grant` allows.

    Outsiders are all callers except those that the conditions of `denial` exempt, such as the
    callers of one account.
    """
    is_for_everybody = denial.is_for_everybody or "Principal" in denial.negated_elements
    if denial.allows or not is_for_everybody or denial.negated_elements & {"Action", "Resource"}:
        return False
    granted_actions = [ALL_PRINCIPALS] if "Action" in grant.negated_elements else grant.actions
    narrowing_conditions: list[StatementCondition] = []
    for condition in list_conditions(denial):
        _, key, values = condition
        # A deny may exempt AWS services, which call for their own customers.
        if key not in _SERVICE_KEYS or values != {"false"}:
            narrowing_conditions.append(condition)
    return (
        _may_apply_to_queue(denial, queue_arn)
        and all(_names_action(denial, action) for action in granted_actions)
        and all(_exempts_some_callers(condition) for condition in narrowing_conditions)
        and (bool(narrowing_conditions) or not denial.conditions)
    )


def _names_action(statement: Statement, action: str) -> bool:
    """Return True if the statement's actions include this action. Letter case is ignored."""
    return any(matches_wildcards(pattern.lower(), action.lower()) for pattern in statement.actions)


def _exempts_some_callers(condition: StatementCondition) -> bool:
    """Return True if a deny with this condition applies to everyone except certain callers.

    It must also apply to a caller whose request lacks the condition's key.
    """
    operator, key, values = condition
    operator = operator.removeprefix("forallvalues:").removesuffix("ifexists")
    operator_start, negation, operator_end = operator.partition("not")
    return (
        bool(negation)
        and ":" not in operator_start
        and _limits_callers((operator_start + operator_end, key, values))
    )


def _limits_callers(condition: StatementCondition) -> bool:
    """Return True if an allow with this condition is limited to certain callers.

    Return False for operators that also match a request without the condition's key.
    """
    operator, key, values = condition
    operator = operator.removeprefix("foranyvalue:")
    if not _CALLER_KEY_PATTERN.fullmatch(key) or not _NARROWING_OPERATOR_PATTERN.fullmatch(
        operator
    ):
        return False
    return all(
        _is_fixed_caller_value(key, value, is_compared_literally="stringequals" in operator)
        for value in values
    )


def _is_fixed_caller_value(key: str, value: str, *, is_compared_literally: bool) -> bool:
    """Return True if a condition's value limits access to specific callers or to one network.

    - A network must be small enough to belong to one owner.
    - A value with a policy variable must begin with a variable such as `aws:ResourceAccount`, which
      is about the queue's owner.
    - `*` and `?` are wildcards, unless `is_compared_literally` is True. An ARN with a wildcard
      must contain an account or a bucket's name. Another value must have a `/` or `:` before the
      first wildcard.
    """
    if key == "aws:sourceip":
        return _is_network_of_one_owner(value)
    if "${" in value:
        return value.startswith("${aws:resource")
    if is_compared_literally or not {*value} & {"*", "?"}:
        return True
    return bool(
        _ARN_OF_ONE_OWNER_PATTERN.fullmatch(value)
        if key.endswith("arn")
        else _TEXT_BEFORE_WILDCARD_PATTERN.match(value)
    )


def _is_network_of_one_owner(network_text: str) -> bool:
    """Return True for an IP address, or for a network small enough to belong to one owner.

    `network_text` is the condition's value, such as `10.0.0.0/8`. Return False if it is neither.
    """
    try:
        parsed_network = ip_network(network_text, strict=False)
    except ValueError:
        return False
    return (
        parsed_network.prefixlen >= _SHORTEST_PREFIX_BY_ADDRESS_BITS[parsed_network.max_prefixlen]
    )


PIN_LIFETIME = timedelta(days=30)
# The clocks of SQS, CloudTrail and the person who pins may differ by these times. SQS and
# CloudTrail round to the second. So times that differ by one second count as the same change, and
# times that differ by two seconds as two changes.
CLOCK_SKEW = timedelta(seconds=1)
MOST_PERSON_CLOCK_AHEAD = timedelta(minutes=5)
MOST_PERSON_CLOCK_BEHIND = timedelta(days=1)
# CloudTrail delivers "on average within about 5 minutes of an API call", and does not guarantee it:
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_DELIVERY_TIME = timedelta(minutes=20)


def digest_of_policy(policy: str) -> str:
    """Return the SHA-256 of the text's bytes in hexadecimal, as `sha256sum` prints it."""
    return hashlib.sha256(policy.encode()).hexdigest()


@dataclass(frozen=True)
class Pin:
    """A policy that a person pinned as good, byte for byte.

    Attributes:
        queue_arn: The queue.
        policy: The text of the policy.
        digest: The SHA-256 of the text.
        generation: The number of the pin. Each queue's pins are counted separately.
        pinned_at: When the person pinned it, by that person's clock.
        pinned_by: The ARN of the person.
        queue_created_at: When the queue was created. A new queue of the same name has another time.
        queue_modified_at: When the queue was last changed before the pin, by SQS's clock.
        automation: The ARNs of roles that deploy. Mendq may undo a change by these roles.
    """

    queue_arn: str
    policy: str
    digest: str
    generation: int
    pinned_at: datetime
    pinned_by: str
    queue_created_at: datetime
    queue_modified_at: datetime
    automation: tuple[str, ...] = ()

    @property
    def expires_at(self) -> datetime:
        """The time until which Mendq may restore the pin."""
        return self.pinned_at + PIN_LIFETIME

    @property
    def since(self) -> datetime:
        """The time from which the queue's changes must be read to check the pin.

        It is the queue's last change before the pin by SQS's clock, because the person's clock may
        be wrong. But it is at most a day before `pinned_at`.
        """
        return max(self.queue_modified_at, self.pinned_at - MOST_PERSON_CLOCK_BEHIND)

    def document(self) -> dict[str, Any]:
        """Return the pin as a JSON object, for the case store and `mendq policy pin --json`."""
        value_by_field = {
            **vars(self),
            "expires_at": self.expires_at,
            "automation": list(self.automation),
        }
        formatted_time_by_field = {
            name: format_time(value)
            for name, value in value_by_field.items()
            if isinstance(value, datetime)
        }
        return value_by_field | formatted_time_by_field


@dataclass(frozen=True)
class QueueChange:
    """A successful change of a queue in CloudTrail's records.

    Attributes:
        at: When the change was made.
        event_name: The call, such as `SetQueueAttributes`.
        principal_arn: The role or user that made the change, or an AWS service; "unknown" if
            CloudTrail names none.
        attributes: The attributes that the change set.
        may_change_policy: True if the change may have changed the policy.
        by_cloudformation: True if AWS itself records CloudFormation as the caller.
        earlier_changes: Some earlier changes, newest first. They are given only with a queue's last
            change (`RecentQueueChanges.find_last_change`).
    """

    at: datetime
    event_name: str
    principal_arn: str
    attributes: tuple[str, ...] = ()
    may_change_policy: bool = True
    by_cloudformation: bool = False
    earlier_changes: tuple[QueueChange, ...] = ()

    @property
    def who(self) -> str:
        """The caller's name for people: `CloudFormation`, or `principal_arn`."""
        return "CloudFormation" if self.by_cloudformation else self.principal_arn


@dataclass(frozen=True)
class CheckedPin:
    """A pin, and the reason why Mendq may not restore it, if there is one.

    Attributes:
        pin: The pin; None if it cannot be read.
        doubt: Why Mendq may not restore the pin; empty if Mendq may restore it.
        may_doubt_pass: True if the doubt may pass soon, when CloudTrail reports more changes.
        deployment_change: The deployment's change of the policy that Mendq would undo; None if
            there is a doubt.
    """

    pin: Pin | None
    doubt: str = ""
    may_doubt_pass: bool = False
    deployment_change: QueueChange | None = None

    @property
    def is_good(self) -> bool:
        """True if the pin may be restored."""
        return not self.doubt


def find_pin_doubt_without_history(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime
) -> str | None:
    """Return why Mendq may not restore a pin; None if the pin itself gives no reason.

    If the result is None, `check_pin` must still check who changed the queue since the pin.

    Args:
        pin: The pin.
        queue_arn: The queue whose policy would be restored.
        created_at: When this queue was created; None if it is not known.
        now: The present time.
    """
    if digest_of_policy(pin.policy) != pin.digest:
        return "its text is not the one that its digest is of"
    if (pin.queue_arn, pin.queue_created_at) != (queue_arn, created_at):
        return "it is of another queue of that name"
    if now >= pin.expires_at:
        return f"it expired at {pin.expires_at:%Y-%m-%d %H:%M} UTC"
    if pin.pinned_at > now + MOST_PERSON_CLOCK_AHEAD:
        return "it was pinned in the future: the clock of whoever pinned it is wrong"
    return None


def check_pin(
    pin: Pin, changes: Sequence[QueueChange] | str, modified_at: datetime | None, now: datetime
) -> CheckedPin:
    """Return the pin, with the reason if the queue's changes forbid to restore it.

    Call this only if the queue's policy differs from the pin. Mendq may only undo a deployment's
    change of the policy, never a person's. CloudTrail records a change only after minutes, so its
    records must already contain the last change that SQS reports.

    Args:
        pin: The pin.
        changes: The changes since `pin.since` in any order, or the reason why they are not known.
        modified_at: When the queue was last changed, by SQS's clock; None if SQS does not report
            it.
        now: The present time.
    """
    if isinstance(changes, str):
        return CheckedPin(pin, f"nobody can say who changed the policy since: {changes}")
    last_change_before_pin_at = pin.queue_modified_at + CLOCK_SKEW
    changes_since_pin = sorted(
        (change for change in changes if change.at > last_change_before_pin_at),
        key=lambda change: change.at,
    )
    policy_changes = [change for change in changes_since_pin if change.may_change_policy]
    changes_by_others = [change for change in policy_changes if not _is_by_deployment(change, pin)]
    if changes_by_others:
        last_change = changes_by_others[-1]
        change_text = f"{last_change.event_name}, {_format_time(last_change.at)}"
        return CheckedPin(pin, f"{last_change.who} has changed it since ({change_text})")
    if modified_at is None:
        return CheckedPin(pin, "SQS does not say when the queue was last changed")
    missing_records = _describe_missing_records(changes_since_pin, modified_at, now)
    if missing_records:
        return CheckedPin(pin, *missing_records)
    if not policy_changes:
        return CheckedPin(
            pin, "the policy is another one, and CloudTrail knows nobody who changed it"
        )
    return CheckedPin(pin, deployment_change=policy_changes[-1])


def _is_by_deployment(change: QueueChange, pin: Pin) -> bool:
    """Return True if CloudFormation or a role in the pin's `automation` made the change."""
    return change.by_cloudformation or change.principal_arn in pin.automation


def _describe_missing_records(
    later_changes: Sequence[QueueChange], modified_at: datetime, now: datetime
) -> tuple[str, bool] | None:
    """Return a text and a flag if CloudTrail may not have recorded all changes yet; otherwise None.

    The flag is True if waiting may help, because CloudTrail may still record them.
    """
    if not later_changes or later_changes[-1].at < modified_at - CLOCK_SKEW:
        doubt_text = (
            f"CloudTrail does not tell who changed the queue at {_format_time(modified_at)}"
        )
        return doubt_text, now - modified_at < CLOUDTRAIL_DELIVERY_TIME
    last_change_at = max(later_changes[-1].at, modified_at)
    if now - last_change_at < CLOUDTRAIL_DELIVERY_TIME:
        records_complete_at = _format_time(last_change_at + CLOUDTRAIL_DELIVERY_TIME)
        doubt_text = (
            f"the queue was changed at {_format_time(last_change_at)}, and CloudTrail may tell"
        )
        return f"{doubt_text} of more until {records_complete_at}", True
    return None


def _format_time(time: datetime) -> str:
    """Return a time as text for people, such as `2026-11-28 08:00:03 UTC`."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
