"""The queues of a template as the catalogue's checks see queues.

What has no name or ARN before it is deployed gets one that meets no real one.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cli.lint.template import Place, Resource, Template, listed, under
from cli.lint.values import NotKnown, Values
from functions.healing.companions import FIFO
from functions.healing.dead_letters import Redrive
from functions.healing.facts import DeadLetterQueue, Facts, LambdaConsumer, SourceQueue
from functions.healing.policies import EVERYBODY, statements_of
from functions.healing.queue_defaults import DEFAULTS
from functions.healing.queue_names import (
    arn_of,
    arn_of_name,
    arn_of_url,
    partition_of,
    public_url,
)
from functions.healing.template_lines import NUMBER

QUEUE, FUNCTION = "AWS::SQS::Queue", "AWS::Lambda::Function"
TOPIC, MAPPING = "AWS::SNS::Topic", "AWS::Lambda::EventSourceMapping"
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
REDRIVE, POLICY, TARGET = "RedrivePolicy", "Policy", "deadLetterTargetArn"
# Of a grant to somebody who is named, no check asks to whom exactly, by way of what, and on what.
_OF_A_GRANT = ("Principal", "Resource", "Condition")
# SQS answers with these, set or not, and checks rely on that.
_ALWAYS_THERE = ("VisibilityTimeout", "MessageRetentionPeriod")
_BOOLEANS = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# No queue's ARN: `dead_letters_unknown` keeps everybody from reading it.
_ANY = "not-known"
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


@dataclass
class Attributes(Mapping[str, str]):
    """Attributes as SQS spells them; `read` collects what was asked.

    Reading one of `unknown` raises NotKnown: no check can take it for what is not set.
    """

    known: Mapping[str, str]
    unknown: Mapping[str, NotKnown] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        if name in self.unknown:
            raise NotKnown(self.unknown[name].because, name)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.known, **self.unknown})

    def __len__(self) -> int:
        return len({**self.known, **self.unknown})


@dataclass(frozen=True)
class Consumer:
    """A mapping's function; `unknown` says why its times are not known, which are then 0."""

    mapping: Resource
    read_by: LambdaConsumer
    unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class Queue(Facts):
    """One queue as it is declared; what is not known raises NotKnown where it is read.

    `target` is its dead-letter queue, None where it has none.
    """

    resource: Resource
    policy: Resource | None
    consumers: Sequence[Consumer]
    target: str | NotKnown | None
    dead_letters_unknown: NotKnown | None = None
    type_unknown: NotKnown | None = None

    @property
    def logical_id(self) -> str:
        return self.resource.logical_id

    @property
    def dead_letter_arn(self) -> str | None:
        if self.dead_letters_unknown is not None:
            raise NotKnown(self.dead_letters_unknown.because, REDRIVE)
        return super().dead_letter_arn

    @property
    def is_fifo(self) -> bool:
        if self.type_unknown is not None:
            raise NotKnown(self.type_unknown.because, "FifoQueue")
        return super().is_fifo


