"""Names and ARNs for what has none before it is deployed; made so that they meet no real one.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cli.lint.template import Resource, Template
from cli.lint.values import Known, NotKnown, Values
from cli.lint.work import Work
from functions.healing.companions import FIFO
from functions.healing.queue_names import arn_of_name, partition_of, parts_of, public_url

QUEUE = "AWS::SQS::Queue"
FUNCTION = "AWS::Lambda::Function"
TOPIC = "AWS::SNS::Topic"
_QUALIFIED = ("AWS::Lambda::Version", "AWS::Lambda::Alias")
_ACCOUNT, _REGION, _STACK = "000000000000", "any-region", "stack-name"
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT = re.compile(r'"([^"\\]{1,400})"')
_ARN = re.compile(
    r"arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:[A-Za-z0-9_:/-]*[A-Za-z0-9_/-](?:\.fifo)?"
)
_FUNCTION_ARN = re.compile(r"arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]+:function:([^:]+)(?::.*)?")


@dataclass(frozen=True)
class Environment:
    """Where a template would be deployed, as far as somebody said."""

    account: str = _ACCOUNT
    region: str = _REGION
    stack: str = _STACK

    @property
    def pseudo_parameters(self) -> dict[str, str]:
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return {
            "AWS::AccountId": self.account,
            "AWS::Partition": partition_of(self.region),
            "AWS::Region": self.region,
            "AWS::StackName": self.stack,
            "AWS::URLSuffix": suffix,
        }

    def arn(self, service: str, rest: str) -> str:
        return f"arn:{partition_of(self.region)}:{service}:{self.region}:{self.account}:{rest}"


@dataclass
class StandIns:
    """`queues`: logical id by ARN; `functions`: logical id by name.

    `untyped` says of a queue why nobody knows whether it is FIFO.
    """

    environment: Environment
    queues: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    untyped: dict[str, NotKnown] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    attributes: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def known(self) -> Known:
        return Known({**self.environment.pseudo_parameters, **self.references}, self.attributes)

    def shown(self, sentence: str) -> str:
        """With logical ids for what the template itself declares."""
        return self._as_written(_ARN.sub(lambda found: self._name_of(found.group()), sentence))

    def written(self, line: str) -> str:
        """A line of a template with `Fn::GetAtt`, `Ref` and `Fn::Sub` for what stands for them."""
        originals = self._originals
        return _TEXT.sub(lambda found: _original(found, originals, self._as_written), line)

    def function_named(self, text: str) -> str | None:
        """The logical id of the function that a name or an ARN is about, if one is declared."""
        found = _FUNCTION_ARN.fullmatch(text)
        return self.functions.get(found.group(1) if found else text.split(":", maxsplit=1)[0])

    def by_name(self, logical_id: str) -> str | None:
        """How another resource may name a queue without depending on it; None where it cannot."""
        if logical_id not in self.named:
            return None
        name = parts_of(self.attributes[logical_id, "Arn"]).name
        return f"arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{name}"

    def _name_of(self, arn: str) -> str:
        return self.queues.get(arn) or self.function_named(arn) or self._owners.get(arn, arn)

    def _as_written(self, text: str) -> str:
        return text.replace(f":{_REGION}:{_ACCOUNT}:", ":${AWS::Region}:${AWS::AccountId}:")

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        return {text: name for (name, _), text in self.attributes.items()}

    @cached_property
    def _originals(self) -> Mapping[str, Any]:
        references = {text: {"Ref": name} for name, text in self.references.items()}
        return references | {
            text: {"Fn::GetAtt": [name, what]} for (name, what), text in self.attributes.items()
        }


def _original(
    found: re.Match[str], originals: Mapping[str, Any], as_written: Callable[[str], str]
) -> str:
    text = found.group(1)
    if text in originals:
        return json.dumps(originals[text], separators=(",", ":"))
    written = as_written(text)
    return found.group() if written == text else json.dumps({"Fn::Sub": written})


def stand_ins(
    template: Template, environment: Environment, defaults: dict[str, str], work: Work
) -> StandIns:
    """Queues and functions first: what others call them by needs no more than their names.

    `defaults` takes in the parameters whose default was needed for that.
    """
    made = StandIns(environment)
    by_themselves = Values(template, Known(environment.pseudo_parameters), defaults, work)
    for each in template.of_type(QUEUE):
        _of_queue(each, made, by_themselves)
    for number, each in enumerate(template.of_type(FUNCTION)):
        _of_function(each, number, made, by_themselves)
    for number, each in enumerate(template.resources.values()):
        if each.logical_id not in made.references and each.type.startswith("AWS::"):
            _of_another(each, number, made, by_themselves)
    qualified = Values(template, made.known, defaults, work)
    for kind in _QUALIFIED:
        for number, each in enumerate(template.of_type(kind)):
            _of_version(each, number, made, qualified)
    return made


def _of_queue(resource: Resource, made: StandIns, values: Values) -> None:
    logical_id, ending = resource.logical_id, _ending(resource, made, values)
    name = (_text(values, resource, "QueueName") or "").removesuffix(FIFO) + ending
    arn = _queue_arn(name, made)
    if arn is None:
        name = f"unnamed-{len(made.queues)}{ending}"
        arn = made.environment.arn("sqs", name)
    else:
        made.named.add(logical_id)
    made.queues[arn] = logical_id
    made.references[logical_id] = public_url(arn)
    made.attributes[logical_id, "Arn"] = arn
    made.attributes[logical_id, "QueueName"] = name


def _queue_arn(name: str, made: StandIns) -> str | None:
    """None where the name is none, or another queue's."""
    arn = arn_of_name(name, made.environment.region, made.environment.account)
    return None if arn in made.queues else arn


