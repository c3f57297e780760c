"""follow_up, approve and rollback: what they know, and the least that they need."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.cases import view
from mendq.catalogue import CATALOGUE
from mendq.model.limits import Mode
from mendq.model.settings import (
    ApproveSettings,
    CaseSettings,
    FollowUpSettings,
    RollbackSettings,
    variable_of,
)
from mendq.model.steps import Owner, write_actions
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, SETTINGS, Template, template_of

SETTINGS_OF: dict[str, type[CaseSettings]] = {
    "FollowUp": FollowUpSettings,
    "Approve": ApproveSettings,
    "Rollback": RollbackSettings,
}
WRITES = write_actions(step for symptom in CATALOGUE for step in symptom.steps)
# What each owner's function is called in the template.
OWNERS = {
    Owner.HEAL: "HealFunction",
    Owner.ATTACH_DLQ: "AttachDlqFunction",
    Owner.RESTORE_POLICY: "RestorePolicyFunction",
    Owner.REDRIVE: "RedriveFunction",
}
# Whose work takes many minutes, so that rollback has to stop it first.
GOING_ON = {Owner.REDRIVE: OWNERS[Owner.REDRIVE]}
OWNERS_OF = {"FollowUp": OWNERS, "Approve": OWNERS, "Rollback": GOING_ON}
INVOKE = "lambda:InvokeFunction"
ORDERS = f"{QUEUE_ARNS}orders"


def _function(name: str, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", name)


def _settings(name: str, settings: str = "default") -> CaseSettings:
    variables = _function(name, settings)["Environment"]["Variables"]
    read = SETTINGS_OF[name].from_environment(variables)
    assert variables == read.to_environment(), "and it gets nothing beside them"
    return read


def _may(name: str, action: str, resource: str, settings: str = "default", **tags: str) -> str:
    statements = template_of(settings).statements(f"{name}Role")
    return decision(statements, action, resource, tags)


def _table(template: Template) -> str:
    return template.arn_of("AWS::DynamoDB::Table", "CaseStore")


def _queues(template: Template) -> list[str]:
    return [f"{QUEUE_ARNS}{each}" for each in template.all("AWS::SQS::Queue")]


@pytest.mark.parametrize("name", ["FollowUp", "Approve"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_who_only_calls_the_owner_writes_no_queue(name: str, settings: str) -> None:
    """Lambda alone sends what it gave up, under its role, to its own DLQ."""
    for queue in (ORDERS, *_queues(template_of(settings))):
        parks = {"sqs:SendMessage"} if queue.startswith(f"{QUEUE_ARNS}{name}Dlq") else set()
        for action in WRITES - parks:
            assert _may(name, action, queue, settings, mendq="heal") == "ImplicitDeny"


@pytest.mark.parametrize("name", SETTINGS_OF)
def test_owners_alone_may_be_called_and_by_rollback_what_goes_on(name: str) -> None:
    for logical_id in template_of("default").all("AWS::Lambda::Function"):
        allowed = logical_id.startswith(tuple(OWNERS_OF[name].values()))
        assert _may(name, INVOKE, f"arn:{logical_id}") == ("Allow" if allowed else "ImplicitDeny")
    assert _may(name, INVOKE, "arn:another") == "ImplicitDeny"


@pytest.mark.parametrize("name", SETTINGS_OF)
def test_the_case_store_is_moved_item_by_item_and_never_read_whole(name: str) -> None:
    table = _table(template_of("default"))
    for verb in ("GetItem", "PutItem", "DeleteItem"):
        assert _may(name, f"dynamodb:{verb}", table) == "Allow"
        assert _may(name, f"dynamodb:{verb}", "arn:another") == "ImplicitDeny"
    for verb in ("Scan", "BatchWriteItem", "UpdateTable", "DeleteTable"):
        assert _may(name, f"dynamodb:{verb}", table) == "ImplicitDeny"


def test_whoever_a_person_asks_reads_a_case_and_follow_up_need_not() -> None:
    table = _table(template_of("default"))
    for name in SETTINGS_OF:
        may = _may(name, "dynamodb:Query", table)
        assert may == ("ImplicitDeny" if name == "FollowUp" else "Allow")


def test_none_of_them_asks_for_a_freeze_in_a_claim() -> None:
    """Two write no queue, and what rollback undoes no freeze stops."""
    table = _table(template_of("default"))
    for name in SETTINGS_OF:
        assert _may(name, "dynamodb:ConditionCheckItem", table) == "ImplicitDeny"


def test_follow_up_alone_asks_the_index_of_open_cases_that_the_table_has() -> None:
    template = template_of("default")
    table = template.only("AWS::DynamoDB::Table")
    (index,) = (each["IndexName"] for each in table["GlobalSecondaryIndexes"])
    assert index == view.OPEN_CASES
    for name in SETTINGS_OF:
        may = _may(name, "dynamodb:Query", f"{_table(template)}/index/{index}")
        assert may == ("Allow" if name == "FollowUp" else "ImplicitDeny")


@pytest.mark.parametrize("name", SETTINGS_OF)
def test_transitions_are_added_to_the_case_bucket_and_never_deleted(name: str) -> None:
    bucket = template_of("default").arn_of("AWS::S3::Bucket", "Cases")
    assert _may(name, "s3:PutObject", f"{bucket}/cases/dt=2026-11-21/x-1.json") == "Allow"
    assert _may(name, "s3:PutObject", f"{bucket}/elsewhere/x.json") == "ImplicitDeny"
    assert _may(name, "s3:DeleteObject", f"{bucket}/cases/x-1.json") == "ImplicitDeny"


@pytest.mark.parametrize(
    ("settings", "tags"),
    [
        ("default", {}),
        ("default", {"mendq": "heal"}),
        ("tagged", {}),
        ("named", {"mendq": "off"}),
        ("named", {"mendq": "observe"}),
    ],
)
def test_rollback_writes_no_queue_that_heal_could_not_have_written(
    settings: str, tags: dict[str, str]
) -> None:
    for action in WRITES:
        assert _may("Rollback", action, ORDERS, settings, **tags) != "Allow"


def test_rollback_makes_no_queue() -> None:
    for settings in SETTINGS:
        assert _may("Rollback", "sqs:CreateQueue", ORDERS, settings, mendq="heal") != "Allow"


@pytest.mark.parametrize(
    ("settings", "tags"),
    [
        ("tagged", {"mendq": "heal"}),
        ("tagged", {"mendq": "propose"}),
        ("proposing", {}),
        ("proposing", {"mendq": "propose"}),
        ("named", {}),
    ],
)
def test_rollback_writes_the_queues_that_others_write(settings: str, tags: dict[str, str]) -> None:
    for name in ("Heal", "AttachDlq", "Rollback"):
        assert _may(name, "sqs:SetQueueAttributes", ORDERS, settings, **tags) == "Allow"


@pytest.mark.parametrize("settings", SETTINGS)
def test_rollback_never_writes_our_own_queues(settings: str) -> None:
    for queue in _queues(template_of(settings)):
        for action in WRITES:
            assert _may("Rollback", action, queue, settings, mendq="heal") == "Deny"


@pytest.mark.parametrize("name", SETTINGS_OF)
def test_what_it_knows_is_where_cases_lie_and_what_the_settings_say(name: str) -> None:
    settings, named = _settings(name), _settings(name, "proposing")
    assert settings.account == ACCOUNT
    assert settings.case_table.startswith("CaseStoreTable")
    assert settings.case_bucket.startswith("CasesBucket")
    assert settings.urgent_topic_arn.startswith("TopicsUrgentTopic")
    assert settings.info_topic_arn.startswith("TopicsInfoTopic")
    assert (settings.timing.probe_minutes, named.timing.probe_minutes) == (60, 20)
    if isinstance(named, FollowUpSettings):
        assert named.consent.mode is Mode.PROPOSE
    if isinstance(settings, FollowUpSettings | ApproveSettings | RollbackSettings):
        assert settings.owners.keys() == set(OWNERS_OF[name])
        for owner, function in settings.owners.items():
            assert function.startswith(OWNERS[owner])


@pytest.mark.parametrize(("name", "handler"), [("FollowUp", "follow_up"), ("Approve", "approve")])
def test_each_runs_its_own_handler_without_taking_concurrency(name: str, handler: str) -> None:
    function = _function(name)
    assert function["Handler"] == f"functions.{handler}.handler"
    assert "ReservedConcurrentExecutions" not in function


def test_approve_waits_longer_than_heal_may_take() -> None:
    assert _function("Approve")["Timeout"] >= _function("Heal")["Timeout"] + 15


def test_rollback_waits_longer_than_a_redrive_s_call_may_take() -> None:
    assert _function("Rollback")["Timeout"] >= _function("Redrive")["Timeout"] + 15


@pytest.mark.parametrize(
    ("name", "purpose"),
    [("FollowUp", "follow-up"), ("Approve", "approve"), ("Rollback", "rollback")],
)
def test_lambda_alone_may_be_it_and_its_name_is_literal(name: str, purpose: str) -> None:
    role = template_of("default").only("AWS::IAM::Role", f"{name}Role")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == f"mendq-{purpose}-us-east-1"
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_who_is_woken_by_the_clock_keeps_what_it_gives_up_for_a_person() -> None:
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", "FollowUp")
    assert 0 < config["MaximumRetryAttempts"] <= 2
    parked = config["DestinationConfig"]["OnFailure"]["Destination"]
    assert parked.startswith(f"{QUEUE_ARNS}FollowUpDlq")
    assert _may("FollowUp", "sqs:SendMessage", parked) == "Allow"


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_template_lets_a_clock_be_put_forward(settings: str) -> None:
    """Who may invoke follow_up would end cases days early."""
    functions = template_of(settings).all("AWS::Lambda::Function").values()
    known = {
        name
        for each in functions
        for name in each["Properties"].get("Environment", {}).get("Variables", {})
    }
    assert "MENDQ_OWNERS" in known
    assert variable_of("most_days_ahead") not in known
