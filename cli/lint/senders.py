"""Subscriptions and rules that name a queue for what they cannot deliver; it must be of their kind.

https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.lint.declared import Declared
from cli.lint.findings import Finding, NotJudged, Severity
from cli.lint.node import Node
from cli.lint.template import Place, Resource
from cli.lint.values import NotKnown
from cli.lint.work import A_SENDER
from functions.catalogue.dead_letter_queue_of_another_type import (
    DEAD_LETTER_QUEUE_OF_ANOTHER_TYPE as ANOTHER_TYPE,
)
from functions.healing.companions import FIFO
from functions.healing.dead_letters import Redrive
from functions.healing.facts import Facts

_SUBSCRIPTION, _RULE = "AWS::SNS::Subscription", "AWS::Events::Rule"
_REDRIVE, _TARGET = "RedrivePolicy", "deadLetterTargetArn"


@dataclass(frozen=True)
class Undelivered:
    """Where one sender's undelivered messages go; `is_fifo` says what kind of queue it takes."""

    resource: Resource
    place: Place
    named: str
    is_fifo: bool


def judged(found: Declared) -> Iterator[Finding | NotJudged]:
    for resource in found.template.of_type(_SUBSCRIPTION, _RULE):
        for keys, node in _places(resource):
            found.values.work.take(A_SENDER)
            place = found.place_of(resource, "Properties", *keys)
            try:
                said = _found(_undelivered(resource, place, node, found), found)
            except NotKnown as because:
                why = found.made.shown(because.because)
                said = NotJudged(place, why, (ANOTHER_TYPE.name,))
            if said is not None:
                yield said


def _places(resource: Resource) -> Iterator[tuple[Sequence[str], Node]]:
    properties = resource.properties
    if resource.type == _SUBSCRIPTION:
        if _REDRIVE in properties:
            yield (_REDRIVE,), properties[_REDRIVE]
        return
    targets = properties.get("Targets")
    for number, each in enumerate(targets.items if targets else ()):
        named = each.under("DeadLetterConfig", "Arn")
        if named is not None:
            yield ("Targets", str(number), "DeadLetterConfig", "Arn"), named


def _undelivered(resource: Resource, place: Place, node: Node, found: Declared) -> Undelivered:
    """Raises NotKnown."""
    values = found.values
    if resource.type == _RULE:
        return Undelivered(resource, place, values.text(node) or "", is_fifo=False)
    topic = values.text(resource.properties.get("TopicArn")) or ""
    document = values.of(node)
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError):
            raise NotKnown("it is no JSON") from None
    named = document.get(_TARGET) if isinstance(document, dict) else None
    return Undelivered(resource, place, str(named or ""), is_fifo=topic.endswith(FIFO))


def _found(undelivered: Undelivered, found: Declared) -> Finding | NotJudged | None:
    """The catalogue's check as of a queue of the kind that the sender takes."""
    named, resource = undelivered.named, undelivered.resource
    queue = found.made.queues.get(named, "")
    if queue in found.made.untyped:
        raise found.made.untyped[queue]
    ending = FIFO if undelivered.is_fifo else ""
    standing = found.made.environment.arn("sqs", f"sender{ending}")
    facts = Facts(standing, {_REDRIVE: Redrive(named, 1).text}, {})
    assert ANOTHER_TYPE.detection is not None  # noqa: S101 - it is found in no other way
    if ANOTHER_TYPE.detection.detect(facts) is None:
        return None
    takes, is_one = ("FIFO", "standard") if undelivered.is_fifo else ("standard", "FIFO")
    because = (
        f"it takes a {takes} queue for what it cannot deliver, and names {named}, a {is_one} one"
    )
    place, severity = undelivered.place, Severity.of(ANOTHER_TYPE)
    return Finding(
        resource.logical_id, ANOTHER_TYPE, severity, found.made.shown(because), place, ()
    )