class Declared:
    """A template's queues by ARN; of what is `astray` nobody knows which queue it is about."""

    def __init__(self, template: Template, environment: Environment) -> None:
        self.template = template
        self.defaults: dict[str, str] = {}
        self.names = Names(template, environment, self.defaults)
        self.values = Values(template, self.names.known, self.defaults)
        self.astray: dict[str, NotKnown] = {}
        self._consumers: dict[str, list[Consumer]] = {}
        self._policies: dict[str, tuple[Resource, str | NotKnown]] = {}
        for each in template.of_type(MAPPING):
            self._sort(each, self._take_mapping)
        for each in template.of_type(*POLICIES):
            self._sort(each, self._take_policy)
        alone = {arn: self._queue(arn, name) for arn, name in self.names.queues.items()}
        sources: dict[str, list[SourceQueue]] = {}
        for each in alone.values():
            if isinstance(each.target, str):
                source = SourceQueue(each.queue_arn, each.attributes)
                sources.setdefault(each.target, []).append(source)
        self.queues = {
            arn: self._beside_others(each, alone, sources.get(arn, ()))
            for arn, each in alone.items()
        }

    def _sort(self, resource: Resource, take: Any) -> None:
        try:
            take(resource)
        except NotKnown as because:
            self.astray[resource.logical_id] = because

    def _take_mapping(self, mapping: Resource) -> None:
        values, given = self.values, mapping.properties
        source = values.text(given.get("EventSourceArn"))
        if source not in self.names.queues:
            if source and source.split(":")[2:3] == ["sqs"]:
                raise NotKnown("it reads a queue that the template does not declare")
            return
        if values.text(given.get("Enabled")) == "false":
            return
        if mapping.is_conditional:
            raise NotKnown(f"a condition decides whether it reads {self.names.queues[source]}")
        self._consumers.setdefault(source, []).append(self._consumer(mapping))

    def _consumer(self, mapping: Resource) -> Consumer:
        arn = "a function of another stack"
        try:
            arn = self.values.text(mapping.properties.get("FunctionName")) or "a function"
            logical_id = self.names.function_named(arn) or ""
            arn = self.names.known.get(f"{logical_id}.Arn", arn)
            timeout = self._seconds(self.template.resources.get(logical_id), "Timeout", 3)
            window = self._seconds(mapping, "MaximumBatchingWindowInSeconds", 0)
        except NotKnown as error:
            return Consumer(mapping, LambdaConsumer(arn, 0, 0), error.because)
        return Consumer(mapping, LambdaConsumer(arn, timeout, window))

    def _seconds(self, resource: Resource | None, name: str, default: int) -> int:
        """The default where it is not set; of functions it is in their page.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
        """
        if resource is None:
            raise NotKnown("the template does not declare its function")
        text = self.values.text(resource.properties.get(name)) or str(default)
        if not NUMBER.fullmatch(text):
            raise NotKnown("it is no whole number")
        return int(text)

    def _take_policy(self, policy: Resource) -> None:
        """Keep the policy of each queue that it names; SQS keeps one.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html
        """
        text = self._policy_text(policy)
        urls = listed(self.values.of(policy.properties.get(POLICIES[policy.type])))
        for arn in dict.fromkeys(arn_of_url(each, self.names.environment.region) for each in urls):
            if arn is None or arn not in self.names.queues:
                continue
            if arn in self._policies:
                both = f"{self._policies[arn][0].logical_id} and {policy.logical_id}"
                text = NotKnown(f"{both} both set it, and SQS keeps one")
            self._policies[arn] = policy, text

    def _policy_text(self, policy: Resource) -> str | NotKnown:
        if policy.is_conditional:
            return NotKnown("a condition decides whether it has this policy")
        document = policy.properties.get("PolicyDocument")
        try:
            found = self._document(document) if isinstance(document, dict) else document
            text = json.dumps(found) if isinstance(found, dict | list) else found or ""
        except NotKnown as because:
            return because
        return NotKnown("no policy that SQS would take") if statements_of(text) is None else text

    def _document(self, document: Mapping[str, Any]) -> Any:
        statements = document.get("Statement")
        if not isinstance(statements, list):
            return self.values.of(document)
        rest = {name: each for name, each in document.items() if name != "Statement"}
        return self.values.of(rest) | {"Statement": [self._statement(each) for each in statements]}

    def _statement(self, statement: Any) -> Any:
        """In a grant to somebody who is named, a word for each text that is not known."""
        try:
            return self.values.of(statement)
        except NotKnown:
            found = self.values.of(statement, _ANY)
            if not isinstance(found, dict) or not _is_a_grant_to_somebody(found):
                raise
            return found

    def _queue(self, arn: str, logical_id: str) -> Queue:
        resource = self.template.resources[logical_id]
        known, unknown = self._attributes(resource)
        policy, text = self._policies.get(arn, (None, None))
        astray = next((each for each in self.astray if self._is_policy(each)), None)
        if isinstance(text, str):
            known[POLICY] = text
        elif text is not None:
            unknown[POLICY] = text
        elif astray is not None:
            unknown[POLICY] = NotKnown(f"whose policy {astray} is: {self.astray[astray].because}")
        target, consumers = self._target(resource, known, unknown), self._consumers.get(arn, ())
        return Queue(
            arn,
            Attributes(known, unknown),
            self._tags(resource),
            lambda_consumers=tuple(each.read_by for each in consumers),
            resource=resource,
            policy=policy,
            consumers=consumers,
            target=target,
            type_unknown=self.names.untyped.get(logical_id),
        )

    def _is_policy(self, logical_id: str) -> bool:
        return self.template.resources[logical_id].type in POLICIES

    def _attributes(self, resource: Resource) -> tuple[dict[str, str], dict[str, NotKnown]]:
        """Every property as the attribute of its name; what SQS would not take is not known."""
        known = {name: str(DEFAULTS[name]) for name in _ALWAYS_THERE}
        unknown: dict[str, NotKnown] = {}
        for name, node in resource.properties.items():
            try:
                found = self.values.of(node)
                if found is not None:
                    known[name] = _spelled(name, found)
            except NotKnown as because:
                unknown[name] = because
        return known, unknown

    def _target(
        self, resource: Resource, known: dict[str, str], unknown: dict[str, NotKnown]
    ) -> str | NotKnown | None:
        """The dead-letter queue. Where only its count is known, `known` then has that alone."""
        if REDRIVE not in unknown:
            return arn_of(Facts(_ANY, {REDRIVE: known.get(REDRIVE, "")}, {}).dead_letter_arn)
        written = under(resource.properties, REDRIVE) or {}
        try:
            return arn_of(self.values.text(written.get(TARGET)))
        except NotKnown as because:
            target = because
        try:
            count = self.values.text(written.get("maxReceiveCount")) or ""
        except NotKnown:
            return target
        if NUMBER.fullmatch(count) and len(count) < 6:
            known[REDRIVE] = Redrive(_ANY, int(count)).text
            del unknown[REDRIVE]
        return target

    def _tags(self, resource: Resource) -> dict[str, str]:
        """Those that are known."""
        found: dict[str, str] = {}
        for each in listed(resource.properties.get("Tags")):
            tag = each if isinstance(each, dict) else {}
            try:
                key, text = (self.values.text(tag.get(name)) for name in ("Key", "Value"))
            except NotKnown:
                continue
            found |= {key: text} if key and text else {}
        return found

    def _beside_others(
        self, queue: Queue, others: Mapping[str, Queue], sources: Sequence[SourceQueue]
    ) -> Queue:
        target = queue.target
        dead = others.get(target) if isinstance(target, str) else None
        unknown = dead.type_unknown if dead else target if isinstance(target, NotKnown) else None
        return replace(
            queue,
            dead_letter_queue=DeadLetterQueue(dead.queue_arn, dead.attributes) if dead else None,
            dead_letter_sources=tuple(sources),
            dead_letters_unknown=unknown,
        )

    def place(self, queue: Queue, attributes: Sequence[str]) -> Place:
        """The place of the first of the attributes that the template sets, else the queue's."""
        for each in attributes:
            if each == POLICY and queue.policy is not None:
                return self.place_of(queue.policy, "Properties", "PolicyDocument")
            if each in queue.resource.properties:
                return self.place_of(queue.resource, "Properties", each)
        return self.place_of(queue.resource)

    def place_of(self, resource: Resource, *keys: str | int) -> Place:
        return self.template.place("Resources", resource.logical_id, *keys)


def _is_a_grant_to_somebody(statement: Mapping[str, Any]) -> bool:
    """Whether all that is not known of it is what no check asks: who exactly, by whom, on what."""
    asked = {name: each for name, each in statement.items() if name not in _OF_A_GRANT}
    principal = statement.get("Principal")
    if statement.get("Effect") != "Allow" or not isinstance(principal, dict):
        return False
    named = [one for each in principal.values() for one in listed(each)]
    is_known = _ANY not in json.dumps([asked, principal.get("Service")])
    return is_known and principal.keys() <= {"AWS", "Service"} and EVERYBODY not in named


def _spelled(name: str, found: Any) -> str:
    text = found if isinstance(found, str) else json.dumps(found)
    if name in DEFAULTS and not NUMBER.fullmatch(text):
        raise NotKnown("it is no whole number")
    if name in _BOOLEANS and text.lower() not in ("true", "false"):
        raise NotKnown("it is neither true nor false")
    return text.lower() if name in _BOOLEANS else text
