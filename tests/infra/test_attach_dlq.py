"""attach_dlq: what it knows, which queues it may write, and which it may make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.model.facts import read_actions
from mendq.model.settings import AttachDlqSettings, HealSettings
from mendq.model.steps import Owner
from tests.infra.permissions import decision
from tests.infra.synthesized import CALENDAR, QUEUE_ARNS, SETTINGS, template_of

NAME = "AttachDlq"
SET, CREATE = "sqs:SetQueueAttributes", "sqs:CreateQueue"
ORDERS, NOT_NAMED = f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}not-named"
OWN = [
    symptom
    for symptom in CATALOGUE
    if any(step.owner is Owner.ATTACH_DLQ for step in symptom.steps)
]


def _function(name: str = NAME, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", name)


def _may(
    settings: str,
    action: str,
    resource: str,
    tags: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> str:
    return decision(template_of(settings).statements(f"{NAME}Role"), action, resource, tags, keys)


@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_while_nothing_may_act_it_can_neither_write_nor_make(tags: dict[str, str]) -> None:
    for action in (SET, CREATE):
        assert _may("default", action, NOT_NAMED, tags) == "ImplicitDeny"


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
    for action in (SET, CREATE):
        assert _may("named", action, ORDERS, {"mendq": tag}) == "Deny"


def test_a_queue_is_made_under_any_name_of_this_account_and_region_and_without_tags() -> None:
    assert _may("tagged", CREATE, f"{QUEUE_ARNS}any-name") == "Allow"
    assert _may("tagged", CREATE, f"{QUEUE_ARNS}n", keys={"aws:TagKeys": "team"}) == "ImplicitDeny"
    for elsewhere in (
        "arn:aws:sqs:us-east-1:444455556666:any-name",
        "arn:aws:sqs:eu-west-1:111122223333:any-name",
    ):
        assert _may("tagged", CREATE, elsewhere) == "ImplicitDeny"


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_our_own_queues_are_neither_written_nor_made(settings: str, tags: dict[str, str]) -> None:
    for queue in template_of(settings).all("AWS::SQS::Queue"):
        for action in (SET, CREATE):
            assert _may(settings, action, f"{QUEUE_ARNS}{queue}", tags) == "Deny"


@pytest.mark.parametrize(
    "action",
    [
        "sqs:SendMessage",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:PurgeQueue",
        "sqs:DeleteQueue",
        "sqs:AddPermission",
        "sqs:TagQueue",
        "sqs:StartMessageMoveTask",
        "kms:CreateGrant",
        "kms:PutKeyPolicy",
    ],
)
def test_it_may_do_nothing_else(action: str) -> None:
    assert _may("named", action, ORDERS, {"mendq": "heal"}) == "ImplicitDeny"


@pytest.mark.parametrize("name", ["Heal", "Rollback", "FollowUp", "Approve"])
def test_nobody_else_makes_queues(name: str) -> None:
    for settings in SETTINGS:
        statements = template_of(settings).statements(f"{name}Role")
        assert decision(statements, CREATE, NOT_NAMED, {"mendq": "heal"}) == "ImplicitDeny"


def test_it_may_look_as_its_facts_need() -> None:
    assert OWN
    resources = {
        "queue": NOT_NAMED,
        "function": "arn:aws:lambda:us-east-1:111122223333:function:consumer",
        "any": "*",
    }
    for look in read_actions(need for symptom in OWN for need in symptom.every_need):
        assert _may("default", look.iam_action, resources[look.resource]) == "Allow"


def test_only_the_calendars_that_are_set_may_be_asked() -> None:
    assert _may("default", "ssm:GetCalendarState", CALENDAR) == "ImplicitDeny"
    assert _may("named", "ssm:GetCalendarState", CALENDAR) == "Allow"


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_knows_what_heal_knows_of_modes_and_queues(settings: str) -> None:
    variables = _function(settings=settings)["Environment"]["Variables"]
    read = AttachDlqSettings.from_environment(variables)
    assert variables == read.to_environment(), "and it gets nothing beside it"
    heal = HealSettings.from_environment(_function("Heal", settings)["Environment"]["Variables"])
    assert variables == {
        name: text for name, text in heal.to_environment().items() if name in variables
    }


def test_it_runs_its_own_handler_under_a_literal_name() -> None:
    assert _function()["Handler"] == "functions.attach_dlq.handler"
    role = template_of("default").only("AWS::IAM::Role", f"{NAME}Role")
    assert role["RoleName"] == "mendq-attach-dlq-us-east-1"


def test_approve_waits_longer_than_it_may_take() -> None:
    assert _function("Approve")["Timeout"] >= _function()["Timeout"] + 15
