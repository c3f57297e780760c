from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from mendq.catalogue import CATALOGUE
from mendq.model.facts import read_actions
from mendq.model.steps import Owner, write_actions
from tests.infra.permissions import decision
from tests.infra.synthesized import CALENDAR, QUEUE_ARNS, SETTINGS, Template, template_of

WRITES = write_actions((step for symptom in CATALOGUE for step in symptom.steps), Owner.HEAL)
READS = read_actions(need for symptom in CATALOGUE for need in symptom.every_need)
SET = "sqs:SetQueueAttributes"
NO_QUEUE = f"{QUEUE_ARNS}not-named"


def _may(name: str, action: str, resource: str, tags: Mapping[str, str] | None = None) -> str:
    return decision(template_of(name).statements("HealRole"), action, resource, tags)


def _synthesized(settings: Mapping[str, Any], folder: Path) -> Template:
    synthesize(read(settings), new_app(folder))
    return Template(json.loads((folder / "Mendq.template.json").read_text()))


def _own_queues(name: str) -> list[str]:
    return [f"{QUEUE_ARNS}{each}" for each in template_of(name).all("AWS::SQS::Queue")]


@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_while_nothing_may_act_it_cannot_write_at_all(tags: dict[str, str]) -> None:
    assert _may("default", SET, NO_QUEUE, tags) == "ImplicitDeny"


def test_an_untagged_queue_that_nobody_named_is_not_written() -> None:
    assert _may("tagged", SET, NO_QUEUE) == "ImplicitDeny"
    assert _may("named", SET, NO_QUEUE) == "ImplicitDeny"


OBSERVING = {symptom.name: "observe" for symptom in CATALOGUE if symptom.steps}


