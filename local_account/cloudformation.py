"""What of a template MiniStack cannot deploy: provisioned here, or accepted and listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region, new_uuid
from ministack.services import cloudtrail
from ministack.services.cloudformation import changesets, handlers, provisioners

from local_account.hooks import around

Properties = Mapping[str, Any]
Listed = Callable[[str], None]
ALARM = "AWS::CloudWatch::Alarm"
TABLE = "AWS::DynamoDB::Table"
TRAIL = "AWS::CloudTrail::Trail"


def install(listed: Listed) -> None:
    """Hook CloudFormation; `listed` gets each type that is accepted and does nothing."""
    provisioners._RESOURCE_HANDLERS[TRAIL] = {
        "create": lambda logical_id, properties, stack: _put_trail(
            "CreateTrail", properties.get("TrailName") or f"{stack}-{logical_id}", properties
        ),
        "update": lambda name, _old, given, _stack: _put_trail("UpdateTrail", name, given),
        # One that is gone already is as good.
        "delete": lambda name, _given: cloudtrail._delete_trail({"Name": name}),
    }
    _accept(listed)

    @around(provisioners._RESOURCE_HANDLERS[TABLE], "create")
    def create_table(inner: Any, logical_id: str, properties: Properties, stack: str) -> Any:
        """Name a table anew with every creation, as AWS does: a retained one stays as it is."""
        if not properties.get("TableName") and not provisioners._NAME_SEED.get():
            provisioners._NAME_SEED.set(new_uuid()[:8])
        return inner(logical_id, properties, stack)


def _accept(listed: Listed) -> None:
    """Accept the types that MiniStack does not know, and alarms on metric math."""

    @around(handlers, "validate_template_support")
    @around(changesets, "validate_template_support")
    def validate(inner: Any, template: Mapping[str, Any], *rest: Any, **named: Any) -> Any:
        for each in (template.get("Resources") or {}).values():
            kind = str(each.get("Type", "")) if isinstance(each, dict) else ""
            if kind.startswith("AWS::") and kind not in provisioners._RESOURCE_HANDLERS:
                provisioners._RESOURCE_HANDLERS[kind] = _accepting(kind)
                listed(kind)
        return inner(template, *rest, **named)

    accepting = _accepting(ALARM)

    @around(provisioners._RESOURCE_HANDLERS[ALARM], "create", "update")
    def alarm(inner: Any, name: str, *given: Any) -> Any:
        """The properties are the last mapping: an update brings the old ones before them."""
        every = [each for each in given if isinstance(each, Mapping)]
        if not every[-1].get("Metrics"):
            return inner(name, *given)
        listed(f"{ALARM} with metric math")
        return accepting["create" if len(every) == 1 else "update"](name, *given)


def _accepting(kind: str) -> dict[str, Callable[..., Any]]:
    """A resource that is kept as it is and does nothing."""

    def create(logical_id: str, properties: Properties, stack: str) -> Any:
        name = properties.get("Name") or properties.get("AlarmName")
        return update(str(name or f"{stack}-{logical_id}-{new_uuid()[:8]}"))

    def update(identifier: str, *_: object) -> Any:
        service = kind.split("::")[1].lower()
        arn = f"arn:aws:{service}:{get_region()}:{get_account_id()}:{identifier}"
        return identifier, {"Arn": arn}

    return {"create": create, "update": update, "delete": lambda *_: None}


def _put_trail(action: str, name: str, properties: Properties) -> tuple[str, dict[str, str]]:
    """Create or change a trail by MiniStack's CloudTrail API, as switched on as asked.

    That reads of the properties what it knows, and calls the key otherwise.
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
