"""Templates for the tests, as small as what they are about."""

from __future__ import annotations

import json
from typing import Any

from cli.lint.findings import Linted
from cli.lint.judging import lint
from cli.lint.reading import read
from cli.lint.stand_ins import Environment

TLS = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def policy(name: str, *statements: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One for a queue that refuses calls without TLS, with `statements` beside."""
    arn = {"Fn::GetAtt": [name, "Arn"]}
    every = [{**TLS, "Resource": arn}, *({"Resource": arn, **each} for each in statements)]
    properties = {"Queues": [{"Ref": name}], "PolicyDocument": {"Statement": every}}
    return {"Type": "AWS::SQS::QueuePolicy", "Properties": properties, **more}


def function(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def reads(function_name: Any, name: str, **properties: Any) -> dict[str, Any]:
    source = {"Fn::GetAtt": [name, "Arn"]}
    given = {"EventSourceArn": source, "FunctionName": function_name, **properties}
    return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": given}


def letters_to(name: str, receives: Any = 5) -> dict[str, Any]:
    return {"deadLetterTargetArn": {"Fn::GetAtt": [name, "Arn"]}, "maxReceiveCount": receives}


def with_policies(resources: dict[str, Any]) -> dict[str, Any]:
    """A TLS policy for each queue that has none, so that tests speak of one thing."""
    owned = {
        each["Ref"]
        for one in resources.values()
        if one["Type"] == "AWS::SQS::QueuePolicy"
        for each in one["Properties"]["Queues"]
        if "Ref" in each
    }
    queues = [name for name, one in resources.items() if one["Type"] == "AWS::SQS::Queue"]
    return {**resources, **{f"{each}Tls": policy(each) for each in queues if each not in owned}}


def linted(
    resources: dict[str, Any], environment: Environment | None = None, **sections: Any
) -> Linted:
    text = json.dumps({**sections, "Resources": resources})
    return lint(read(text.encode()), "template.json", environment or Environment())


def found(resources: dict[str, Any], **sections: Any) -> list[tuple[str, str]]:
    """Whose and what, with TLS seen to."""
    every = linted(with_policies(resources), **sections).findings
    return [(each.resource, each.symptom.name) for each in every]


def not_judged(resources: dict[str, Any], **sections: Any) -> list[tuple[str, str]]:
    """Where and why, with TLS seen to."""
    every = linted(with_policies(resources), **sections).not_judged
    return [(each.place.path, each.because) for each in every]
