"""The queues of a template as the catalogue's checks see queues.

One mapping of CloudFormation's resources to the facts that the catalogue judges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mendq.lint.names import Environment, Names
from mendq.lint.template import Place, Resource, Template, listed, under
from mendq.lint.values import NotKnown, Values
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, SourceQueue
from mendq.model.policy import EVERYBODY, statements_of
from mendq.model.queue import DEFAULTS, Redrive, arn_of, arn_of_url
from mendq.notifications.change_lines import NUMBER

MAPPING = "AWS::Lambda::EventSourceMapping"
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
REDRIVE, POLICY, TARGET = "RedrivePolicy", "Policy", "deadLetterTargetArn"
# Of a grant to somebody who is named, no check asks to whom exactly, by way of what, and on what.
_OF_A_GRANT = ("Principal", "Resource", "Condition")
# SQS answers with these, set or not, and checks rely on that.
_ALWAYS_THERE = ("VisibilityTimeout", "MessageRetentionPeriod")
_BOOLEANS = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# No queue's ARN: `dlq_messages_unknown` keeps everybody from reading it.
_ANY = "not-known"


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

    `target` is its DLQ, None where it has none.
    """

    resource: Resource
    policy: Resource | None
    consumers: Sequence[Consumer]
    target: str | NotKnown | None
    dlq_messages_unknown: NotKnown | None = None
    type_unknown: NotKnown | None = None

    @property
    def logical_id(self) -> str:
        return self.resource.logical_id

    @property
    def dlq_arn(self) -> str | None:
        if self.dlq_messages_unknown is not None:
            raise NotKnown(self.dlq_messages_unknown.because, REDRIVE)
        return super().dlq_arn

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
        for queue in alone.values():
            if isinstance(queue.target, str):
                source = SourceQueue(queue.queue_arn, queue.attributes)
                sources.setdefault(queue.target, []).append(source)
        self.queues = {
            arn: self._beside_others(queue, alone, sources.get(arn, ()))
            for arn, queue in alone.items()
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
        """The DLQ. Where only its count is known, `known` then has that alone."""
        if REDRIVE not in unknown:
            return arn_of(Facts(_ANY, {REDRIVE: known.get(REDRIVE, "")}, {}).dlq_arn)
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
            dlq=DlqFacts(dead.queue_arn, dead.attributes) if dead else None,
            dlq_sources=tuple(sources),
            dlq_messages_unknown=unknown,
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
