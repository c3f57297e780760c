"""Names and ARNs for what has none before it is deployed; made so that they meet no real one.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mendq.lint.template import Resource, Template
from mendq.lint.values import NotKnown, Values
from mendq.model.queue import FIFO, arn_of_name, partition_of, public_url

QUEUE, FUNCTION, TOPIC = "AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::SNS::Topic"
_ACCOUNT, _REGION = "000000000000", "any-region"
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARN = re.compile(
    r"arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:[A-Za-z0-9_:/-]*[A-Za-z0-9_/-](?:\.fifo)?"
)
_FUNCTION_ARN = re.compile(r"arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]+:function:([^:]+)(?::.*)?")


@dataclass(frozen=True)
class Environment:
    """Where a template would be deployed, as far as somebody said."""

    account: str = _ACCOUNT
    region: str = _REGION
    stack: str = "stack-name"

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


class Names:
    """What resources are called: `known` by name and attribute, `queues` logical ids by ARN.

    `untyped` says of a queue why nobody knows whether it is FIFO; `named` are those whose name is
    the template's own.
    """

    def __init__(
        self, template: Template, environment: Environment, defaults: dict[str, str]
    ) -> None:
        """Name queues and functions first: their names need no more than the template's text."""
        self.environment = environment
        self.known = environment.pseudo_parameters
        self.queues: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.untyped: dict[str, NotKnown] = {}
        alone = Values(template, environment.pseudo_parameters, defaults)
        for each in template.of_type(QUEUE):
            self._name_queue(each, alone)
        for number, each in enumerate(template.resources.values()):
            if each.type != QUEUE and each.type.startswith("AWS::"):
                self._name_other(each, number, alone)
        values = Values(template, self.known, defaults)
        for kind in ("AWS::Lambda::Version", "AWS::Lambda::Alias"):
            for number, each in enumerate(template.of_type(kind)):
                self._name_version(each, number, values)

    def _name_queue(self, resource: Resource, values: Values) -> None:
        logical_id, name = resource.logical_id, _known_text(values, resource, "QueueName")
        try:
            is_fifo = values.of(resource.properties.get("FifoQueue")) == "true"
        except NotKnown as unknown:
            is_fifo = False
            if not name:
                self.untyped[logical_id] = unknown
        ending = FIFO if is_fifo or name.endswith(FIFO) else ""
        name = name.removesuffix(FIFO) + ending
        arn = arn_of_name(name, self.environment.region, self.environment.account)
        if arn is None or arn in self.queues:
            name = f"unnamed-{len(self.queues)}{ending}"
            arn = self.environment.arn("sqs", name)
        else:
            self.named[logical_id] = name
        self.queues[arn] = logical_id
        self.known |= {
            logical_id: public_url(arn),
            f"{logical_id}.Arn": arn,
            f"{logical_id}.QueueName": name,
        }

    def _name_other(self, resource: Resource, number: int, values: Values) -> None:
        """A name that nothing else has: no check of a queue asks which, only whose it is."""
        kind, logical_id = resource.type.split("::")[1:2], resource.logical_id
        service = kind[0].lower() if kind and _WORD.fullmatch(kind[0]) else "other"
        name = f"resource-{number}"
        arn = self.environment.arn(service, name)
        if resource.type == FUNCTION:
            own = _known_text(values, resource, "FunctionName")
            name = own if _WORD.fullmatch(own) and own not in self.functions else name
            self.functions[name] = logical_id
            arn = self.environment.arn("lambda", f"function:{name}")
        elif resource.type == TOPIC:
            arn += FIFO * (_known_text(values, resource, "FifoTopic") == "true")
            self.known[f"{logical_id}.TopicArn"] = name = arn
        self.known |= {logical_id: name, f"{logical_id}.Arn": arn}

    def _name_version(self, resource: Resource, number: int, values: Values) -> None:
        """A version or an alias is its function's, as far as a queue is concerned."""
        function = self.function_named(_known_text(values, resource, "FunctionName"))
        if function is not None:
            arn, own = f"{self.known[f'{function}.Arn']}:{number}", resource.logical_id
            every = (own, *(f"{own}.{each}" for each in ("Arn", "AliasArn", "FunctionArn")))
            self.known |= dict.fromkeys(every, arn)

    def function_named(self, text: str) -> str | None:
        """The logical id of the function that a name or an ARN is about, if one is declared."""
        found = _FUNCTION_ARN.fullmatch(text)
        return self.functions.get(found.group(1) if found else text.split(":", maxsplit=1)[0])

    def by_name(self, logical_id: str) -> str | None:
        """How a resource names a queue without depending on it; None where it cannot."""
        name = self.named.get(logical_id)
        return name and f"arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{name}"

    def shown(self, sentence: str) -> str:
        """The sentence with logical ids for what the template itself declares."""
        said = _ARN.sub(lambda found: self._owners.get(found.group(), found.group()), sentence)
        return said.replace(f":{_REGION}:{_ACCOUNT}:", ":${AWS::Region}:${AWS::AccountId}:")

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        own = ((text, name) for name, text in self.known.items() if "::" not in name)
        return {text: name.partition(".")[0] for text, name in own}


def _known_text(values: Values, resource: Resource, name: str) -> str:
    try:
        return values.text(resource.properties.get(name)) or ""
    except NotKnown:
        return ""
