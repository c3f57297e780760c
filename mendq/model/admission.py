"""Decide whether a policy admits a call, as far as the policy and the call are known.

A template leaves values open that only its deployment determines: an account, the name of a topic,
an import. Such a value has a stand-in here. So an answer has three values: the call is admitted, it
is refused, or it cannot be known. IAM's rules apply: a deny that matches refuses, otherwise an
allow that matches admits, otherwise the call is refused.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mendq.model.policy import ALL_PRINCIPALS, Statement, matches_wildcards

# Stand-ins for values that only the deployment determines. No real value equals one of them.
UNKNOWN_TEXT = "not-known"
UNKNOWN_ACCOUNT = "000000000000"
UNKNOWN_REGION = "any-region"
# Made-up names of a template's resources begin with these, and a number follows.
RESOURCE_NAME_PREFIX = "resource-"
QUEUE_NAME_PREFIX = "unnamed-"
_STAND_IN_REGEX = re.compile(
    rf"{UNKNOWN_TEXT}|{UNKNOWN_ACCOUNT}|{UNKNOWN_REGION}|stack-name"
    rf"|(?:{RESOURCE_NAME_PREFIX}|{QUEUE_NAME_PREFIX})[0-9]{{1,4}}"
)
_MADE_UP_NAME_REGEX = re.compile(rf"(?:{RESOURCE_NAME_PREFIX}|{QUEUE_NAME_PREFIX})[0-9]{{1,4}}")
_ARN_PARTS = 6
# Condition operators, without `IfExists`, that compare texts. The value is True if `*` and `?` are
# wildcards. ArnEquals has wildcards too.
_HAS_WILDCARDS_BY_OPERATOR = {
    "stringequals": False,
    "stringequalsignorecase": False,
    "stringlike": True,
    "arnequals": True,
    "arnlike": True,
    "bool": False,
}


# Condition keys that are missing in the call of a service with its own principal. A deny by such a
# key, as it is common against callers outside of a network, refuses the service too.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
_SOURCE_IP_KEY = "aws:sourceip"
_KEYS_MISSING_IN_SERVICE_CALLS = frozenset(
    {
        "aws:principalorgid",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "aws:vpcsourceip",
        # AWS does not say whether it is missing: then it is an address of AWS, in no range of a
        # policy's author.
        _SOURCE_IP_KEY,
    }
)


class Answer(Enum):
    """The answer to a question about a template, which may leave it open."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Call:
    """One call, as a policy sees it.

    Attributes:
        principal: The service, such as `sns.amazonaws.com`, the ARN of a role, or an account.
        action: The IAM action.
        resource: The ARN of the queue or key.
        context: The values of condition keys, in lower case. None: the request has the key, and its
            value is not known. A key that is missing here is not known either.
        is_of_other_account: True if another account than the template's calls.
    """

    principal: str
    action: str
    resource: str
    context: Mapping[str, str | None] = field(default_factory=dict)
    is_of_other_account: bool = False

    @property
    def is_by_service(self) -> bool:
        """True if an AWS service calls with its own principal and without a role."""
        return "amazonaws.com" in self.principal and not self.principal.startswith("arn:")

    @property
    def account(self) -> str:
        """The caller's account. Empty if a service calls."""
        if self.is_by_service:
            return ""
        return self.principal.split(":")[4] if ":" in self.principal else self.principal


def is_admitted(
    call: Call, statements: Iterable[Statement], *, is_identity: bool = False
) -> Answer:
    """Return whether the statements of one policy admit the call.

    Args:
        call: The call.
        statements: All statements of the policy.
        is_identity: True if the policy belongs to the caller, so that it names no principals.
    """
    best_allow = Answer.NO
    worst_deny = Answer.NO
    for statement in statements:
        answer = _fits(call, statement, is_identity=is_identity)
        if statement.allows:
            best_allow = _choose_stronger(best_allow, answer)
        else:
            worst_deny = _choose_stronger(worst_deny, answer)
    if worst_deny is Answer.YES or best_allow is Answer.NO:
        return Answer.NO
    return Answer.UNKNOWN if worst_deny is Answer.UNKNOWN else best_allow


