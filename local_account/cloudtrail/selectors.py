"""Which events a trail logs: advanced event selectors as AWS evaluates them.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Fields = Mapping[str, str]
Test = Callable[[str, str], bool]

# Any value of any of these suffices ...
_SELECTING: Mapping[str, Test] = {
    "Equals": str.__eq__,
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
}
# ... and a single value of any of these is enough to leave the event out.
_DESELECTING: Mapping[str, Test] = {
    "NotEquals": str.__eq__,
    "NotStartsWith": str.startswith,
    "NotEndsWith": str.endswith,
}


def is_logged(record: Mapping[str, Any], selectors: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any selector of a trail, advanced or basic, takes the record."""
    fields = fields_of(record)
    return any(
        _matches(fields, each["FieldSelectors"])
        if "FieldSelectors" in each
        else _basic_matches(fields, each)
        for each in selectors
    )


def fields_of(record: Mapping[str, Any]) -> Fields:
    """What selectors can look at; a field that the record lacks is empty text."""
    resource = (record.get("resources") or [{}])[0]
    return {
        "eventCategory": record["eventCategory"],
        "eventName": record["eventName"],
        "eventSource": record["eventSource"],
        "eventType": record["eventType"],
        "readOnly": str(record["readOnly"]).lower(),
        "resources.type": resource.get("type", ""),
        "resources.ARN": resource.get("ARN", ""),
        "userIdentity.arn": record["userIdentity"].get("arn", ""),
        "sessionCredentialFromConsole": str(record.get("sessionCredentialFromConsole", "")).lower(),
    }


def _matches(fields: Fields, field_selectors: Sequence[Mapping[str, Any]]) -> bool:
    return all(_field_matches(fields.get(each["Field"], ""), each) for each in field_selectors)


def _field_matches(value: str, conditions: Mapping[str, Any]) -> bool:
    for operator, test in _DESELECTING.items():
        if any(test(value, each) for each in conditions.get(operator) or ()):
            return False
    selecting = [
        (test, each)
        for operator, test in _SELECTING.items()
        for each in conditions.get(operator) or ()
    ]
    return not selecting or any(test(value, each) for test, each in selecting)


def _basic_matches(fields: Fields, selector: Mapping[str, Any]) -> bool:
    """Basic selectors log management events; SQS has no data events in them."""
    if fields["eventCategory"] != "Management" or not selector.get("IncludeManagementEvents", True):
        return False
    if fields["eventSource"] in (selector.get("ExcludeManagementEventSources") or ()):
        return False
    wanted = {"ReadOnly": "true", "WriteOnly": "false"}.get(selector.get("ReadWriteType", "All"))
    return wanted is None or fields["readOnly"] == wanted
