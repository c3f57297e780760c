"""CloudFormation resources that MiniStack lacks: create trails, accept others and report them.

An accepted resource gets a name and an ARN, and does nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region, new_uuid
from ministack.services import cloudtrail
from ministack.services.cloudformation import changesets, handlers, provisioners

from local_account.hooks import replace_functions

Properties = Mapping[str, Any]
ReportAccepted = Callable[[str], None]
ALARM_TYPE = "AWS::CloudWatch::Alarm"
TABLE_TYPE = "AWS::DynamoDB::Table"
TRAIL_TYPE = "AWS::CloudTrail::Trail"


def install(report_accepted: ReportAccepted) -> None:
    """Make MiniStack's CloudFormation deploy trails, and accept resources that MiniStack lacks.

    Call this once per process. `report_accepted` is called with a text for each accepted resource
    that does nothing: once for each resource type, and for each alarm on metric math.
    """
    provisioners._RESOURCE_HANDLERS[TRAIL_TYPE] = {
        "create": _create_trail,
        "update": _update_trail,
        "delete": _delete_trail,
    }
    _accept_unknown_types(report_accepted)
    _accept_metric_math_alarms(report_accepted)

    @replace_functions(provisioners._RESOURCE_HANDLERS[TABLE_TYPE], "create")
    def create_table(
        original_function: Any, logical_id: str, properties: Properties, stack_name: str
    ) -> Any:
        """Create a table. If the template does not name it, give it a new name, as AWS does.

        With a name that is the same in every deployment, a retained table would be reused.
        """
        if not properties.get("TableName") and not provisioners._NAME_SEED.get():
            provisioners._NAME_SEED.set(new_uuid()[:8])
        return original_function(logical_id, properties, stack_name)


def _accept_unknown_types(report_accepted: ReportAccepted) -> None:
    """Make CloudFormation accept AWS's resource types that MiniStack does not know."""

    @replace_functions(handlers, "validate_template_support")
    @replace_functions(changesets, "validate_template_support")
    def validate_template(
        original_function: Any,
        template: Mapping[str, Any],
        *other_arguments: Any,
        **keyword_arguments: Any,
    ) -> Any:
        for resource in (template.get("Resources") or {}).values():
            resource_type = str(resource.get("Type", "")) if isinstance(resource, dict) else ""
            if (
                resource_type.startswith("AWS::")
                and resource_type not in provisioners._RESOURCE_HANDLERS
            ):
                provisioners._RESOURCE_HANDLERS[resource_type] = _make_idle_handlers(resource_type)
                report_accepted(resource_type)
        return original_function(template, *other_arguments, **keyword_arguments)


def _accept_metric_math_alarms(report_accepted: ReportAccepted) -> None:
    """Make CloudFormation accept alarms on metric math, which MiniStack cannot create."""
    idle_alarm_handlers = _make_idle_handlers(ALARM_TYPE)

    @replace_functions(provisioners._RESOURCE_HANDLERS[ALARM_TYPE], "create", "update")
    def put_alarm(original_function: Any, identifier: str, *arguments: Any) -> Any:
        """Accept an alarm on metric math without creating it. MiniStack handles other alarms.

        Of `arguments`, a create has one mapping: the properties. An update has two: the old and the
        new properties.
        """
        property_mappings = [argument for argument in arguments if isinstance(argument, Mapping)]
        if not property_mappings[-1].get("Metrics"):
            return original_function(identifier, *arguments)
        report_accepted(f"{ALARM_TYPE} with metric math")
        action = "create" if len(property_mappings) == 1 else "update"
        return idle_alarm_handlers[action](identifier, *arguments)


def _make_idle_handlers(resource_type: str) -> dict[str, Callable[..., Any]]:
    """Return CloudFormation handlers for a resource type that is accepted and does nothing."""

    def create(logical_id: str, properties: Properties, stack_name: str) -> Any:
        name = properties.get("Name") or properties.get("AlarmName")
        return update(str(name or f"{stack_name}-{logical_id}-{new_uuid()[:8]}"))

    def update(identifier: str, *_: object) -> Any:
        service = resource_type.split("::")[1].lower()
        arn = f"arn:aws:{service}:{get_region()}:{get_account_id()}:{identifier}"
        return identifier, {"Arn": arn}

    return {"create": create, "update": update, "delete": lambda *_: None}


def _create_trail(logical_id: str, properties: Properties, stack_name: str) -> Any:
    name = properties.get("TrailName") or f"{stack_name}-{logical_id}"
    return _put_trail("CreateTrail", name, properties)


def _update_trail(
    name: str, _old_properties: Properties, properties: Properties, _stack_name: str
) -> Any:
    return _put_trail("UpdateTrail", name, properties)


def _delete_trail(name: str, _properties: Properties) -> None:
    """Delete a trail. Do nothing if it does not exist."""
    cloudtrail._delete_trail({"Name": name})


def _put_trail(action: str, name: str, properties: Properties) -> tuple[str, dict[str, str]]:
    """Create or change a trail with MiniStack's CloudTrail calls, and switch it on or off.

    `action` is CreateTrail or UpdateTrail. Return the trail's name and its attributes, as
    CloudFormation's handlers must. The calls ignore properties that they do not know; they name the
    KMS key differently than CloudFormation.

    Raises ValueError, with the error message, if CloudTrail refuses a call.
    """
    kms_key_id = properties.get("KMSKeyId", "")
    _call_cloudtrail(action, **{**properties, "Name": name, "KmsKeyId": kms_key_id})
    for selectors_property in ("AdvancedEventSelectors", "EventSelectors"):
        if properties.get(selectors_property):
            _call_cloudtrail(
                "PutEventSelectors",
                TrailName=name,
                **{selectors_property: properties[selectors_property]},
            )
    is_logging = str(properties.get("IsLogging", "true")).lower() == "true"
    _call_cloudtrail("StartLogging" if is_logging else "StopLogging", Name=name)
    return name, {"Arn": cloudtrail._trail_arn(name), "SnsTopicArn": ""}


def _call_cloudtrail(action: str, **parameters: Any) -> None:
    status, _, answer_body = cloudtrail._DISPATCH[action](parameters)
    if status >= 400:
        raise ValueError(f"{TRAIL_TYPE}: {json.loads(answer_body)['message']}")
