"""Resource types that MiniStack cannot deploy: trails are created, others accepted and listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region, new_uuid
from ministack.services import cloudtrail
from ministack.services.cloudformation import changesets, handlers, provisioners

from local_account.hooks import around

Properties = Mapping[str, Any]
ListAccepted = Callable[[str], None]
ALARM = "AWS::CloudWatch::Alarm"
TABLE = "AWS::DynamoDB::Table"
TRAIL = "AWS::CloudTrail::Trail"


def install(list_accepted: ListAccepted) -> None:
    """Make MiniStack's CloudFormation deploy trails, and accept types that MiniStack lacks.

    Call this once per process. `list_accepted` is called with each resource type that is accepted
    and does nothing.
    """
    provisioners._RESOURCE_HANDLERS[TRAIL] = {
        "create": _create_trail,
        "update": _update_trail,
        "delete": _delete_trail,
    }
    _accept_other_types(list_accepted)

    @around(provisioners._RESOURCE_HANDLERS[TABLE], "create")
    def create_table(inner: Any, logical_id: str, properties: Properties, stack: str) -> Any:
        """Give each new table a new name, as AWS does, so that a retained table is not reused."""
        if not properties.get("TableName") and not provisioners._NAME_SEED.get():
            provisioners._NAME_SEED.set(new_uuid()[:8])
        return inner(logical_id, properties, stack)


def _accept_other_types(list_accepted: ListAccepted) -> None:
    """Accept the resource types that MiniStack does not know, and alarms on metric math."""

    @around(handlers, "validate_template_support")
    @around(changesets, "validate_template_support")
    def validate(inner: Any, template: Mapping[str, Any], *rest: Any, **keywords: Any) -> Any:
        for resource in (template.get("Resources") or {}).values():
            kind = str(resource.get("Type", "")) if isinstance(resource, dict) else ""
            if kind.startswith("AWS::") and kind not in provisioners._RESOURCE_HANDLERS:
                provisioners._RESOURCE_HANDLERS[kind] = _idle_handlers(kind)
                list_accepted(kind)
        return inner(template, *rest, **keywords)

    idle_alarm = _idle_handlers(ALARM)

    @around(provisioners._RESOURCE_HANDLERS[ALARM], "create", "update")
    def put_alarm(inner: Any, name: str, *arguments: Any) -> Any:
        """Accept an alarm on metric math, and let MiniStack create every other one.

        A create has one mapping, the properties. An update has the old and the new properties.
        """
        mappings = [argument for argument in arguments if isinstance(argument, Mapping)]
        if not mappings[-1].get("Metrics"):
            return inner(name, *arguments)
        list_accepted(f"{ALARM} with metric math")
        action = "create" if len(mappings) == 1 else "update"
        return idle_alarm[action](name, *arguments)


def _idle_handlers(kind: str) -> dict[str, Callable[..., Any]]:
    """Return CloudFormation handlers for a resource type that is accepted and does nothing."""

    def create(logical_id: str, properties: Properties, stack: str) -> Any:
        name = properties.get("Name") or properties.get("AlarmName")
        return update(str(name or f"{stack}-{logical_id}-{new_uuid()[:8]}"))

    def update(identifier: str, *_: object) -> Any:
        service = kind.split("::")[1].lower()
        arn = f"arn:aws:{service}:{get_region()}:{get_account_id()}:{identifier}"
        return identifier, {"Arn": arn}

    return {"create": create, "update": update, "delete": lambda *_: None}


def _create_trail(logical_id: str, properties: Properties, stack: str) -> Any:
    name = properties.get("TrailName") or f"{stack}-{logical_id}"
    return _put_trail("CreateTrail", name, properties)


def _update_trail(name: str, _old: Properties, properties: Properties, _stack: str) -> Any:
    return _put_trail("UpdateTrail", name, properties)


def _delete_trail(name: str, _properties: Properties) -> None:
    """Delete a trail. A trail that is gone already is no error."""
    cloudtrail._delete_trail({"Name": name})


def _put_trail(action: str, name: str, properties: Properties) -> tuple[str, dict[str, str]]:
    """Create or change a trail through MiniStack's CloudTrail API, and switch it on or off.

    The API ignores properties that it does not know. It names the KMS key differently.
    """
    key = properties.get("KMSKeyId", "")
    _call(action, **{**properties, "Name": name, "KmsKeyId": key})
    for selectors in ("AdvancedEventSelectors", "EventSelectors"):
        if properties.get(selectors):
            _call("PutEventSelectors", TrailName=name, **{selectors: properties[selectors]})
    is_logging = str(properties.get("IsLogging", "true")).lower() == "true"
    _call("StartLogging" if is_logging else "StopLogging", Name=name)
    return name, {"Arn": cloudtrail._trail_arn(name), "SnsTopicArn": ""}


def _call(action: str, **body: Any) -> None:
    status, _, answer = cloudtrail._DISPATCH[action](body)
    if status >= 400:
        raise ValueError(f"{TRAIL}: {json.loads(answer)['message']}")
