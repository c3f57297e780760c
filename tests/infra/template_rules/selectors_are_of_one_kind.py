"""A trail takes basic selectors or advanced ones; of the latter each has one category and type.

https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_AdvancedFieldSelector.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

TRAIL = "AWS::CloudTrail::Trail"
MOST_VALUES = 500
FIELDS = {
    "Data": {
        *("eventCategory", "resources.type", "resources.ARN", "eventName", "eventSource"),
        *("eventType", "readOnly", "sessionCredentialFromConsole", "userIdentity.arn"),
    },
    "Management": {"eventCategory", "eventSource", "readOnly"},
}
EQUALS_ALONE = {"eventCategory", "resources.type", "readOnly"}


def findings(template: Template) -> Findings:
    for name, trail in template.all(TRAIL).items():
        given = trail["Properties"]
        selectors = given.get("AdvancedEventSelectors", [])
        if given.get("EventSelectors"):
            yield f"{name} has basic selectors"
        if not selectors:
            yield f"{name} has no advanced selectors"
        for selector in selectors:
            yield from (f"{name}, {selector['Name']}: {each}" for each in _wrong(selector))
        values = sum(len(_values(f)) for each in selectors for f in each["FieldSelectors"])
        if values > MOST_VALUES:
            yield f"{name} compares with {values} values"


def _wrong(selector: dict[str, Any]) -> Iterator[str]:
    fields = {each["Field"]: each for each in selector["FieldSelectors"]}
    category = "".join(fields.get("eventCategory", {}).get("Equals", []))
    if len(fields) != len(selector["FieldSelectors"]):
        yield "a field twice"
    if category not in FIELDS:
        yield f"the category {category or 'of none'}"
    if category == "Data" and len(fields.get("resources.type", {}).get("Equals", [])) != 1:
        yield "not one resources.type"
    for name in fields.keys() - FIELDS.get(category, fields.keys()):
        yield f"{name} narrows no {category} events"
    for name, field in fields.items():
        if name in EQUALS_ALONE and field.keys() != {"Field", "Equals"}:
            yield f"{name} takes Equals alone"
        if not _values(field):
            yield f"{name} compares with nothing"
        if any("*" in value for value in _values(field)):
            yield f"{name} has a *, which no selector knows"


def _values(field: dict[str, Any]) -> list[str]:
    return [each for name, given in field.items() if name != "Field" for each in given]


def _basic_too(resources: Resources) -> None:
    properties(resources, TRAIL)["EventSelectors"] = [{"ReadWriteType": "All"}]


def _first(resources: Resources) -> dict[str, dict[str, Any]]:
    selector = properties(resources, TRAIL)["AdvancedEventSelectors"][0]
    return {each["Field"]: each for each in selector["FieldSelectors"]}


def _change(resources: Resources, field: str, **changed: Any) -> None:
    found = _first(resources)[field]
    found.clear()
    found.update(Field=field, **changed)


RULE = Rule(
    findings,
    {
        "basic ones beside them": _basic_too,
        "two types at once": lambda found: _change(
            found, "resources.type", Equals=["AWS::SQS::Queue", "AWS::S3::Object"]
        ),
        "a type by its start": lambda found: _change(found, "resources.type", StartsWith=["AWS"]),
        "no category": lambda found: _change(found, "eventCategory", Equals=[]),
        "names of management events": lambda found: _change(
            found, "eventCategory", Equals=["Management"]
        ),
        "a wildcard": lambda found: _change(
            found, "resources.ARN", StartsWith=["arn:aws:sqs:*:111122223333:orders"]
        ),
        "too many values": lambda found: _change(
            found, "resources.ARN", StartsWith=[f"arn:aws:sqs:x{n}" for n in range(MOST_VALUES)]
        ),
        "errorCode": lambda found: _first(found)["eventName"].update(Field="errorCode"),
    },
)
