"""Resources that are taken as they are and do nothing: kept, described, and listed as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region, new_uuid
from ministack.services.cloudformation import changesets, handlers, provisioners

Properties = Mapping[str, Any]
Listed = Callable[[str], None]
ALARM = "AWS::CloudWatch::Alarm"


def accept_unknown_types(listed: Listed) -> None:
    """Have CloudFormation accept the types that MiniStack does not know; `listed` gets each.

    A stack may bring new ones with every deployment, so each template is asked when it comes.
    """
    for module in (handlers, changesets):
        module.validate_template_support = _accepting(module.validate_template_support, listed)


def _accepting(validate: Callable[..., None], listed: Listed) -> Callable[..., None]:
    def accepting(template: Mapping[str, Any], *rest: Any, **named: Any) -> None:
        for each in (template.get("Resources") or {}).values():
            if isinstance(each, dict):
                _accept(str(each.get("Type", "")), listed)
        validate(template, *rest, **named)

    return accepting


def _accept(resource_type: str, listed: Listed) -> None:
    if resource_type in provisioners._RESOURCE_HANDLERS or not resource_type.startswith("AWS::"):
        return
    provisioners._RESOURCE_HANDLERS[resource_type] = {
        "create": _create(resource_type),
        "update": _keep(resource_type),
        "delete": lambda _id, _properties: None,
    }
    listed(resource_type)


def accept_metric_math(listed: Listed) -> None:
    """Alarms on metric math, anomaly bands among them, are accepted and never evaluated."""
    evaluated = provisioners._RESOURCE_HANDLERS[ALARM]
    accepted = _create(ALARM)

    def create(logical_id: str, properties: Properties, stack_name: str) -> Any:
        if not properties.get("Metrics"):
            return evaluated["create"](logical_id, properties, stack_name)
        listed(f"{ALARM} with metric math")
        return accepted(logical_id, properties, stack_name)

    def update(name: str, old: Properties, properties: Properties, *rest: str) -> Any:
        if not properties.get("Metrics"):
            return evaluated["update"](name, old, properties, *rest)
        return name, _attributes(ALARM, name)

    provisioners._RESOURCE_HANDLERS[ALARM] = {**evaluated, "create": create, "update": update}


class _Attributes(dict[str, str]):
    """Whatever Fn::GetAtt asks of a resource that is only accepted."""

    def __init__(self, identifier: str, arn: str) -> None:
        super().__init__(Arn=arn)
        self._identifier = identifier

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return self._identifier


def _create(
    resource_type: str,
) -> Callable[[str, Properties, str], tuple[str, dict[str, str]]]:
    def create(logical_id: str, properties: Properties, stack_name: str) -> tuple[str, Any]:
        name = properties.get("Name") or properties.get("AlarmName")
        identifier = str(name or f"{stack_name}-{logical_id}-{new_uuid()[:8]}")
        return identifier, _attributes(resource_type, identifier)

    return create


def _keep(resource_type: str) -> Callable[..., tuple[str, dict[str, str]]]:
    def update(identifier: str, *_ignored: object) -> tuple[str, Any]:
        return identifier, _attributes(resource_type, identifier)

    return update


def _attributes(resource_type: str, identifier: str) -> _Attributes:
    service = resource_type.split("::")[1].lower()
    return _Attributes(
        identifier, f"arn:aws:{service}:{get_region()}:{get_account_id()}:{identifier}"
    )
