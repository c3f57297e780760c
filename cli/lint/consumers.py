"""The Lambda functions that a template lets read its queues.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventsourcemapping.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.lint.node import Node
from cli.lint.stand_ins import StandIns
from cli.lint.template import Resource, Template
from cli.lint.values import NotKnown, Values
from functions.healing.facts import LambdaConsumer
from functions.healing.template_lines import NUMBER

MAPPING = "AWS::Lambda::EventSourceMapping"
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
_DEFAULT_TIMEOUT_SECONDS = 3


@dataclass(frozen=True)
class Consumer:
    """A mapping's function; `times` are its timeout and the window, or why they are not known."""

    mapping: Resource
    function_arn: str
    times: tuple[int, int] | NotKnown

    @property
    def read_by(self) -> LambdaConsumer:
        """Without times where they are not known: whoever asks for those looks at them first."""
        timeout, window = (0, 0) if isinstance(self.times, NotKnown) else self.times
        return LambdaConsumer(self.function_arn, timeout, window)


@dataclass(frozen=True)
class Consumers:
    """By the queue's ARN; `astray` are the mappings of which nobody knows what they read."""

    by_queue: Mapping[str, Sequence[Consumer]]
    astray: Mapping[str, NotKnown]


def consumers_of(template: Template, made: StandIns, values: Values) -> Consumers:
    by_queue: dict[str, list[Consumer]] = defaultdict(list)
    astray: dict[str, NotKnown] = {}
    for mapping in template.of_type(MAPPING):
        try:
            queue_arn = _queue_read_by(mapping, made, values)
            if queue_arn is not None:
                by_queue[queue_arn].append(_consumer(mapping, template, made, values))
        except NotKnown as because:
            astray[mapping.logical_id] = because
    return Consumers(by_queue, astray)


def _queue_read_by(mapping: Resource, made: StandIns, values: Values) -> str | None:
    """None where it reads no queue of the template, or nothing at all."""
    source = values.text(mapping.properties.get("EventSourceArn"))
    if source not in made.queues:
        if source and source.split(":")[2:3] == ["sqs"]:
            raise NotKnown("it reads a queue that the template does not declare")
        return None
    if values.text(mapping.properties.get("Enabled")) == "false":
        return None
    if mapping.is_conditional:
        raise NotKnown(f"a condition decides whether it reads {made.queues[source]}")
    return source


def _consumer(mapping: Resource, template: Template, made: StandIns, values: Values) -> Consumer:
    try:
        named = values.text(mapping.properties.get("FunctionName")) or "a function"
    except NotKnown as because:
        return Consumer(mapping, "a function of another stack", because)
    logical_id = made.function_named(named)
    if logical_id is None:
        return Consumer(mapping, named, NotKnown("the template does not declare its function"))
    arn, function = made.attributes[logical_id, "Arn"], template.resources[logical_id]
    try:
        timeout = _seconds(function.properties.get("Timeout"), values, _DEFAULT_TIMEOUT_SECONDS)
        window = _seconds(mapping.properties.get("MaximumBatchingWindowInSeconds"), values, 0)
    except NotKnown as because:
        return Consumer(mapping, arn, because)
    return Consumer(mapping, arn, (timeout, window))


def _seconds(node: Node | None, values: Values, default: int) -> int:
    text = values.text(node)
    if text is not None and not NUMBER.fullmatch(text):
        raise NotKnown("it is no whole number")
    return default if text is None else int(text)
