"""Both ways, for every role: what is called is allowed, and without any one grant it is not.

IAM's answers are the emulator's, to the calls that our code makes as it does its work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from tests.infra.aws_calls import Call, Recorded, recording
from tests.infra.case_runs import approving, following_up, healing, probing, rolling_back
from tests.infra.named_calls import operations_named
from tests.infra.nightly_runs import delivering, starting_a_nightly, watching_a_nightly
from tests.infra.owner_runs import attaching, found, redriven, restoring, scanning
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, SETTINGS, Template, as_list, template_of

# By role, and by the reason: what may be taken from a role although no call of our code then fails,
# as an action and a resource (one of the template's without its hash); and operations in
# definitions that a Lambda can reach and that it never calls.
_UNCALLED = json.loads(Path(__file__).with_name("uncalled.json").read_text())
# Lambda itself writes what a function logs, and parks what it gives up in the function's own DLQ,
# for which CDK allows two more; by what the resource is called after the function.
_BY_LAMBDA = {
    "Log": ("logs:CreateLogStream", "logs:PutLogEvents"),
    "Dlq": ("sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
}


def _uncalled(kind: str, role: str) -> set[str]:
    reasons = _UNCALLED[kind].get(role, {})
    return {each for listed in reasons.values() for each in listed}


LAMBDAS: Mapping[str, Callable[[], Recorded]] = {
    "heal": partial(healing, found),
    "restore_policy": restoring,
    "attach_dlq": attaching,
    "redrive": redriven,
    "start_nightly": starting_a_nightly,
    "watch_nightly": watching_a_nightly,
    "deliver_report": delivering,
    "follow_up": following_up,
    "approve": approving,
    "rollback": rolling_back,
    "scan": scanning,
    "probe": probing,
    "template_hook": partial(recording, {}),  # it asks AWS nothing
}
# Roles whose calls need Spark, which is slow, by the file of tests that checks them both ways.
TEST_FILE_BY_SPARK_ROLE = {"nightly": Path(__file__).with_name("test_nightly_grants.py")}


def _scheduled() -> set[Call]:
    """EventBridge Scheduler takes on the role to start a Lambda, and to park what it gives up."""
    calls = set()
    for each in template_of("named").all("AWS::Scheduler::Schedule").values():
        target = each["Properties"]["Target"]
        calls.add(Call("lambda:InvokeFunction", target["Arn"]))
        calls.add(Call("sqs:SendMessage", target["DeadLetterConfig"]["Arn"]))
    return calls


def _paged() -> set[Call]:
    """EventBridge takes on the role to call an API destination."""
    rules = template_of("named").all("AWS::Events::Rule").values()
    targets = [target for each in rules for target in each["Properties"]["Targets"]]
    called = {each["Arn"] for each in targets if "RoleArn" in each}
    return {Call("events:InvokeApiDestination", each) for each in called}


def _asked() -> set[Call]:
    """CloudFormation takes on the hook's role to call the Lambda that the hook names."""
    hook = template_of("named").only("AWS::CloudFormation::LambdaHook")
    return {Call("lambda:InvokeFunction", hook["LambdaFunction"])}


BY_SERVICES = {"schedule": _scheduled, "paging": _paged, "template_hook_caller": _asked}
# Of roles that settings ask for.
OPTIONAL = {"paging", "template_hook", "template_hook_caller"}


@cache
def _recorded(handler: str) -> Recorded:
    return LAMBDAS[handler]()


@cache
def _calls(role: str) -> frozenset[Call]:
    return frozenset(BY_SERVICES[role]() if role in BY_SERVICES else _recorded(role).calls)


@dataclass(frozen=True)
class Grant:
    """An action on a resource, by the place of the Allow among a role's statements."""

    statement: int
    action: str
    resource: str


def _granted(statements: Sequence[Mapping[str, Any]]) -> Iterator[Grant]:
    for n, each in enumerate(statements):
        if each["Effect"] == "Allow":
            for action in as_list(each["Action"]):
                yield from (Grant(n, action, on) for on in as_list(each["Resource"]))


