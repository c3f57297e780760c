"""The synthesized stack by the settings that shape it, and what bad settings are told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.settings.deployment import read
from infra.settings.page import page
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import warnings
from tests.before.bad_settings import BAD, WARNED
from tests.before.differences import ABSENT, differences
from tests.before.stored import plain
from tests.infra.synthesized import template_with, templates_of_three

ACCOUNT = "111122223333"
QUEUES = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "heal with tags": {
        "mode": "propose",
        "tagMayRaiseTo": "heal",
        "queues": ["orders", "billing-*"],
        "autonomy": {"visibility_timeout_too_short": "propose"},
        "limits": {"writesPerMinute": 5, "massSymptomShare": 0.1},
        "timing": {"probeMinutes": 20, "watchHours": 24},
    },
    "notifications": {
        "notifications": {
            "urgent": ["on-call@example.com", "https://events.example.com/key"],
            "info": ["sqs@example.com"],
        },
        "report": {
            "weekday": "FRIDAY",
            "hour": 9,
            "timeZone": "Europe/Berlin",
            "sender": "reports@mail.example.com",
            "recipients": ["ada@example.com", "grace@example.org"],
        },
    },
    "freeze calendars": {
        "mode": "heal",
        "freezeCalendars": [f"arn:aws:ssm:us-east-1:{ACCOUNT}:document/quiet-days"],
    },
    "own trail selects": {
        "trail": {
            "managementEvents": True,
            "queueArnPrefixes": [f"{QUEUES}orders", f"{QUEUES}billing-"],
            "eventNames": ["DeleteMessage", "ChangeMessageVisibility"],
        }
    },
    "existing trail": {"trail": {"create": False, "bucket": "our-cloudtrail-logs"}},
    "nightly sized": {"nightly": {"hourUtc": 3, "maximumVcpu": 8, "maximumMemoryGb": 32}},
    "no dashboard": {"dashboard": False},
    "heal everything": {"mode": "heal", "tagMayRaiseTo": "heal", "queues": ["orders"]},
}
THERE = {
    "ap-southeast-4": "us-east-1",
    "eu-west-1": "us-east-1",
    "444455556666": "${AWS::AccountId}",
    ACCOUNT: "${AWS::AccountId}",
}
_ID = re.compile(r"\b([A-Z][A-Za-z0-9]{2,}?)[0-9A-F]{8}(?:[0-9A-F]{8})?\b")
_ASSET = re.compile(r"\b[0-9a-f]{64}\b")
_POLICIES = ("PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy")


def record() -> Any:
    """The default whole; the others by where they differ from it."""
    default = _stack(template_with(SETTINGS["default"]).raw)
    others = {
        name: _beside(default, _stack(template_with(settings).raw))
        for name, settings in SETTINGS.items()
        if name != "default"
    }
    environments = [_as_here(_stack(each.raw)) for each in templates_of_three()]
    return {
        "default": default,
        "others": others,
        "environments": {
            f"{n} of three": _beside(default, each) for n, each in enumerate(environments, 1)
        },
        "settings_page": _rows(page()),
        "bad_settings": {json.dumps(each): _mistakes(each) for each in BAD},
        "warned": {json.dumps(each): sorted(warnings(read(each))) for each in WARNED},
    }


def _beside(default: Any, other: Any) -> dict[str, Any]:
    found = differences(plain(default), plain(other))
    return {each.path: "absent" if each.now is ABSENT else each.now for each in found}


def _as_here(stack: dict[str, Any]) -> Any:
    """A stack of another place, as if that were the default's."""
    text = json.dumps(plain(stack))
    for there, here in THERE.items():
        text = text.replace(there, here)
    return json.loads(text)


