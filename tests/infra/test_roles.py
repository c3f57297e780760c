"""Every role allows the calls of its Lambda, and each grant is needed by a call.

The calls are recorded while the product's code does its work. The emulator answers for IAM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from tests.infra.aws_calls import Call, CallRecorder, make_recorder
from tests.infra.case_runs import approving, following_up, healing, probing, rolling_back
from tests.infra.named_calls import list_named_operations
from tests.infra.nightly_runs import delivering, starting_a_nightly, watching_a_nightly
from tests.infra.owner_runs import (
    attaching,
    heal_all_findings,
    redriving_messages,
    restoring,
    scanning,
)
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, SETTINGS, Template, as_list, template_of

# By role and reason: the grants that no recorded call needs, as action and resource without the
# template's hash, and the operations in code that a Lambda can reach but never calls.
_UNCALLED = json.loads(Path(__file__).with_name("uncalled.json").read_text())
# The actions that Lambda itself uses to write logs and to send failed events to the function's DLQ,
# by the suffix of the resource's name. CDK allows two more actions for the DLQ.
_BY_LAMBDA = {
    "Log": ("logs:CreateLogStream", "logs:PutLogEvents"),
    "Dlq": ("sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
}


def _list_uncalled(kind: str, role: str) -> set[str]:
    items_by_reason = _UNCALLED[kind].get(role, {})
    return set(chain.from_iterable(items_by_reason.values()))


LAMBDAS: Mapping[str, Callable[[], CallRecorder]] = {
    "heal": partial(healing, heal_all_findings),
    "restore_policy": restoring,
    "attach_dlq": attaching,
    "redrive": redriving_messages,
    "start_nightly": starting_a_nightly,
    "watch_nightly": watching_a_nightly,
    "deliver_report": delivering,
    "follow_up": following_up,
    "approve": approving,
    "rollback": rolling_back,
    "scan": scanning,
    "probe": probing,
    "template_hook": partial(make_recorder, {}),  # it makes no AWS call
}
# Roles whose calls need Spark, which is slow, by the file of tests that checks them both ways.
TEST_FILE_BY_SPARK_ROLE = {"nightly": Path(__file__).with_name("test_nightly_grants.py")}


def _list_scheduler_calls() -> set[Call]:
    """EventBridge Scheduler uses the role to invoke a Lambda and to send failed events to a DLQ."""
    calls = set()
    for schedule in template_of("named").all("AWS::Scheduler::Schedule").values():
        target = schedule["Properties"]["Target"]
        calls.add(Call("lambda:InvokeFunction", target["Arn"]))
        calls.add(Call("sqs:SendMessage", target["DeadLetterConfig"]["Arn"]))
    return calls


def _list_destination_calls() -> set[Call]:
    """EventBridge uses the role to call an API destination."""
    rules = template_of("named").all("AWS::Events::Rule").values()
    targets = [target for rule in rules for target in rule["Properties"]["Targets"]]
    destinations = {target["Arn"] for target in targets if "RoleArn" in target}
    return {Call("events:InvokeApiDestination", destination) for destination in destinations}


def _list_hook_calls() -> set[Call]:
    """CloudFormation uses the hook's role to invoke the hook's Lambda."""
    hook = template_of("named").only("AWS::CloudFormation::LambdaHook")
    return {Call("lambda:InvokeFunction", hook["LambdaFunction"])}


CALLS_BY_SERVICE_ROLE = {
    "schedule": _list_scheduler_calls,
    "paging": _list_destination_calls,
    "template_hook_caller": _list_hook_calls,
}
# The roles that only some settings need.
OPTIONAL_ROLES = {"paging", "template_hook", "template_hook_caller"}


@cache
def _record_run(handler: str) -> CallRecorder:
    return LAMBDAS[handler]()


@cache
def _list_calls(role: str) -> frozenset[Call]:
    return frozenset(
        CALLS_BY_SERVICE_ROLE[role]() if role in CALLS_BY_SERVICE_ROLE else _record_run(role).calls
    )


@dataclass(frozen=True)
class Grant:
    """An allowed action on a resource, and the index of its statement in the role's policy."""

    statement: int
    action: str
    resource: str


def _list_grants(statements: Sequence[Mapping[str, Any]]) -> Iterator[Grant]:
    for n, statement in enumerate(statements):
        if statement["Effect"] == "Allow":
            for action, resource in product(
                as_list(statement["Action"]), as_list(statement["Resource"])
            ):
                yield Grant(n, action, resource)