def _without(statements: Sequence[Mapping[str, Any]], taken: Grant) -> list[Mapping[str, Any]]:
    """The statements with one action on one resource taken out."""
    whole = statements[taken.statement]
    actions = [each for each in as_list(whole["Action"]) if each != taken.action]
    resources = [each for each in as_list(whole["Resource"]) if each != taken.resource]
    parts = [{**whole, "Action": actions}, {**whole, "Action": taken.action, "Resource": resources}]
    retained = [each for each in parts if each["Action"] and each["Resource"]]
    return [*statements[: taken.statement], *retained, *statements[taken.statement + 1 :]]


def _allowed(statements: Sequence[Mapping[str, Any]], call: Call) -> bool:
    about = [each for each in statements if _names(each, call.action)]
    tags, keys = dict(call.tags), dict(call.keys)
    return decision(about, call.action, call.resource, tags, keys) == "Allow"


def _names(statement: Mapping[str, Any], action: str) -> bool:
    return any(fnmatchcase(action, each) for each in as_list(statement["Action"]))


def _unneeded(role: str, settings: str) -> set[tuple[str, str]]:
    """What may be taken away and every call is allowed as before; by action and resource."""
    statements = _statements(role, settings)
    calls = list(chain.from_iterable(_wherever(each, settings) for each in _calls(role)))
    allowed = [each for each in calls if _allowed(statements, each)]
    unneeded = set()
    for grant in _granted(statements):
        fewer = _without(statements, grant)
        asked = (each for each in allowed if each.action == grant.action)
        if all(_allowed(fewer, each) for each in asked):
            unneeded.add((grant.action, _known_as(grant.resource, template_of(settings))))
    return unneeded


def _wherever(call: Call, settings: str) -> Iterable[Call]:
    """The call, and as it is about a queue known by its tag alone, or by the settings alone."""
    yield call
    if call.tags:
        yield replace(call, resource=f"{QUEUE_ARNS}tagged")
        for name in read_deployment_settings(SETTINGS[settings]).queues:
            resource = f"{QUEUE_ARNS}{name.replace('*', 'eu')}"
            yield replace(call, resource=resource, tags=frozenset())


def _known_as(resource: str, template: Template) -> str:
    """What comes after the kind; a resource of the template without CloudFormation's hash."""
    name, slash, within = resource.rpartition(":")[2].partition("/")
    return f"{name[:-8] if name in template.raw['Resources'] else name}{slash}{within}"


def _statements(role: str, settings: str) -> list[dict[str, Any]]:
    (name,) = (name for name, each in _purposes(settings).items() if each == role)
    return template_of(settings).statements(name[:-8])


def _purposes(settings: str) -> dict[str, str]:
    """By logical id, what every role of a template is for."""
    return {
        name: each["Properties"]["RoleName"]
        .removeprefix("mendq-")
        .removesuffix("-us-east-1")
        .replace("-", "_")
        for name, each in template_of(settings).all("AWS::IAM::Role").items()
    }


ROLES = (*LAMBDAS, *BY_SERVICES)


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_role_of_the_stack_has_a_recorded_run(settings: str) -> None:
    roles = set(_purposes(settings).values()) | OPTIONAL
    assert roles == {*ROLES, *TEST_FILE_BY_SPARK_ROLE}
    assert all(path.exists() for path in TEST_FILE_BY_SPARK_ROLE.values())
    assert set(ROLES) >= {*_UNCALLED["granted"], *_UNCALLED["named"]}


@pytest.mark.parametrize("handler", LAMBDAS)
def test_recorded_run_of_each_lambda_makes_every_aws_call_its_code_names(handler: str) -> None:
    named = operations_named(handler)
    assert named - _recorded(handler).operations == _uncalled("named", handler)
    assert _recorded(handler).operations <= named


@pytest.mark.parametrize("role", ROLES)
def test_every_role_allows_each_aws_call_its_lambda_makes(role: str) -> None:
    statements = _statements(role, "named")
    assert [each for each in _calls(role) if not _allowed(statements, each)] == []


@pytest.mark.parametrize("role", ROLES)
def test_removing_any_grant_of_a_role_denies_a_call_unless_the_grant_has_a_listed_reason(
    role: str,
) -> None:
    there = [each for each in SETTINGS if role in _purposes(each).values()]
    unneeded = set().union(*(_unneeded(role, settings) for settings in there))
    found = {f"{action} {resource}" for action, resource in unneeded}
    name = role.title().replace("_", "")
    by_lambda = {f"{each} {name}{kind}" for kind, some in _BY_LAMBDA.items() for each in some}
    assert found - by_lambda == _uncalled("granted", role)
