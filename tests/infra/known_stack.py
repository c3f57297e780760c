"""The golden file `stack.json`: what the stack shows to the outside, such as names and outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.infra.synthesized import (
    ACCOUNT,
    NIGHTLY_OFF,
    REGION,
    Template,
    template_of,
    template_with,
)

STACK_FILE = "tests/infra/stack.json"
# Whose properties the file holds, by the name of the settings.
TYPES: Mapping[str, Sequence[str]] = {
    "default": ("CloudTrail::Trail", "EMRServerless::Application"),
    "named": (
        *("CloudTrail::Trail", "DynamoDB::Table", "EMRServerless::Application", "Events::Rule"),
        *("CloudFormation::LambdaHook", "IAM::Role"),
        *("Lambda::EventInvokeConfig", "Lambda::EventSourceMapping", "Lambda::Function"),
        *("KMS::Key", "Logs::LogGroup", "S3::Bucket", "S3::BucketPolicy", "SNS::Subscription"),
        *("SNS::TopicPolicy", "SQS::Queue", "SQS::QueuePolicy", "Scheduler::Schedule"),
    ),
    "existing trail": ("CloudTrail::Trail", "S3::Bucket"),
    "topics of theirs": (
        *("CloudWatch::CompositeAlarm", "KMS::Key", "SNS::Subscription", "SNS::Topic"),
        "SNS::TopicPolicy",
    ),
    "trails below a prefix": ("CloudTrail::Trail", "S3::BucketPolicy"),
}
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:team-"
# Settings of those above that nothing else asks for.
ALONE: Mapping[str, Mapping[str, Any]] = {
    "topics of theirs": {
        "notifications": {
            "urgent": ["a@b.io"],
            "topics": {"urgent": f"{TOPIC}urgent", "info": f"{TOPIC}info"},
        }
    },
    "trails below a prefix": {"trail": {"prefix": "logs/trail"}},
}
_HASH = re.compile(r"(?<=[A-Za-z])[0-9A-F]{8}(?=\W|$)|[0-9a-f]{64}")


def _template(settings: str) -> Template:
    return template_with(ALONE[settings]) if settings in ALONE else template_of(settings)


def _describe_template(template: Template, kinds: Iterable[str]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "outputs": {name: output["Value"] for name, output in template.outputs.items()}
    }
    for kind in kinds:
        for name, resource in template.all(f"AWS::{kind}").items():
            described[name] = resource["Properties"]
    return described


def describe_stack() -> Any:
    """Describe what the stack shows to the outside, without the digests in names."""
    found: dict[str, Any] = {
        settings: _describe_template(_template(settings), kinds)
        for settings, kinds in TYPES.items()
    }
    on = template_with({}).raw
    off = template_with(NIGHTLY_OFF).raw
    found["gone with the nightly job"] = {
        part: sorted(on[part].keys() - off[part].keys()) for part in ("Resources", "Outputs")
    }
    return json.loads(_HASH.sub("", json.dumps(found)))


def render_stack() -> str:
    """Return the text of `stack.json` as the stack is now."""
    return json.dumps(describe_stack(), indent=1, sort_keys=True) + "\n"
