"""What CloudFormation would refuse or throw away, between the version before and this one."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.account.account import moto_account
from tests.infra import previous_version
from tests.infra.synthesized import template_of, templates_of_three

# What cannot be changed without a new resource in the old one's place.
FIXED = {"AWS::DynamoDB::Table": ("TableName", "KeySchema"), "AWS::S3::Bucket": ("BucketName",)}
NAMES = {
    "AWS::IAM::Role": "RoleName",
    "AWS::CloudTrail::Trail": "TrailName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::CompositeAlarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
}
# Lambda allows one of a queue and a function.
MAPPING = "AWS::Lambda::EventSourceMapping"
Resources = Mapping[str, Any]


def lost(before: Resources, after: Resources) -> Iterator[str]:
    """What is kept and would begin anew, empty."""
    for name, old in before.items():
        if old["Type"] in FIXED:
            new = after.get(name, {"Type": "nothing", "Properties": {}})
            if new["Type"] != old["Type"]:
                yield f"{name} is {new['Type']}"
            for fixed in FIXED[old["Type"]]:
                if old["Properties"].get(fixed) != new["Properties"].get(fixed):
                    yield f"{name} has another {fixed}"


def in_the_way(before: Resources, after: Resources) -> Iterator[str]:
    """Names that the new resource wants before CloudFormation deletes the old one."""
    held = {_name(each): logical_id for logical_id, each in before.items() if _name(each)}
    for logical_id, each in after.items():
        if held.get(_name(each), logical_id) != logical_id:
            yield f"{logical_id} wants the name of {held[_name(each)]}"


def _name(resource: Resources) -> tuple[str, str] | None:
    if resource["Type"] == MAPPING:
        both = [resource["Properties"][each] for each in ("EventSourceArn", "FunctionName")]
        return MAPPING, json.dumps(both)
    name = resource["Properties"].get(NAMES.get(resource["Type"], ""))
    return (resource["Type"], name) if isinstance(name, str) else None


def _before() -> Any:
    return previous_version.template()["Resources"]


def _after() -> Any:
    return copy.deepcopy(template_of("default").raw["Resources"])


def test_update_from_the_previous_version_replaces_no_retained_resource_and_reuses_no_name() -> (
    None
):
    assert list(lost(_before(), _after())) == []
    assert list(in_the_way(_before(), _after())) == []
    assert previous_version.template()["Outputs"].keys() <= template_of("default").outputs.keys()


def test_case_store_reads_items_that_the_previous_version_wrote() -> None:
    with moto_account() as account:
        for item in previous_version.case_store_items():
            account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=item)
        queue_arn = f"arn:aws:sqs:us-east-1:000000000000:{previous_version.QUEUE}"
        symptom, attribute = "visibility_timeout_too_short", "VisibilityTimeout"
        view = account.run().case_store.look(queue_arn, symptom, (attribute,))
        case = view.case
        assert case is not None
        assert case.steps == ({"attribute": attribute, "before": "2", "after": "3"},)
        assert view.record_of(attribute).person_value == "2"


def test_adding_environments_keeps_the_resources_of_the_single_stack() -> None:
    """But for permissions, of which a function may have two alike for a moment."""
    one = {name for name, each in _after().items() if each["Type"] != "AWS::Lambda::Permission"}
    for each in templates_of_three():
        of_many = each.raw["Resources"]
        assert one <= of_many.keys()
        assert list(in_the_way(_after(), of_many)) == []
        assert list(lost(_after(), of_many)) == []
