"""restore_policy: what it knows, which queues it may write, and what it may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mendq.model.facts import POLICY_CHECKS
from mendq.model.settings import HealSettings, RestorePolicySettings
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, SETTINGS, template_of

NAME = "RestorePolicy"
SET = "sqs:SetQueueAttributes"
ORDERS, NOT_NAMED = f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}not-named"


def _function(name: str = NAME, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", name)


def _may(settings: str, action: str, resource: str, tags: Mapping[str, str] | None = None) -> str:
    return decision(template_of(settings).statements(f"{NAME}Role"), action, resource, tags)


@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_while_nothing_may_act_it_cannot_write(tags: dict[str, str]) -> None:
    assert _may("default", SET, ORDERS, tags) == "ImplicitDeny"


@pytest.mark.parametrize("settings", ["tagged", "proposing", "named"])
@pytest.mark.parametrize("tag", ["propose", "heal"])
def test_a_queue_whose_tag_lets_it_is_written(settings: str, tag: str) -> None:
    assert _may(settings, SET, NOT_NAMED, {"mendq": tag}) == "Allow"


def test_a_queue_that_the_settings_name_is_written_and_no_other() -> None:
    assert _may("named", SET, ORDERS) == "Allow"
    assert _may("named", SET, NOT_NAMED) == "ImplicitDeny"
    assert _may("tagged", SET, ORDERS) == "ImplicitDeny"


@pytest.mark.parametrize("tag", ["observe", "off", "Heal", ""])
def test_a_tag_that_says_anything_else_forbids_it(tag: str) -> None:
    assert _may("named", SET, ORDERS, {"mendq": tag}) == "Deny"


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_our_own_queues_are_never_written(settings: str, tags: dict[str, str]) -> None:
    for queue in template_of(settings).all("AWS::SQS::Queue"):
        assert _may(settings, SET, f"{QUEUE_ARNS}{queue}", tags) == "Deny"


@pytest.mark.parametrize(
    "action",
    [
        "sqs:AddPermission",
        "sqs:CreateQueue",
        "sqs:DeleteQueue",
        "sqs:PurgeQueue",
        "sqs:SendMessage",
        "sqs:ReceiveMessage",
        "sqs:TagQueue",
        "kms:PutKeyPolicy",
        "access-analyzer:CreateAnalyzer",
        "dynamodb:Scan",
    ],
)
def test_it_may_do_nothing_else(action: str) -> None:
    for resource in (ORDERS, "*"):
        assert _may("named", action, resource, {"mendq": "heal"}) == "ImplicitDeny"


def test_it_alone_asks_access_analyzer() -> None:
    for check in POLICY_CHECKS:
        assert _may("default", check.iam_action, "*") == "Allow"
        for name in ("Heal", "AttachDlq", "Rollback", "FollowUp", "Approve", "Scan"):
            others = template_of("default").statements(f"{name}Role")
            assert decision(others, check.iam_action, "*") == "ImplicitDeny"


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_knows_what_heal_knows_of_modes_and_queues(settings: str) -> None:
    variables = _function(settings=settings)["Environment"]["Variables"]
    read = RestorePolicySettings.from_environment(variables)
    assert variables == read.to_environment(), "and it gets nothing beside it"
    heal = HealSettings.from_environment(_function("Heal", settings)["Environment"]["Variables"])
    assert variables == {
        name: text for name, text in heal.to_environment().items() if name in variables
    }


def test_it_runs_its_own_handler_under_a_literal_name() -> None:
    assert _function()["Handler"] == "functions.restore_policy.handler"
    role = template_of("default").only("AWS::IAM::Role", f"{NAME}Role")
    assert role["RoleName"] == "mendq-restore-policy-us-east-1"


def test_approve_waits_longer_than_it_may_take() -> None:
    assert _function("Approve")["Timeout"] >= _function()["Timeout"] + 15