def _choose_stronger(first: Answer, second: Answer) -> Answer:
    """Return YES if one of them is, otherwise UNKNOWN if one of them is, otherwise NO."""
    for answer in (Answer.YES, Answer.UNKNOWN):
        if answer in (first, second):
            return answer
    return Answer.NO


def _combine(answers: Iterable[Answer]) -> Answer:
    """Return NO if one answer is, otherwise UNKNOWN if one is, otherwise YES."""
    all_answers = set(answers)
    for answer in (Answer.NO, Answer.UNKNOWN):
        if answer in all_answers:
            return answer
    return Answer.YES


def _fits(call: Call, statement: Statement, *, is_identity: bool) -> Answer:
    """Return whether the statement applies to the call."""
    answers = [
        _negate_if(
            "Action" in statement.negated_elements, _fits_action(call.action, statement.actions)
        ),
        _negate_if(
            "Resource" in statement.negated_elements,
            _match_any(statement.resources, call.resource)
            if statement.resources
            else Answer.UNKNOWN,
        ),
    ]
    if not is_identity:
        answers.append(_fits_principal(call, statement))
    for operator, values_by_key in statement.conditions.items():
        for key, values in values_by_key.items():
            answers.append(_fits_condition(call, operator.lower(), key.lower(), values))
    return _combine(answers)


def _negate_if(is_negated: bool, answer: Answer) -> Answer:
    if not is_negated or answer is Answer.UNKNOWN:
        return answer
    return Answer.NO if answer is Answer.YES else Answer.YES


def _fits_action(action: str, patterns: Iterable[str]) -> Answer:
    return _match_any((pattern.lower() for pattern in patterns), action.lower())


def _fits_principal(call: Call, statement: Statement) -> Answer:
    """Return whether the statement names the caller.

    What a grant to the account of a role means depends on the role's own policies, and what a grant
    to a service of one region means depends on the service: both are left open.
    """
    if "Principal" in statement.negated_elements:
        return Answer.UNKNOWN
    names = statement.principals.get("Service" if call.is_by_service else "AWS", ())
    if call.principal in names or ALL_PRINCIPALS in names or statement.is_for_everybody:
        return Answer.YES
    if any(UNKNOWN_TEXT in name for name in names):
        return Answer.UNKNOWN
    best_answer = Answer.NO
    for name in names:
        answer = _fits_service(call, name) if call.is_by_service else _fits_account(call, name)
        best_answer = _choose_stronger(best_answer, answer)
    return best_answer


def _fits_service(call: Call, name: str) -> Answer:
    """Return UNKNOWN if `name` is the service's principal in one region, such as `sns.eu-...`."""
    is_same_service = name.partition(".")[0] == call.principal.partition(".")[0]
    return Answer.UNKNOWN if is_same_service and "amazonaws.com" in name else Answer.NO


def _fits_account(call: Call, name: str) -> Answer:
    """Return whether a principal's name in a policy covers a role or account."""
    named_account = name.split(":")[4] if name.count(":") >= _ARN_PARTS - 1 else name
    if named_account == call.account:
        is_whole_account = name == named_account or name.endswith(":root")
        if is_whole_account:
            return Answer.YES if call.is_of_other_account else Answer.UNKNOWN
        return Answer.UNKNOWN if call.is_of_other_account else match_text(name, call.principal)
    if call.is_of_other_account:
        return Answer.NO
    return match_text(name, call.principal)


def _fits_condition(call: Call, operator: str, key: str, values: Iterable[str]) -> Answer:
    """Return whether a condition of a statement holds for the call."""
    if call.is_by_service and key in _KEYS_MISSING_IN_SERVICE_CALLS:
        return _fits_missing_key(operator, key, values)
    if key not in call.context:
        return Answer.UNKNOWN
    value = call.context[key]
    operator = operator.removesuffix("ifexists")
    if operator == "null":
        return Answer.YES if {*values} == {"false"} else Answer.NO
    is_negated = "not" in operator
    operator = operator.replace("not", "")
    if operator not in _HAS_WILDCARDS_BY_OPERATOR:
        return Answer.UNKNOWN
    has_wildcards = _HAS_WILDCARDS_BY_OPERATOR[operator]
    if operator in ("bool", "stringequalsignorecase"):
        values = [condition_value.lower() for condition_value in values]
        value = value if value is None else value.lower()
    return _negate_if(is_negated, _match_any(values, value, has_wildcards=has_wildcards))


