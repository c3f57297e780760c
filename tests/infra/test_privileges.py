"""What others' rules find in the roles' policies, and wildcards: nothing that has no reason."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from cloudsplaining.scan.policy_document import PolicyDocument
from policy_sentry.querying.actions import get_action_data

from infra.settings.deployment import read
from tests.infra.acknowledged_permissions import ACKNOWLEDGED, WILDCARD_WRITES
from tests.infra.synthesized import QUEUE_ARNS, REGION, SETTINGS, Template, template_of

Found = dict[str, set[tuple[str, str]]]
KINDS: Mapping[str, Callable[[PolicyDocument], Sequence[Any]]] = {
    "permissions management": lambda each: each.permissions_management_without_constraints,
    "privilege escalation": lambda each: each.allows_privilege_escalation,
    "data exfiltration": lambda each: each.allows_data_exfiltration_actions,
    "credentials": lambda each: each.credentials_exposure,
    "whole services": lambda each: each.service_wildcard,
    "all but some": lambda each: each.contains_statement_using_not_action,
}
# On a resource `*` any write and any tagging counts as well.
ON_ANYTHING = {
    **KINDS,
    "write": lambda each: each.infrastructure_modification,
    "tagging": lambda each: each.tagging_actions_without_constraints,
}
# What a write asks of the queue, the mail or the key, beside its ARN.
NARROWING = {
    "aws:ResourceTag/mendq",
    "ses:FromAddress",
    "kms:ViaService",
    "kms:EncryptionContext:aws:cloudtrail:arn",
}


def _policies(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of every role that a template has, by the role's purpose; inline ones and managed ones."""
    purposes = {
        name: each["Properties"]["RoleName"].removeprefix("mendq-").removesuffix(f"-{REGION}")
        for name, each in template.all("AWS::IAM::Role").items()
    }
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for each in template.all(kind).values():
            properties = each["Properties"]
            for role in properties["Roles"]:
                yield purposes[role], properties["PolicyDocument"]


def _splained(template: Template, kinds: Mapping[str, Any], *, strictly: bool) -> Found:
    """By role, what cloudsplaining finds; a condition is no excuse, and `strictly` no ARN."""
    found = defaultdict[str, set[tuple[str, str]]](set)
    for purpose, policy in _policies(template):
        document = PolicyDocument(
            policy, flag_conditional_statements=True, flag_resource_arn_statements=strictly
        )
        for kind, look in kinds.items():
            found[purpose].update((kind, str(each)) for each in look(document))
    return {purpose: each for purpose, each in found.items() if each}


def _wildcard_writes(template: Template) -> Found:
    """By role, what is written on more than one resource that is not ours, by an ARN alone."""
    found = defaultdict[str, set[tuple[str, str]]](set)
    for purpose, policy in _policies(template):
        for statement in policy["Statement"]:
            if statement["Effect"] == "Allow" and not _is_narrowed(statement):
                found[purpose].update(
                    (action, resource.removeprefix(QUEUE_ARNS))
                    for resource in _as_list(statement["Resource"])
                    for action in _as_list(statement["Action"])
                    if "*" in action or (_is_of_many(resource, template) and _writes(action))
                )
    return {purpose: each for purpose, each in found.items() if each}


def _is_narrowed(statement: Mapping[str, Any]) -> bool:
    """`Null: false` of a key says that it has to be there; `StringNotLike` and so on would not."""
    return any(
        operator == "StringEquals" or (operator, value) == ("Null", "false")
        for operator, tests in statement.get("Condition", {}).items()
        for key, value in tests.items()
        if key in NARROWING
    )


def _is_of_many(resource: str, template: Template) -> bool:
    """A wildcard anywhere but below a resource that the template makes."""
    owned = resource.removeprefix("arn:").partition("/")[0] in template.raw["Resources"]
    return "*" in resource and not owned


@cache
def _writes(action: str) -> bool:
    """What AWS's service authorization reference calls neither reading nor listing."""
    service, _, name = action.partition(":")
    known = get_action_data(service, name)
    assert known, f"AWS knows no {action}"
    return known[service][0]["access_level"] not in {"Read", "List"}


