"""The policies that a template gives its queues; SQS keeps one for each queue.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cli.lint.node import Node
from cli.lint.stand_ins import StandIns
from cli.lint.template import Resource, Template
from cli.lint.values import NotKnown, Values
from functions.healing.policies import EVERYBODY, statements_of
from functions.healing.queue_names import arn_of_url

_QUEUES_OF = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
# Of a grant to somebody who is named, no check asks to whom exactly, by way of what, and on what.
_OF_A_GRANT = ("Principal", "Resource", "Condition")


@dataclass(frozen=True)
class Policy:
    """One that is declared for a queue: its text, or why nobody knows it."""

    resource: Resource
    text: str | NotKnown


@dataclass(frozen=True)
class Policies:
    """By the queue's ARN; of the resources `astray` nobody knows whose policy they are."""

    by_queue: Mapping[str, Policy]
    astray: Mapping[str, NotKnown]


def policies_of(template: Template, made: StandIns, values: Values) -> Policies:
    by_queue: dict[str, Policy] = {}
    astray: dict[str, NotKnown] = {}
    for resource in template.of_type(*_QUEUES_OF):
        try:
            policy = Policy(resource, _text_of(resource, values))
            for arn in dict.fromkeys(_queues_of(resource, made, values)):
                by_queue[arn] = _one_more(by_queue.get(arn), policy)
        except NotKnown as because:
            astray[resource.logical_id] = because
    return Policies(by_queue, astray)


def _one_more(earlier: Policy | None, policy: Policy) -> Policy:
    if earlier is None:
        return policy
    names = f"{earlier.resource.logical_id} and {policy.resource.logical_id}"
    return Policy(policy.resource, NotKnown(f"{names} both set it, and SQS keeps one"))


def _queues_of(resource: Resource, made: StandIns, values: Values) -> Iterator[str]:
    named = values.of(resource.properties.get(_QUEUES_OF[resource.type]))
    for url in named if isinstance(named, list) else [named]:
        arn = arn_of_url(url, made.environment.region)
        if arn in made.queues:
            yield arn


def _text_of(resource: Resource, values: Values) -> str | NotKnown:
    if resource.is_conditional:
        return NotKnown("a condition decides whether it has this policy")
    document = resource.properties.get("PolicyDocument")
    try:
        if document is None or document.text is not None:
            text = values.text(document) or ""
        else:
            text = json.dumps(_document(document, values))
    except NotKnown as because:
        return because
    return NotKnown("no policy that SQS would take") if statements_of(text) is None else text


def _document(node: Node, values: Values) -> Any:
    listed = node.under("Statement")
    if listed is None or not listed.items:
        return values.of(node)
    rest = {name: values.of(each) for name, each in node.entries.items() if name != "Statement"}
    return {**rest, "Statement": [_statement(each, values) for each in listed.items]}


def _statement(node: Node, values: Values) -> Any:
    """In a grant to somebody who is named, a word for each text that is not known."""
    if not _names_somebody(node, values):
        return values.of(node)
    return {
        name: values.with_word(each, "not-known") if name in _OF_A_GRANT else values.of(each)
        for name, each in node.entries.items()
    }


def _names_somebody(node: Node, values: Values) -> bool:
    effect, principal = node.under("Effect"), node.under("Principal")
    if effect is None or effect.text != "Allow" or principal is None:
        return False
    if principal.text == EVERYBODY or not principal.entries.keys() <= {"AWS", "Service"}:
        return False
    for each in principal.entries.values():
        if EVERYBODY in [one.text for one in each.items or (each,)]:
            return False
    # A service is what a check may ask for.
    service = principal.entries.get("Service")
    return service is None or values.of(service) is not None