def _fits_missing_key(operator: str, key: str, values: Iterable[str]) -> Answer:
    """Return whether a condition holds for a call that lacks its key.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    is_about_presence = operator == "null" or operator.endswith("ifexists")
    if ":" in operator or (key == _SOURCE_IP_KEY and is_about_presence):
        return Answer.UNKNOWN
    if operator == "null":
        return Answer.YES if {*values} == {"true"} else Answer.NO
    holds = operator.endswith("ifexists") or "not" in operator
    return Answer.YES if holds else Answer.NO


def is_denied(call: Call, statements: Iterable[Statement]) -> bool:
    """Return True if a statement of the policy is known to deny the call."""
    denials = [statement for statement in statements if not statement.allows]
    return any(_fits(call, denial, is_identity=False) is Answer.YES for denial in denials)


def _match_any(patterns: Iterable[str], value: str | None, *, has_wildcards: bool = True) -> Answer:
    """Return whether one of the patterns matches the value."""
    best_answer = Answer.NO
    for pattern in patterns:
        best_answer = _choose_stronger(best_answer, match_text(pattern, value, has_wildcards))
    return best_answer


def match_text(pattern: str, value: str | None, has_wildcards: bool = True) -> Answer:
    """Return whether a pattern of a policy matches a value, as far as both are known.

    ARNs are compared part by part, so that a known part can tell them apart although another part
    is not known. A value with a policy variable (`${aws:...}`) is not known.
    """
    if has_wildcards and pattern == ALL_PRINCIPALS:
        return Answer.YES
    if value is None or "${" in pattern:
        return Answer.UNKNOWN
    if pattern == value or (has_wildcards and matches_wildcards(pattern, value)):
        return Answer.YES
    if not _STAND_IN_REGEX.search(pattern + value):
        return Answer.NO
    return _combine(
        _match_part(pattern_part, value_part, has_wildcards)
        for pattern_part, value_part in _pair_arn_parts(pattern, value)
    )


def _pair_arn_parts(pattern: str, value: str) -> list[tuple[str, str]]:
    """Return pairs of the parts of both ARNs. If one is no ARN, return both as a single pair."""
    if not (pattern.startswith("arn:") and value.startswith("arn:")):
        return [(pattern, value)]
    pattern_parts = pattern.split(":", _ARN_PARTS - 1)
    value_parts = value.split(":", _ARN_PARTS - 1)
    missing_part_count = len(value_parts) - len(pattern_parts)
    if missing_part_count > 0 and pattern_parts[-1].endswith("*"):
        pattern_parts += ["*"] * missing_part_count
    if len(pattern_parts) != len(value_parts):
        return [(pattern, value)]
    return list(zip(pattern_parts, value_parts, strict=True))


def _match_part(pattern: str, value: str, has_wildcards: bool) -> Answer:
    """Return whether one part of an ARN matches, if one of them may have a stand-in."""
    if pattern == value or (has_wildcards and matches_wildcards(pattern, value)):
        return Answer.YES
    if _has_other_depth(pattern, value):
        return Answer.NO
    pattern_stand_ins = _STAND_IN_REGEX.findall(pattern)
    value_stand_ins = _STAND_IN_REGEX.findall(value)
    if sorted(pattern_stand_ins) == sorted(value_stand_ins):
        return Answer.NO
    if _MADE_UP_NAME_REGEX.search(pattern) and _MADE_UP_NAME_REGEX.search(value):
        # Each made-up name is the name of another resource of the template.
        return Answer.NO
    return Answer.UNKNOWN


def _has_other_depth(pattern: str, value: str) -> bool:
    """Return True if two names with `/` have different numbers of parts, so that they differ.

    The name of a rule on an event bus has one more part than that of a rule on the default bus.
    """
    is_exact = "*" not in pattern and "?" not in pattern
    are_parts_known = UNKNOWN_TEXT not in pattern + value
    return is_exact and are_parts_known and pattern.count("/") != value.count("/")