def _named_by_settings(settings: str) -> set[str]:
    return set(read(SETTINGS[settings]).queues)


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _seeded(statement: Mapping[str, Any]) -> Template:
    """The template with one more statement in heal's policy."""
    raw = copy.deepcopy(template_of("named").raw)
    for name, each in raw["Resources"].items():
        if each["Type"] == "AWS::IAM::Policy" and name.startswith("HealRole"):
            each["Properties"]["PolicyDocument"]["Statement"].append(
                {"Effect": "Allow", "Resource": "*", **statement}
            )
    return Template(raw)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_role_writes_anything_anywhere(settings: str) -> None:
    assert _splained(template_of(settings), ON_ANYTHING, strictly=False) == {}


def test_what_is_found_on_named_resources_has_its_reason() -> None:
    """By whatever settings; a reason that is for nothing any more goes."""
    found = defaultdict[str, set[tuple[str, str]]](set)
    for settings in SETTINGS:
        of_one = _splained(template_of(settings), KINDS, strictly=True)
        for purpose, each in of_one.items():
            found[purpose] |= each
    assert found == {purpose: set(reasons) for purpose, reasons in ACKNOWLEDGED.items()}


def test_while_nothing_may_act_no_role_manages_permissions_but_to_start_the_nightly() -> None:
    found = _splained(template_of("default"), KINDS, strictly=True)
    assert {
        purpose
        for purpose, each in found.items()
        if any(kind == "permissions management" for kind, _ in each)
    } == {"start-nightly"}


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_wildcard_is_written_that_no_condition_narrows(settings: str) -> None:
    named = _named_by_settings(settings)
    for purpose, found in _wildcard_writes(template_of(settings)).items():
        unasked = {(action, on) for action, on in found if on not in named}
        assert unasked <= WILDCARD_WRITES.get(purpose, {}).keys(), purpose


def test_every_reason_for_a_wildcard_is_still_needed() -> None:
    found = _wildcard_writes(template_of("named"))
    for purpose, reasons in WILDCARD_WRITES.items():
        assert reasons.keys() <= found[purpose]


@pytest.mark.parametrize(
    "statement",
    [
        {"Action": "sqs:*"},
        {"Action": "iam:PassRole"},
        {"Action": "sqs:TagQueue"},
        {"Action": "sqs:PurgeQueue", "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {"NotAction": "iam:*"},
    ],
)
def test_what_is_too_much_anywhere_is_found(statement: dict[str, Any]) -> None:
    assert _splained(_seeded(statement), ON_ANYTHING, strictly=False).keys() == {"heal"}


@pytest.mark.parametrize(
    "statement",
    [
        {"Action": "sqs:PurgeQueue", "Resource": f"{QUEUE_ARNS}*"},
        {"Action": "sqs:Get*", "Resource": f"{QUEUE_ARNS}orders"},
        {
            "Action": "sqs:PurgeQueue",
            "Resource": f"{QUEUE_ARNS}*",
            "Condition": {"StringNotEquals": {"aws:ResourceTag/mendq": "off"}},
        },
        {
            "Action": "kms:Decrypt",
            "Resource": f"arn:aws:kms:{REGION}:111122223333:key/*",
            "Condition": {"Null": {"kms:ViaService": "true"}},
        },
    ],
)
def test_a_wildcard_too_many_is_found(statement: dict[str, Any]) -> None:
    more = _wildcard_writes(_seeded(statement))["heal"]
    before = _wildcard_writes(template_of("named"))["heal"]
    assert len(more - before) == 1


def test_only_the_service_that_takes_it_on_may_be_a_role() -> None:
    for settings in SETTINGS:
        template = template_of(settings)
        users = _users(template)
        for name, role in template.all("AWS::IAM::Role").items():
            (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            assert trust["Effect"] == "Allow"
            assert trust["Action"] == "sts:AssumeRole"
            assert trust["Principal"] == {"Service": f"{users[name]}.amazonaws.com"}, name
            assert "ManagedPolicyArns" not in role["Properties"], name


def _users(template: Template) -> dict[str, str]:
    """By role, the service that some resource hands it to; start_nightly hands its job's on."""
    users = {}
    for each in template.all("AWS::Lambda::Function").values():
        properties = each["Properties"]
        users[properties["Role"].removeprefix("arn:")] = "lambda"
        for value in properties["Environment"]["Variables"].values():
            if value.removeprefix("arn:").startswith("NightlyRole"):
                users[value.removeprefix("arn:")] = "emr-serverless"
    for each in template.all("AWS::Scheduler::Schedule").values():
        users[each["Properties"]["Target"]["RoleArn"].removeprefix("arn:")] = "scheduler"
    return users