@pytest.mark.usefixtures("light_code")
@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "observe", "tagMayRaiseTo": "observe"},
        {"mode": "heal", "autonomy": OBSERVING},
        {"mode": "observe", "tagMayRaiseTo": "heal", "autonomy": OBSERVING},
    ],
)
def test_what_at_most_observes_cannot_write_at_all(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    statements = _synthesized({"queues": ["orders"], **settings}, tmp_path).statements("HealRole")
    for action in WRITES:
        for tags in ({}, {"mendq": "propose"}, {"mendq": "heal"}):
            assert decision(statements, action, f"{QUEUE_ARNS}orders", tags) == "ImplicitDeny"


@pytest.mark.parametrize("tag", ["propose", "heal"])
def test_what_a_person_approved_can_be_written_where_proposals_arise(tag: str) -> None:
    for name in ("tagged", "proposing", "named"):
        assert _may(name, SET, NO_QUEUE, {"mendq": tag}) == "Allow"
    assert _may("proposing", SET, f"{QUEUE_ARNS}orders") == "Allow"


@pytest.mark.usefixtures("light_code")
def test_a_symptom_that_at_most_proposes_is_written_once_it_is_approved(tmp_path: Path) -> None:
    proposing = {symptom.name: "propose" for symptom in CATALOGUE if symptom.steps}
    settings = {"mode": "heal", "queues": ["orders"], "autonomy": proposing}
    statements = _synthesized(settings, tmp_path).statements("HealRole")
    assert decision(statements, SET, f"{QUEUE_ARNS}orders") == "Allow"
    assert decision(statements, SET, f"{QUEUE_ARNS}orders", {"mendq": "observe"}) == "Deny"


@pytest.mark.usefixtures("light_code")
def test_what_the_settings_name_is_not_written_while_only_a_tag_may_raise_it(
    tmp_path: Path,
) -> None:
    settings = {"mode": "observe", "tagMayRaiseTo": "propose", "queues": ["orders"]}
    statements = _synthesized(settings, tmp_path).statements("HealRole")
    orders = f"{QUEUE_ARNS}orders"
    assert decision(statements, SET, orders) == "ImplicitDeny"
    assert decision(statements, SET, orders, {"mendq": "observe"}) == "Deny"
    assert decision(statements, SET, orders, {"mendq": "propose"}) == "Allow"


@pytest.mark.parametrize("mode", ["observe", "off", "Heal", ""])
def test_a_tag_that_says_anything_else_forbids_even_what_is_named(mode: str) -> None:
    assert _may("tagged", SET, NO_QUEUE, {"mendq": mode}) == "Deny"
    assert _may("named", SET, f"{QUEUE_ARNS}orders", {"mendq": mode}) == "Deny"


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("tags", [{}, {"mendq": "heal"}])
def test_our_own_queues_are_never_written(name: str, tags: dict[str, str]) -> None:
    """All that the template has: a new one is forbidden or fails here."""
    own = _own_queues(name)
    assert any("Probe" in each for each in own)
    for queue in own:
        for action in WRITES:
            assert _may(name, action, queue, tags) == "Deny", (action, queue)


def test_a_queue_of_another_account_or_region_is_not_written() -> None:
    for queue in (
        "arn:aws:sqs:us-east-1:444455556666:orders",
        "arn:aws:sqs:eu-west-1:111122223333:orders",
    ):
        assert _may("named", SET, queue, {"mendq": "heal"}) == "ImplicitDeny"


@pytest.mark.parametrize("name", ["tagged", "named"])
def test_a_queue_whose_tag_lets_it_is_written(name: str) -> None:
    for action in WRITES:
        assert _may(name, action, NO_QUEUE, {"mendq": "heal"}) == "Allow"


@pytest.mark.parametrize("queue", ["orders", "billing-eu", "billing-eu.fifo"])
def test_a_queue_that_the_settings_name_is_written(queue: str) -> None:
    assert _may("named", SET, f"{QUEUE_ARNS}{queue}") == "Allow"


@pytest.mark.parametrize("queue", ["orders-eu", "billing", "xorders"])
def test_a_queue_whose_name_is_only_like_a_named_one_is_not(queue: str) -> None:
    assert _may("named", SET, f"{QUEUE_ARNS}{queue}") == "ImplicitDeny"


@pytest.mark.usefixtures("light_code")
def test_the_policies_fit_iam_however_many_queues_are_named(tmp_path: Path) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
    names = [f"orders-{number:03}" for number in range(200)]
    template = _synthesized({"mode": "heal", "queues": names}, tmp_path)
    inline = _policy_characters(template, "AWS::IAM::Policy")
    managed = _policy_characters(template, "AWS::IAM::ManagedPolicy")
    assert max(map(sum, inline.values())) <= 10_240
    assert managed
    assert max(map(max, managed.values())) <= 6_144
    assert max(map(len, managed.values())) <= 10


def _policy_characters(template: Template, kind: str) -> dict[str, list[int]]:
    """By role, the size of each of its policies."""
    sizes = defaultdict[str, list[int]](list)
    for policy in template.all(kind).values():
        document = json.dumps(policy["Properties"]["PolicyDocument"], separators=(",", ":"))
        for role in policy["Properties"]["Roles"]:
            sizes[role].append(len(document))
    return sizes


def test_it_may_look_as_its_facts_need() -> None:
    for look in READS:
        resource = {
            "queue": NO_QUEUE,
            "function": "arn:aws:lambda:us-east-1:111122223333:function:consumer",
            "any": "*",
        }[look.resource]
        assert _may("default", look.iam_action, resource) == "Allow", look.iam_action


def test_what_it_may_do_on_any_resource_is_looking() -> None:
    everywhere = {
        action
        for name in SETTINGS
        for statement in template_of(name).statements("HealRole")
        if statement["Resource"] == "*"
        for action in _as_list(statement["Action"])
    }
    assert everywhere == {look.iam_action for look in READS if look.resource == "any"}


@pytest.mark.parametrize(
    "action",
    [
        "SendMessage",
        "PurgeQueue",
        "DeleteQueue",
        "AddPermission",
        "TagQueue",
        "StartMessageMoveTask",
    ],
)
def test_it_may_do_nothing_else_to_queues(action: str) -> None:
    for queue in (NO_QUEUE, *_own_queues("named")):
        assert _may("named", f"sqs:{action}", queue, {"mendq": "heal"}) != "Allow"


def test_it_takes_messages_from_the_intake_alone() -> None:
    takes = {each: _may("named", "sqs:ReceiveMessage", each) for each in _own_queues("named")}
    assert [each for each in takes if takes[each] == "Allow"] == [
        each for each in takes if ":IntakeQueue" in each
    ]


def test_the_case_store_is_read_and_written_item_by_item_and_of_one_queue_at_a_time() -> None:
    table = f"arn:{next(iter(template_of('default').all('AWS::DynamoDB::Table')))}"
    items = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
    for verb in (*items, "Query"):
        assert _may("default", f"dynamodb:{verb}", table) == "Allow"
        assert _may("default", f"dynamodb:{verb}", "arn:another") == "ImplicitDeny"
    for verb in ("Scan", "BatchWriteItem", "UpdateTable", "DeleteTable"):
        assert _may("default", f"dynamodb:{verb}", table) == "ImplicitDeny"


def test_cases_are_added_and_never_read_or_deleted() -> None:
    bucket = template_of("default").arn_of("AWS::S3::Bucket", "Cases")
    assert _may("default", "s3:PutObject", f"{bucket}/cases/dt=2026-11-21/x-1.json") == "Allow"
    assert _may("default", "s3:PutObject", f"{bucket}/elsewhere/x.json") == "ImplicitDeny"
    for action in ("s3:GetObject", "s3:DeleteObject", "s3:DeleteObjectVersion"):
        assert _may("default", action, f"{bucket}/cases/x-1.json") == "ImplicitDeny"


def test_it_publishes_to_our_two_topics_and_with_their_key_alone() -> None:
    template = template_of("default")
    for severity in ("Urgent", "Info"):
        topic = template.arn_of("AWS::SNS::Topic", f"Topics{severity}").removeprefix("arn:")
        assert _may("default", "sns:Publish", topic) == "Allow"
        assert _may("default", "sns:Subscribe", topic) == "ImplicitDeny"
    assert _may("default", "sns:Publish", "arn:another") == "ImplicitDeny"
    key = template.arn_of("AWS::KMS::Key", "Topics")
    for action in ("kms:GenerateDataKey", "kms:Decrypt"):
        assert _may("default", action, key) == "Allow"
        assert _may("default", action, "arn:another") == "ImplicitDeny"


def test_only_the_calendars_that_are_set_may_be_asked() -> None:
    ask = "ssm:GetCalendarState"
    assert _may("default", ask, CALENDAR) == "ImplicitDeny"
    assert _may("named", ask, f"{CALENDAR}-of-others") == "ImplicitDeny"
    assert _may("named", ask, CALENDAR) == "Allow"


def test_it_writes_its_own_log_alone() -> None:
    assert template_of("default").all("AWS::Logs::LogGroup")
    for group in template_of("default").all("AWS::Logs::LogGroup"):
        may = _may("default", "logs:PutLogEvents", f"arn:{group}")
        assert may == ("Allow" if group.startswith("Heal") else "ImplicitDeny")


def test_lambda_alone_may_be_it_and_its_name_is_literal() -> None:
    role = template_of("default").only("AWS::IAM::Role", "HealRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "mendq-heal-us-east-1"
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert "ManagedPolicyArns" not in role


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