def _stack(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A template by what each part is for; logical ids without the digest that CDK gives them."""
    template = json.loads(_ASSET.sub("<asset>", _without_digests(raw)))
    resources: Mapping[str, Any] = template["Resources"]
    by_type = sorted((each["Type"], name) for name, each in resources.items())
    parts: dict[str, Any] = {
        "outputs": {name: _text(each["Value"]) for name, each in template["Outputs"].items()},
        "parameters": sorted(template.get("Parameters", {})),
        "description": template.get("Description"),
        "resources": {name: kind for kind, name in by_type},
        "rights": {},
        "environment": {},
        "alarms": {},
        "properties": {},
    }
    for name, resource in resources.items():
        properties = dict(resource.get("Properties", {}))
        if resource["Type"] == "AWS::IAM::Policy":
            for role in properties["Roles"]:
                parts["rights"].setdefault(_text(role).strip("${}"), []).extend(
                    _rights(properties["PolicyDocument"])
                )
            continue
        if resource["Type"] == "AWS::IAM::Role":
            parts["rights"].setdefault(name, []).extend(_own_rights(properties))
        if resource["Type"] == "AWS::Lambda::Function":
            variables = properties.pop("Environment", {}).get("Variables", {})
            parts["environment"][name] = {key: _value(each) for key, each in variables.items()}
        for key in _POLICIES:
            if key in properties:
                properties[key] = sorted(_rights(properties[key]))
        keeps = {key: resource[key] for key in ("DeletionPolicy",) if key in resource}
        if "Alarm" in resource["Type"]:
            parts["alarms"][_text(properties.pop("AlarmName"))] = _shown(properties)
        else:
            parts["properties"][name] = {**_shown(properties), **keeps}
    for lines in parts["rights"].values():
        lines.sort()
    return parts


def _without_digests(raw: Mapping[str, Any]) -> str:
    """The template's text; of ids that would be the same, the later ones get a number."""
    renamed: dict[str, str] = {}
    for name in raw["Resources"]:
        found = _ID.fullmatch(name)
        short = found[1] if found else name
        taken = sum(each.rstrip("0123456789") == short for each in renamed.values())
        renamed[name] = f"{short}{taken + 1}" if taken else short
    text = json.dumps(raw)
    for name in sorted(renamed, key=len, reverse=True):
        text = text.replace(f'"{name}"', f'"{renamed[name]}"')
    return text


def _own_rights(properties: Mapping[str, Any]) -> Iterator[str]:
    """What the role's own document grants: managed policies and policies within."""
    for each in properties.get("ManagedPolicyArns", []):
        yield f"managed {_text(each)}"
    for each in properties.get("Policies", []):
        yield from _rights(each["PolicyDocument"])


def _rights(document: Mapping[str, Any]) -> Iterator[str]:
    """One line for each action on each resource, with its conditions."""
    for each in document["Statement"]:
        condition = _text(each["Condition"]) if "Condition" in each else ""
        who = f" by {_text(each['Principal'])}" if "Principal" in each else ""
        # What is not granted by name is granted by exception.
        actions = _several(each, "Action") or [f"not {x}" for x in _several(each, "NotAction")]
        resources = _several(each, "Resource") or ["itself"]
        for action in actions:
            for resource in resources:
                line = f"{each['Effect']} {action} on {resource}{who}"
                yield f"{line} if {condition}" if condition else line


def _several(statement: Mapping[str, Any], key: str) -> list[str]:
    given = statement.get(key, [])
    return [_text(each) for each in (given if isinstance(given, list) else [given])]


def _shown(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(each) for key, each in properties.items()}


def _value(value: Any) -> Any:
    """A property without intrinsic functions; JSON in a text as what it holds."""
    if isinstance(value, Mapping):
        if len(value) == 1 and (value.keys() & {"Ref", "Fn::GetAtt", "Fn::Join", "Fn::Sub"}):
            return _value(_text(value))
        return {key: _value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_value(each) for each in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return _value(json.loads(value))
        except ValueError:
            return value
    return value


def _text(value: Any) -> str:
    """A value of a template in a line: `${Name}` and `${Name.Arn}` for what it refers to."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((function, of),) = value.items()
        if function == "Ref":
            return f"${{{of}}}"
        if function == "Fn::GetAtt":
            return f"${{{'.'.join(of)}}}"
        if function == "Fn::Sub" and isinstance(of, str):
            return of
        if function == "Fn::Join":
            return str(of[0]).join(_text(each) for each in of[1])
    return json.dumps(value, sort_keys=True)


def _rows(text: str) -> dict[str, str]:
    """The rows of the settings' page, by the setting."""
    rows = (line.split("|", 2) for line in text.splitlines() if line.startswith("| `"))
    return {setting.strip(" `"): rest.strip(" |") for _, setting, rest in rows}


def _mistakes(raw: Any) -> list[str]:
    try:
        read(raw)
    except SettingsRefused as refused:
        return str(refused).splitlines()
    return ["is taken"]
