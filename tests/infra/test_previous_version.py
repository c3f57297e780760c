"""CloudFormation can update the previous version's stack without losing data or refusing a name."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.account.account import moto_account
from tests.infra import previous_version
from tests.infra.synthesized import template_of, templates_of_three

# Properties whose change makes CloudFormation replace the resource.
REPLACING_PROPERTIES = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema"),
    "AWS::S3::Bucket": ("BucketName",),
}
NAME_PROPERTY_BY_TYPE = {
    "AWS::IAM::Role": "RoleName",
    "AWS::CloudTrail::Trail": "TrailName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::CompositeAlarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
}
# Lambda allows one event source mapping for a queue and a function.
MAPPING = "AWS::Lambda::EventSourceMapping"
Resources = Mapping[str, Any]


def list_replaced_resources(before: Resources, after: Resources) -> Iterator[str]:
    """Yield the retained resources that the update would replace by new, empty ones."""
    for name, old in before.items():
        if old["Type"] in REPLACING_PROPERTIES:
            new = after.get(name, {"Type": "nothing", "Properties": {}})
            if new["Type"] != old["Type"]:
                yield f"{name} is {new['Type']}"
            for fixed in REPLACING_PROPERTIES[old["Type"]]:
                if old["Properties"].get(fixed) != new["Properties"].get(fixed):
                    yield f"{name} has another {fixed}"


def list_name_collisions(before: Resources, after: Resources) -> Iterator[str]:
    """Yield the names that a new resource needs while an old resource still has them."""
    id_by_name: dict[tuple[str, str] | None, str] = {}
    for logical_id, resource in before.items():
        name = _read_name(resource)
        if name:
            id_by_name[name] = logical_id
    for logical_id, resource in after.items():
        if id_by_name.get(_read_name(resource), logical_id) != logical_id:
            yield f"{logical_id} wants the name of {id_by_name[_read_name(resource)]}"


def _read_name(resource: Resources) -> tuple[str, str] | None:
    if resource["Type"] == MAPPING:
        both = [resource["Properties"][key] for key in ("EventSourceArn", "FunctionName")]
        return MAPPING, json.dumps(both)
    name = resource["Properties"].get(NAME_PROPERTY_BY_TYPE.get(resource["Type"], ""))
    return (resource["Type"], name) if isinstance(name, str) else None


def _read_resources_before() -> Any:
    return previous_version.read_template()["Resources"]


def _read_resources_now() -> Any:
    return copy.deepcopy(template_of("default").raw["Resources"])


def test_update_from_the_previous_version_replaces_no_table_or_bucket() -> None:
    assert list(list_replaced_resources(_read_resources_before(), _read_resources_now())) == []


def test_update_from_the_previous_version_gives_no_new_resource_the_name_of_an_old_one() -> None:
    """CloudFormation creates new resources before it deletes old ones, so the update would fail."""
    assert list(list_name_collisions(_read_resources_before(), _read_resources_now())) == []


def test_update_from_the_previous_version_keeps_every_stack_output() -> None:
    assert (
        previous_version.read_template()["Outputs"].keys() <= template_of("default").outputs.keys()
    )


def test_case_store_reads_items_that_the_previous_version_wrote() -> None:
    with moto_account() as account:
        for item in previous_version.read_case_store_items():
            account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=item)
        queue_arn = f"arn:aws:sqs:us-east-1:000000000000:{previous_version.QUEUE}"
        symptom = "visibility_timeout_too_short"
        attribute = "VisibilityTimeout"
        view = account.run().case_store.look(queue_arn, symptom, (attribute,))
        case = view.case
        assert case is not None
        assert case.steps == ({"attribute": attribute, "before": "2", "after": "3"},)
        assert view.record_of(attribute).person_value == "2"


def test_adding_environments_keeps_the_resources_of_the_single_stack() -> None:
    """Permissions are left out: a function may have two equal ones during an update."""
    single_stack = {
        name
        for name, resource in _read_resources_now().items()
        if resource["Type"] != "AWS::Lambda::Permission"
    }
    for template in templates_of_three():
        resources = template.raw["Resources"]
        assert single_stack <= resources.keys()
        assert list(list_name_collisions(_read_resources_now(), resources)) == []
        assert list(list_replaced_resources(_read_resources_now(), resources)) == []
