"""What a value of a template comes to as far as the template alone tells.

What has no name or ARN before it is deployed gets one that meets no real one. cfn-lint's own
resolvers yield every value that might be, and grow without a bound; a check needs the one that is,
and each character is counted.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mendq.lint.template import Template, TemplateResource, get_mapping, to_list
from mendq.model.queue import FIFO, arn_of_name, partition_of, public_url

QUEUE, FUNCTION = "AWS::SQS::Queue", "AWS::Lambda::Function"
_ACCOUNT, _REGION = "000000000000", "any-region"
# Each is said as often as something turns on it.
_MOST_OF_A_REASON = 600
# No name holds a brace, and a scan that looked beyond one would begin anew at each.
_IN_SUB = re.compile(r"\$\{(?:([^{}]{1,512})\})?")
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARN = re.compile(
    r"arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:[A-Za-z0-9_:/-]*[A-Za-z0-9_/-](?:\.fifo)?"
)
_WHY = {
    "Fn::ImportValue": "imported from another stack",
    "Fn::If": "a condition decides it",
    "Fn::Transform": "a macro writes it",
}


class NotKnown(Exception):
    """A value that the template alone does not tell, and why; `attribute` is what was read."""

    def __init__(self, because: str, attribute: str = "") -> None:
        most = _MOST_OF_A_REASON
        self.because = because if len(because) <= most else f"{because[: most - 3]}..."
        self.attribute = attribute
        super().__init__(self.because)


@dataclass
class Values:
    """Works values out from what is `known` by name (`Orders`, `Orders.Arn`, `AWS::Region`).

    `defaults` collects the parameters whose default was taken. Every question raises NotATemplate
    where it takes more work than is left.
    """

    template: Template
    known: dict[str, str]
    defaults: dict[str, str] = field(default_factory=dict)

    def of(self, node: Any, otherwise: str | None = None) -> Any:
        """Text, list, mapping, or None where nothing is set; raises NotKnown.

        With `otherwise`, that word takes the place of each function whose value is not known.
        """
        self.template.work.take(1 + len(node or ""))
        if isinstance(node, list):
            every = [self.of(each, otherwise) for each in node]
            return [each for each in every if each is not None]
        if not isinstance(node, dict):
            return node
        name = next(iter(node), "")
        if len(node) == 1 and (name == "Ref" or name.startswith("Fn::")):
            try:
                return self._called(name, node[name])
            except NotKnown:
                if otherwise is None:
                    raise
                return otherwise
        self.template.work.take(sum(map(len, node)))
        found = {key: self.of(each, otherwise) for key, each in node.items()}
        return {key: each for key, each in found.items() if each is not None}

    def text(self, node: Any) -> str | None:
        """Raise NotKnown also where it comes to something else than a text."""
        found = self.of(node)
        if found is not None and not isinstance(found, str):
            raise NotKnown("it is no text")
        return found

    def known_text(self, node: Any) -> str:
        """Empty where nothing is set, or nobody knows it."""
        try:
            return self.text(node) or ""
        except NotKnown:
            return ""

    def _called(self, name: str, given: Any) -> Any:
        match name, given:
            case "Ref", str():
                return self._referred(given)
            case "Fn::GetAtt", [str(), str()]:
                return self._referred(".".join(given))
            case "Fn::Sub", str():
                return self._substituted(given, {})
            case "Fn::Sub", [str() as text, dict() as own]:
                return self._substituted(text, own)
            case "Fn::Join", [str() as by, joined]:
                return self._joined(by, self.of(joined))
            case "Fn::FindInMap", [_, _, _]:
                return self._found_in_map(given)
        raise NotKnown(f"{name}: {_WHY.get(name, 'known when it is deployed')}")

    def _referred(self, name: str) -> Any:
        found: Any = self.known.get(name)
        if name == "AWS::NoValue":
            return None
        if found is None and name in self.template.section("Parameters"):
            found = self._default_of(name)
        if found is None:
            raise NotKnown(f"{name}: known when it is deployed")
        self.template.work.take(1 + sum(map(len, to_list(found))))
        return found

    def _default_of(self, name: str) -> Any:
        parameter = get_mapping(self.template.section("Parameters"), name) or {}
        kind, default = str(parameter.get("Type") or "String"), parameter.get("Default")
        if not isinstance(default, str):
            raise NotKnown(f"the parameter {name} has no default")
        if kind.startswith("AWS::SSM::Parameter::") or parameter.get("NoEcho") == "true":
            raise NotKnown(f"the parameter {name}: its value is not in the template")
        self.defaults[name] = default
        is_list = kind.startswith("List<") or kind == "CommaDelimitedList"
        return [each.strip() for each in default.split(",")] if is_list else default

    def _substituted(self, text: str, own: Mapping[str, Any]) -> str:
        """Each name is worked out once, and counts each time."""
        pieces = dict[str, Any]()

        def piece(found: re.Match[str]) -> str:
            name = found.group(1) or ""
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name not in pieces:
                pieces[name] = self.of(own[name]) if name in own else self._referred(name)
            if not isinstance(pieces[name], str):
                raise NotKnown(f"{name}: it is no text")
            self.template.work.take(1 + len(pieces[name]))
            return str(pieces[name])

        self.template.work.take(1 + len(text))
        return _IN_SUB.sub(piece, text)

    def _joined(self, by: str, parts: Any) -> str:
        if not isinstance(parts, list) or not all(isinstance(each, str) for each in parts):
            raise NotKnown("Fn::Join: it is no list of texts")
        self.template.work.take(sum(len(by) + len(each) for each in parts))
        return by.join(parts)

    def _found_in_map(self, given: list[Any]) -> Any:
        """A text or a list of texts: CloudFormation takes no functions in a mapping.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/mappings-section-structure.html
        """
        found: Any = self.template.section("Mappings")
        for key in [self.of(each) for each in given]:
            found = found.get(key) if isinstance(found, dict) and isinstance(key, str) else None
        if not to_list(found) or not all(isinstance(each, str) for each in to_list(found)):
            raise NotKnown("Fn::FindInMap: it is neither a text nor a list of texts")
        return self.of(found)


@dataclass(frozen=True)
class DeployTarget:
    """Where a template would be deployed, as far as somebody said."""

    account: str = _ACCOUNT
    region: str = _REGION

    @property
    def pseudo_parameters(self) -> dict[str, str]:
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return {
            "AWS::AccountId": self.account,
            "AWS::Partition": partition_of(self.region),
            "AWS::Region": self.region,
            "AWS::StackName": "stack-name",
            "AWS::URLSuffix": suffix,
        }

    def arn(self, service: str, rest: str) -> str:
        return f"arn:{partition_of(self.region)}:{service}:{self.region}:{self.account}:{rest}"


class Names(Values):
    """Values by what resources are called; `queues` are logical ids by ARN.

    `untyped` says of a queue why nobody knows whether it is FIFO: it has no name here.
    """

    def __init__(self, template: Template, environment: DeployTarget) -> None:
        super().__init__(template, environment.pseudo_parameters)
        self.environment = environment
        self.queues: dict[str, str] = {}
        self.untyped: dict[str, NotKnown] = {}
        self._functions: dict[str, str] = {}
        for number, each in enumerate(template.resources.values()):
            if each.type == QUEUE:
                self._name_queue(each)
            elif each.type.startswith("AWS::"):
                self._name_other(each, f"resource-{number}")
        for each in template.of_type("AWS::Lambda::Version", "AWS::Lambda::Alias"):
            name = self.known_text(each.properties.get("FunctionName"))
            if function := self.function_named(name):
                # A version or an alias is its function's, as far as a queue is concerned.
                own, arn = each.logical_id, f"{self.known[f'{function}.Arn']}:{len(self.known)}"
                self.known |= dict.fromkeys((own, f"{own}.AliasArn", f"{own}.FunctionArn"), arn)

    def _name_queue(self, resource: TemplateResource) -> None:
        logical_id = resource.logical_id
        name = self.known_text(resource.properties.get("QueueName"))
        try:
            is_fifo = self.of(resource.properties.get("FifoQueue")) == "true"
        except NotKnown as unknown:
            self.untyped[logical_id] = unknown
            return
        ending = FIFO if is_fifo or name.endswith(FIFO) else ""
        name = name.removesuffix(FIFO) + ending
        arn = arn_of_name(name, self.environment.region, self.environment.account)
        if arn is None or arn in self.queues:
            name = f"unnamed-{len(self.queues)}{ending}"
            arn = self.environment.arn("sqs", name)
        self.queues[arn] = logical_id
        self.known |= {logical_id: public_url(arn), f"{logical_id}.Arn": arn}
        self.known[f"{logical_id}.QueueName"] = name

    def _name_other(self, resource: TemplateResource, name: str) -> None:
        """A name that nothing else has: no check of a queue asks which, only whose it is."""
        logical_id, arn = resource.logical_id, self.environment.arn("other", name)
        if resource.type == FUNCTION:
            own = self.known_text(resource.properties.get("FunctionName"))
            name = own if _WORD.fullmatch(own) and own not in self._functions else name
            self._functions[name] = logical_id
            arn = self.environment.arn("lambda", f"function:{name}")
        self.known |= {logical_id: name, f"{logical_id}.Arn": arn}

    def function_named(self, text: str) -> str | None:
        """The logical id of the function that a name or an ARN is about, if one is declared."""
        return self._functions.get(text.rpartition(":function:")[2].partition(":")[0])

    def shown(self, sentence: str) -> str:
        """The sentence with logical ids for what the template itself declares."""
        said = _ARN.sub(lambda found: self._owners.get(found.group(), found.group()), sentence)
        return said.replace(f":{_REGION}:{_ACCOUNT}:", ":${AWS::Region}:${AWS::AccountId}:")

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        own = ((text, name) for name, text in self.known.items() if "::" not in name)
        there = self.template.resources
        return {text: e if e in there else e.rpartition(".")[0] for text, e in own}
