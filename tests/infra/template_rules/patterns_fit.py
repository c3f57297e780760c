"""Event patterns that EventBridge takes: their length, and what may stand in them.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import REGION, Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

EVENT_RULE = "AWS::Events::Rule"
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
QUOTA_CHARACTERS = 2_048
MOST_WILDCARD_RULES = 30
LONGEST_REGION = "us-gov-northwest-12"
NESTED = {"prefix", "suffix", "equals-ignore-case", "wildcard"}
OPERATORS = {*NESTED, "anything-but", "numeric", "exists", "cidr"}


def findings(template: Template) -> Findings:
    wild = 0
    for name, rule in template.all(EVENT_RULE).items():
        pattern = rule["Properties"].get("EventPattern")
        if pattern is None:
            continue
        text = json.dumps(pattern)
        wild += '"wildcard"' in text
        if len(text.replace(REGION, LONGEST_REGION)) > QUOTA_CHARACTERS:
            yield f"{name} has a pattern of more than {QUOTA_CHARACTERS} characters"
        if not pattern.get("source"):
            yield f"{name} listens to every source"
        yield from (f"{name}: {each}" for each in _wrong(pattern, ""))
    if wild > MOST_WILDCARD_RULES:
        yield f"{wild} rules have wildcards"


def _wrong(pattern: dict[str, Any], path: str) -> Iterator[str]:
    for key, value in pattern.items():
        here = f"{path}.{key}"
        if key == "$or":
            for each in value:
                yield from _wrong(each, here)
        elif isinstance(value, dict):
            yield from _wrong(value, here)
        elif not isinstance(value, list) or not value:
            yield f"{here} is no list of values"
        else:
            yield from (f"{here}: {said}" for each in value for said in _wrong_value(each))


def _wrong_value(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    if len(value) != 1 or not value.keys() <= OPERATORS:
        yield f"{'+'.join(sorted(value))} is no operator"
        return
    ((operator, given),) = value.items()
    if operator == "anything-but" and isinstance(given, dict):
        if len(given) != 1 or not given.keys() <= NESTED:
            yield f"anything-but {'+'.join(sorted(given))} is no operator"
    elif operator == "exists" and not isinstance(given, bool):
        yield "exists takes true or false"
    elif operator == "wildcard" and ("**" in given or "*" not in given):
        yield f"{given} has not one * at a time"
    elif operator in {"prefix", "suffix"} and not given:
        yield f"{operator} of nothing"


def _pattern(resources: Resources, start: str = "Intake") -> Any:
    return properties(resources, EVENT_RULE, start)["EventPattern"]


def _set(resources: Resources, key: str, value: Any) -> None:
    _pattern(resources)["detail"][key] = value


RULE = Rule(
    findings,
    {
        "too long": lambda found: _set(found, "eventName", ["x" * 100 for _ in range(12)]),
        "a value without a list": lambda found: _set(found, "errorCode", "AccessDenied"),
        "an empty list": lambda found: _set(found, "errorCode", []),
        "an operator that is none": lambda found: _set(found, "errorCode", [{"regex": "K.*"}]),
        "two operators in one": lambda found: _set(
            found, "errorCode", [{"prefix": "Kms", "exists": True}]
        ),
        "exists as a word": lambda found: _set(found, "errorCode", [{"exists": "true"}]),
        "two stars": lambda found: _set(found, "errorCode", [{"wildcard": "Kms**"}]),
        "nested wrongly": lambda found: _set(
            found, "errorCode", [{"anything-but": {"exists": True}}]
        ),
        "every source": lambda found: _pattern(found).pop("source"),
    },
)
