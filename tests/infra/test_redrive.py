"""redrive: of which queues it may move messages, and of which it never can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mendq.model.limits import Bounds
from mendq.model.settings import HealSettings, RedriveSettings
from mendq.model.steps import MESSAGE_ACTIONS, STEPS, write_actions
from mendq.redrive.store import CLAIM_SECONDS
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, REGION, SETTINGS, template_of

NAME = "Redrive"
MANUAL_TRANSITIONS = (*MESSAGE_ACTIONS, "sqs:SetQueueAttributes")
ORDERS, NOT_NAMED = f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}not-named"
QUARANTINES = [f"{QUEUE_ARNS}orders-quarantine", f"{QUEUE_ARNS}orders-quarantine.fifo"]
# "named" has the prefix `billing-*`.
OF_A_PREFIX = [f"{QUEUE_ARNS}billing-quarantine", f"{QUEUE_ARNS}billing-quarantine.fifo"]
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd"
VIA_SQS = {"kms:ViaService": f"sqs.{REGION}.amazonaws.com", "kms:CallerAccount": ACCOUNT}


def _function(name: str = NAME, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", name)


def _may(
    settings: str,
    action: str,
    resource: str,
    tags: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> str:
    statements = template_of(settings).statements(f"{NAME}Role")
    return decision(statements, action, resource, tags, keys)


@pytest.mark.parametrize("action", MANUAL_TRANSITIONS)
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_while_nothing_may_act_it_cannot_move_a_message(action: str, tags: dict[str, str]) -> None:
    assert _may("default", action, ORDERS, tags) == "ImplicitDeny"


@pytest.mark.parametrize("action", ["sqs:CreateQueue", "sqs:SendMessage"])
def test_while_nothing_may_act_it_has_no_quarantine(action: str) -> None:
    assert _may("default", action, QUARANTINES[0]) == "ImplicitDeny"
    assert _may("default", "kms:Decrypt", KEY, keys=VIA_SQS) == "ImplicitDeny"


@pytest.mark.parametrize("action", MANUAL_TRANSITIONS)
@pytest.mark.parametrize("tag", ["propose", "heal"])
def test_of_a_queue_whose_tag_lets_it_messages_are_moved(action: str, tag: str) -> None:
    for settings in ("tagged", "proposing", "named"):
        assert _may(settings, action, NOT_NAMED, {"mendq": tag}) == "Allow"


@pytest.mark.parametrize("action", MANUAL_TRANSITIONS)
def test_of_a_queue_that_the_settings_name_and_of_no_other(action: str) -> None:
    assert _may("named", action, ORDERS) == "Allow"
    assert _may("named", action, NOT_NAMED) == "ImplicitDeny"
    assert _may("tagged", action, ORDERS) == "ImplicitDeny"


@pytest.mark.parametrize("action", MANUAL_TRANSITIONS)
@pytest.mark.parametrize(
    "tags",
    [
        {"mendq": "observe"},
        {"mendq": "off"},
        {"mendq": "Heal"},
        {"mendq": ""},
        {"mendq": "heal", "mendq:redrive": "off"},
        {"mendq": "heal", "mendq:redrive": "no"},
        {"mendq:redrive": "off"},
    ],
)
def test_a_tag_that_says_anything_else_forbids_it(action: str, tags: dict[str, str]) -> None:
    assert _may("named", action, ORDERS, tags) == "Deny"


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_of_our_own_queues_it_never_takes_nor_sends(settings: str, tags: dict[str, str]) -> None:
    for queue in template_of(settings).all("AWS::SQS::Queue"):
        for action in (*MANUAL_TRANSITIONS, "sqs:CreateQueue"):
            assert _may(settings, action, f"{QUEUE_ARNS}{queue}", tags) == "Deny"


@pytest.mark.parametrize("settings", ["tagged", "proposing", "named"])
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
@pytest.mark.parametrize("quarantine", OF_A_PREFIX)
def test_a_quarantine_is_made_and_sent_to_and_never_emptied(
    settings: str, tags: dict[str, str], quarantine: str
) -> None:
    """Also where a prefix in `queues` fits it, or somebody has tagged it."""
    assert _may(settings, "sqs:CreateQueue", quarantine) == "Allow"
    assert _may(settings, "sqs:SendMessage", quarantine, tags) == "Allow"
    assert _may(settings, "sqs:GetQueueAttributes", quarantine, tags) == "Allow"
    for action in set(MANUAL_TRANSITIONS) - {"sqs:SendMessage"}:
        assert _may(settings, action, quarantine, tags) == "Deny"
        assert _may(settings, action, f"{QUEUE_ARNS}billing-dlq", {"mendq": "heal"}) == "Allow"


@pytest.mark.parametrize("settings", ["tagged", "proposing", "named"])
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_no_other_lambda_touches_a_quarantine(settings: str, tags: dict[str, str]) -> None:
    for name in ("HealRole", "AttachDlqRole", "RestorePolicyRole", "RollbackRole"):
        statements = template_of(settings).statements(name)
        for quarantine in OF_A_PREFIX:
            for action in (*MANUAL_TRANSITIONS, *write_actions(STEPS)):
                assert decision(statements, action, quarantine, tags) == "Deny", name


@pytest.mark.parametrize("name", ["orders-quarantine-2", "quarantine-orders", "orders-dlq"])
def test_a_queue_of_another_name_is_not_made_nor_sent_to(name: str) -> None:
    for action in ("sqs:CreateQueue", "sqs:SendMessage"):
        assert _may("tagged", action, f"{QUEUE_ARNS}{name}") == "ImplicitDeny"


def test_a_quarantine_is_not_made_with_tags() -> None:
    keys = {"aws:TagKeys": "mendq"}
    assert _may("tagged", "sqs:CreateQueue", QUARANTINES[0], keys=keys) == "ImplicitDeny"


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
def test_keys_are_used_by_sqs_alone_on_its_behalf(action: str) -> None:
    assert _may("tagged", action, KEY, keys=VIA_SQS) == "Allow"
    assert _may("tagged", action, KEY) == "ImplicitDeny"
    elsewhere = {**VIA_SQS, "kms:ViaService": f"s3.{REGION}.amazonaws.com"}
    assert _may("tagged", action, KEY, keys=elsewhere) == "ImplicitDeny"
    assert _may("tagged", action, KEY.replace(ACCOUNT, "444455556666"), keys=VIA_SQS) != "Allow"


@pytest.mark.parametrize(
    "action",
    [
        "sqs:AddPermission",
        "sqs:DeleteQueue",
        "sqs:PurgeQueue",
        "sqs:TagQueue",
        "sqs:StartMessageMoveTask",
        "sqs:CancelMessageMoveTask",
        "kms:PutKeyPolicy",
        "kms:Encrypt",
        "lambda:InvokeFunction",
        "dynamodb:Scan",
    ],
)
def test_it_may_do_nothing_else(action: str) -> None:
    for resource in (ORDERS, "*"):
        assert _may("named", action, resource, {"mendq": "heal"}) == "ImplicitDeny"


@pytest.mark.parametrize("action", MESSAGE_ACTIONS)
def test_no_other_lambda_moves_a_message_of_a_managed_queue(action: str) -> None:
    for name in ("HealRole", "AttachDlqRole", "RestorePolicyRole", "RollbackRole"):
        statements = template_of("named").statements(name)
        assert decision(statements, action, ORDERS, {"mendq": "heal"}) == "ImplicitDeny", name


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_knows_what_heal_knows_of_modes_and_queues(settings: str) -> None:
    variables = _function(settings=settings)["Environment"]["Variables"]
    read = RedriveSettings.from_environment(variables)
    assert variables == read.to_environment(), "and it gets nothing beside it"
    assert read.bounds == Bounds()
    heal = HealSettings.from_environment(_function("Heal", settings)["Environment"]["Variables"])
    shared = {name: text for name, text in heal.to_environment().items() if name in variables}
    assert {name: variables[name] for name in shared} == shared


def test_it_runs_its_own_handler_under_a_literal_name() -> None:
    assert _function()["Handler"] == "functions.redrive.handler"
    role = template_of("default").only("AWS::IAM::Role", f"{NAME}Role")
    assert role["RoleName"] == f"mendq-redrive-{REGION}"


def test_what_a_minute_did_not_do_the_next_does_and_nobody_twice() -> None:
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", NAME)
    assert config["MaximumRetryAttempts"] == 0
    assert config["MaximumEventAgeInSeconds"] <= 60


def test_a_claim_outlasts_it() -> None:
    assert _function()["Timeout"] < CLAIM_SECONDS