def _remove_grant(statements: Sequence[Mapping[str, Any]], grant: Grant) -> list[Mapping[str, Any]]:
    """Return the statements without one action on one resource."""
    whole = statements[grant.statement]
    actions = [action for action in as_list(whole["Action"]) if action != grant.action]
    resources = [resource for resource in as_list(whole["Resource"]) if resource != grant.resource]
    parts = [{**whole, "Action": actions}, {**whole, "Action": grant.action, "Resource": resources}]
    retained = [part for part in parts if part["Action"] and part["Resource"]]
    return [*statements[: grant.statement], *retained, *statements[grant.statement + 1 :]]


def _is_allowed(statements: Sequence[Mapping[str, Any]], call: Call) -> bool:
    matching = [statement for statement in statements if _has_action(statement, call.action)]
    answer = decision(matching, call.action, call.resource, dict(call.tags), dict(call.keys))
    return answer == "Allow"


def _has_action(statement: Mapping[str, Any], action: str) -> bool:
    return any(fnmatchcase(action, pattern) for pattern in as_list(statement["Action"]))


def _find_unneeded_grants(role: str, settings: str) -> set[tuple[str, str]]:
    """Return action and resource of each grant without which every call is still allowed."""
    statements = _read_statements(role, settings)
    calls = list(chain.from_iterable(_list_variants(call, settings) for call in _list_calls(role)))
    allowed = [call for call in calls if _is_allowed(statements, call)]
    unneeded = set()
    for grant in _list_grants(statements):
        remaining = _remove_grant(statements, grant)
        calls_of_action = (call for call in allowed if call.action == grant.action)
        if all(_is_allowed(remaining, call) for call in calls_of_action):
            unneeded.add((grant.action, _shorten_arn(grant.resource, template_of(settings))))
    return unneeded


def _list_variants(call: Call, settings: str) -> Iterable[Call]:
    """Yield the call, and the same for a queue managed only by its tag, or only by the settings."""
    yield call
    if call.tags:
        yield replace(call, resource=f"{QUEUE_ARNS}tagged")
        for name in read_deployment_settings(SETTINGS[settings]).queues:
            resource = f"{QUEUE_ARNS}{name.replace('*', 'eu')}"
            yield replace(call, resource=resource, tags=frozenset())


def _shorten_arn(resource: str, template: Template) -> str:
    """Return the last part of an ARN, without CloudFormation's hash if the template has it."""
    name, slash, within = resource.rpartition(":")[2].partition("/")
    return f"{name[:-8] if name in template.raw['Resources'] else name}{slash}{within}"


def _read_statements(role: str, settings: str) -> list[dict[str, Any]]:
    (name,) = (name for name, purpose in _read_purposes(settings).items() if purpose == role)
    return template_of(settings).statements(name[:-8])


def _read_purposes(settings: str) -> dict[str, str]:
    """Return the purpose of each role of a template, by logical id."""
    return {
        name: resource["Properties"]["RoleName"]
        .removeprefix("mendq-")
        .removesuffix("-us-east-1")
        .replace("-", "_")
        for name, resource in template_of(settings).all("AWS::IAM::Role").items()
    }


ROLES = (*LAMBDAS, *CALLS_BY_SERVICE_ROLE)


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_role_of_the_stack_has_a_recorded_run(settings: str) -> None:
    roles = set(_read_purposes(settings).values()) | OPTIONAL_ROLES
    assert roles == {*ROLES, *TEST_FILE_BY_SPARK_ROLE}
    assert all(path.exists() for path in TEST_FILE_BY_SPARK_ROLE.values())
    assert set(ROLES) >= {*_UNCALLED["granted"], *_UNCALLED["named"]}


@pytest.mark.parametrize("handler", LAMBDAS)
def test_recorded_run_of_each_lambda_makes_all_aws_calls_in_its_code_except_the_listed_ones(
    handler: str,
) -> None:
    named = list_named_operations(handler)
    assert named - _record_run(handler).operations == _list_uncalled("named", handler)
    assert _record_run(handler).operations <= named


@pytest.mark.parametrize("role", ROLES)
def test_every_role_allows_each_aws_call_its_lambda_makes(role: str) -> None:
    statements = _read_statements(role, "named")
    assert [call for call in _list_calls(role) if not _is_allowed(statements, call)] == []


@pytest.mark.parametrize("role", ROLES)
def test_removing_any_grant_of_a_role_denies_a_call_unless_the_grant_has_a_listed_reason(
    role: str,
) -> None:
    unneeded: set[str] = set()
    for settings in SETTINGS:
        if role in _read_purposes(settings).values():
            for action, resource in _find_unneeded_grants(role, settings):
                unneeded.add(f"{action} {resource}")
    name = role.title().replace("_", "")
    used_by_lambda = set()
    for suffix, actions in _BY_LAMBDA.items():
        used_by_lambda |= {f"{action} {name}{suffix}" for action in actions}
    assert unneeded - used_by_lambda == _list_uncalled("granted", role)
