"""Templates as CloudFormation would see them, each synthesized once per session."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from infra.settings import read
from infra.synthesis import new_app, synthesize

ACCOUNT = "111122223333"
REGION = "us-east-1"
QUEUE_ARNS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
HEAL_ROLE = f"arn:aws:iam::{ACCOUNT}:role/mendq-heal-{REGION}"
CALENDAR = f"arn:aws:ssm:{REGION}:{ACCOUNT}:document/quiet-days"

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "tagged": {"tagMayRaiseTo": "heal"},
    "named": {
        "mode": "heal",
        "queues": ["orders", "billing-*"],
        "trail": {
            "managementEvents": True,
            "queueArnPrefixes": [f"{QUEUE_ARNS}orders", f"{QUEUE_ARNS}billing-"],
            "eventNames": ["DeleteMessage", "ChangeMessageVisibility"],
        },
        "freezeCalendars": [CALENDAR],
    },
    "existing trail": {"trail": {"create": False, "bucket": "our-cloudtrail-logs"}},
}


class Template:
    """A synthesized template with this account's pseudo parameters filled in."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.outputs = self.resolved(raw["Outputs"])

    def all(self, resource_type: str) -> dict[str, Any]:
        """The whole resources of a type, by logical id."""
        return {
            name: self.resolved(each)
            for name, each in self.raw["Resources"].items()
            if each["Type"] == resource_type
        }

    def only(self, resource_type: str, start: str = "") -> Any:
        """The properties of the one resource of a type whose logical id starts so."""
        (found,) = (
            each["Properties"]
            for name, each in self.all(resource_type).items()
            if name.startswith(start)
        )
        return found

    def statements(self, role: str) -> list[dict[str, Any]]:
        """The policy statements of a role, by how its logical id starts."""
        return [
            statement
            for name, policy in self.all("AWS::IAM::Policy").items()
            if name.startswith(role)
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def resolved(self, value: Any) -> Any:
        """`value` without intrinsic functions; a resource's ARN becomes `arn:<logical id>`."""
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            return {"AWS::AccountId": ACCOUNT}.get(value["Ref"], value["Ref"])
        if set(value) == {"Fn::GetAtt"}:
            return self._arn(value["Fn::GetAtt"][0])
        if set(value) == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(self.resolved(parts))
        return {name: self.resolved(each) for name, each in value.items()}

    def _arn(self, logical_id: str) -> str:
        is_queue = self.raw["Resources"][logical_id]["Type"] == "AWS::SQS::Queue"
        return f"{QUEUE_ARNS}{logical_id}" if is_queue else f"arn:{logical_id}"


@cache
def folder_of(name: str) -> Path:
    """The cloud assembly of one of SETTINGS."""
    folder = Path(tempfile.mkdtemp(prefix="mendq-test-"))
    synthesize(read(SETTINGS[name]), new_app(folder))
    return folder


@cache
def template_of(name: str) -> Template:
    return Template(json.loads((folder_of(name) / "Mendq.template.json").read_text()))


def templates() -> Iterator[Template]:
    yield from (template_of(name) for name in SETTINGS)