def _ending(resource: Resource, made: StandIns, values: Values) -> str:
    name = _text(values, resource, "QueueName") or ""
    try:
        is_fifo = values.of(resource.properties.get("FifoQueue")) == "true"
    except NotKnown as unknown:
        is_fifo = False
        if not name:
            made.untyped[resource.logical_id] = unknown
    return FIFO if is_fifo or name.endswith(FIFO) else ""


def _of_function(resource: Resource, number: int, made: StandIns, values: Values) -> None:
    name = _text(values, resource, "FunctionName") or ""
    if not _WORD.fullmatch(name) or name in made.functions:
        name = f"unnamed-{number}"
    made.functions[name] = resource.logical_id
    made.references[resource.logical_id] = name
    arn = made.environment.arn("lambda", f"function:{name}")
    made.attributes[resource.logical_id, "Arn"] = arn


def _of_another(resource: Resource, number: int, made: StandIns, values: Values) -> None:
    """A name that nothing else has: which one no check of a queue asks, only whose it is."""
    logical_id, kind = resource.logical_id, resource.type.split("::")[1:2]
    service = kind[0].lower() if kind and _WORD.fullmatch(kind[0]) else "other"
    is_fifo = resource.type == TOPIC and _text(values, resource, "FifoTopic") == "true"
    arn = made.environment.arn(service, f"resource-{number}{FIFO * is_fifo}")
    made.references[logical_id] = arn if resource.type == TOPIC else f"resource-{number}"
    made.attributes[logical_id, "Arn"] = arn
    if resource.type == TOPIC:
        made.attributes[logical_id, "TopicArn"] = arn


def _of_version(resource: Resource, number: int, made: StandIns, values: Values) -> None:
    """A version or an alias is its function's, as far as a queue is concerned."""
    function = made.function_named(_text(values, resource, "FunctionName") or "")
    if function is None:
        return
    arn = f"{made.attributes[function, 'Arn']}:{number}"
    made.references[resource.logical_id] = arn
    for attribute in ("Arn", "AliasArn", "FunctionArn"):
        made.attributes[resource.logical_id, attribute] = arn


def _text(values: Values, resource: Resource, name: str) -> str | None:
    try:
        return values.text(resource.properties.get(name))
    except NotKnown:
        return None
