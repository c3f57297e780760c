"""What outsiders find of the stack, and what stands behind it: the golden file `stack.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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


def describe_stack() -> Any:
    """What outsiders find and what stands behind it, without the digests of names."""
    found: dict[str, Any] = {
        settings: {
            "outputs": {name: each["Value"] for name, each in template.outputs.items()},
            **{
                name: each["Properties"]
                for kind in kinds
                for name, each in template.all(f"AWS::{kind}").items()
            },
        }
        for settings, kinds in TYPES.items()
        for template in [_template(settings)]
    }
    on, off = (template_with(each).raw for each in ({}, NIGHTLY_OFF))
    found["gone with the nightly job"] = {
        part: sorted(on[part].keys() - off[part].keys()) for part in ("Resources", "Outputs")
    }
    return json.loads(_HASH.sub("", json.dumps(found)))


def render_stack() -> str:
    """Return the text of `stack.json` as the stack is now."""
    return json.dumps(describe_stack(), indent=1, sort_keys=True) + "\n"
