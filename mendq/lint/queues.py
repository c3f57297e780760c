"""The queues of a template as the catalogue's checks see queues.

One mapping of CloudFormation's resources to the facts that the catalogue judges.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mendq.lint.template import Place, Resource, Template, listed, under
from mendq.lint.values import Environment, Names, NotKnown, Values
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, SourceQueue
from mendq.model.policy import EVERYBODY, statements_of
from mendq.model.queue import DEFAULTS, Redrive, arn_of, arn_of_url
from mendq.notifications.change_lines import NUMBER

MAPPING = "AWS::Lambda::EventSourceMapping"
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
REDRIVE, POLICY, TARGET, FIFO_QUEUE = "RedrivePolicy", "Policy", "deadLetterTargetArn", "FifoQueue"
# Of a grant to somebody who is named, no check asks to whom exactly, by way of what, and on what.
_OF_A_GRANT = ("Principal", "Resource", "Condition")
# SQS answers with these, set or not, and checks rely on that.
_ALWAYS_THERE = ("VisibilityTimeout", "MessageRetentionPeriod")
_BOOLEANS = frozenset({"SqsManagedSseEnabled", FIFO_QUEUE, "ContentBasedDeduplication"})
# No queue's ARN: `Queue.unknown` keeps everybody from reading it.
_ANY = "not-known"


@dataclass
class Attributes(Mapping[str, str]):
    """Attributes as SQS spells them; `read` collects what was asked.

    Reading one that is not known raises NotKnown: no check can take it for what is not set.
    """

    said: dict[str, str | NotKnown]
    read: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        found = self.said[name]
        if isinstance(found, NotKnown):
            raise NotKnown(found.because, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.said)

    def __len__(self) -> int:
        return len(self.said)


@dataclass(frozen=True)
class Consumer:
    """A mapping's function; `unknown` says why its times are not known, which are then 0."""

    mapping: Resource
    read_by: LambdaConsumer
    unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class Queue(Facts):
    """One queue as it is declared; what is not known raises NotKnown where it is read.

    `target` is its DLQ, None where it has none; `unknown` are attributes that say less than they
    seem to: of a RedrivePolicy the count alone, of a name nothing about its type.
    """

    resource: Resource
    attributes: Attributes
    policy: Resource | None
    consumers: Sequence[Consumer]
    target: str | NotKnown | None
    unknown: Mapping[str, NotKnown | None]

    @property
    def dlq_arn(self) -> str | None:
        self._raise_unknown(REDRIVE)
        return super().dlq_arn

    @property
    def is_fifo(self) -> bool:
        self._raise_unknown(FIFO_QUEUE)
        return super().is_fifo

    def _raise_unknown(self, attribute: str) -> None:
        if unknown := self.unknown.get(attribute):
            raise NotKnown(unknown.because, attribute)


class Declared:
    """A template's queues by ARN; of what is `astray` nobody knows which queue it is about."""

    def __init__(self, template: Template, environment: Environment) -> None:
        self.template = template
        self.defaults: dict[str, str] = {}
        self.names = Names(template, environment, self.defaults)
        self.values = Values(template, self.names.known, self.defaults)
        self.astray: dict[str, NotKnown] = {}
        self._consumers = defaultdict[str, list[Consumer]](list)
        self._policies: dict[str, tuple[Resource, str | NotKnown]] = {}
        for each in template.of_type(MAPPING, *POLICIES):
            try:
                (self._take_mapping if each.type == MAPPING else self._take_policy)(each)
            except NotKnown as because:
                self.astray[each.logical_id] = because
        self._attributes = {arn: self._attributes_of(arn) for arn in self.names.queues}
        self._targets = {arn: self._target(arn) for arn in self.names.queues}
        sources = defaultdict[Any, list[SourceQueue]](list)
        for arn, target in self._targets.items():
            sources[target].append(SourceQueue(arn, self._attributes[arn]))
        self.queues = {arn: self._queue(arn, sources[arn]) for arn in self.names.queues}

    def _take_mapping(self, mapping: Resource) -> None:
        values, given = self.values, mapping.properties
        source = values.text(given.get("EventSourceArn"))
        if source not in self.names.queues:
            if source and source.split(":")[2:3] == ["sqs"]:
                raise NotKnown("it reads a queue that the template does not declare")
            return
        if values.text(given.get("Enabled")) == "false":
            return
        if "Condition" in mapping.written:
            raise NotKnown(f"a condition decides whether it reads {self.names.queues[source]}")
        self._consumers[source].append(self._consumer(mapping))

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
        if "Condition" in policy.written:
            return NotKnown("a condition decides whether it has this policy")
        try:
            found = self._document(policy.properties.get("PolicyDocument"))
        except NotKnown as because:
            return because
        text = json.dumps(found) if isinstance(found, dict | list) else found or ""
        return NotKnown("no policy that SQS would take") if statements_of(text) is None else text

    def _document(self, document: Any) -> Any:
        """In a grant to somebody who is named, a word stands for each text that is not known."""
        if not isinstance(document, dict):
            return document
        statements = document.get("Statement")
        if not isinstance(statements, list):
            return self.values.of(document)
        made = []
        for each in statements:
            try:
                made.append(self.values.of(each))
            except NotKnown:
                found = self.values.of(each, _ANY)
                if not isinstance(found, dict) or not _is_a_grant_to_somebody(found):
                    raise
                made.append(found)
        return self.values.of({**document, "Statement": []}) | {"Statement": made}

    def _attributes_of(self, arn: str) -> Attributes:
        """Every property as the attribute of its name; what SQS would not take is not known."""
        made: dict[str, str | NotKnown] = {name: str(DEFAULTS[name]) for name in _ALWAYS_THERE}
        for name, node in self._resource(arn).properties.items():
            try:
                found = self.values.of(node)
                if found is not None:
                    made[name] = _spelled(name, found)
            except NotKnown as because:
                made[name] = because
        astray = next(
            (each for each in self.astray if self.template.resources[each].type in POLICIES), None
        )
        if arn in self._policies:
            made[POLICY] = self._policies[arn][1]
        elif astray is not None:
            made[POLICY] = NotKnown(f"whose policy {astray} is: {self.astray[astray].because}")
        return Attributes(made)

    def _target(self, arn: str) -> str | NotKnown | None:
        """The DLQ. Where only the count is known, the RedrivePolicy then has that alone."""
        values = self._attributes[arn].said
        written = values.get(REDRIVE, "")
        if isinstance(written, str):
            return arn_of(Facts(_ANY, {REDRIVE: written}, {}).dlq_arn)
        found = self.values.of(under(self._resource(arn).properties, REDRIVE) or {}, _ANY)
        found = found if isinstance(found, dict) else {}
        if found.get(TARGET) != _ANY:
            return arn_of(found.get(TARGET))
        count = str(found.get("maxReceiveCount"))
        if NUMBER.fullmatch(count) and len(count) < 6:
            values[REDRIVE] = Redrive(_ANY, int(count)).text
        return written

    def _queue(self, arn: str, sources: Sequence[SourceQueue]) -> Queue:
        resource, target = self._resource(arn), self._targets[arn]
        names, untyped = self.names.queues, self.names.untyped
        dead = target if isinstance(target, str) and target in names else None
        consumers = self._consumers[arn]
        of_dlq = target if isinstance(target, NotKnown) else untyped.get(names.get(dead or "", ""))
        return Queue(
            queue_arn=arn,
            attributes=self._attributes[arn],
            tags=self._tags(resource),
            lambda_consumers=tuple(each.read_by for each in consumers),
            dlq=DlqFacts(dead, self._attributes[dead]) if dead else None,
            dlq_sources=tuple(sources),
            resource=resource,
            policy=self._policies.get(arn, (None,))[0],
            consumers=consumers,
            target=target,
            unknown={REDRIVE: of_dlq, FIFO_QUEUE: untyped.get(resource.logical_id)},
        )

    def _resource(self, arn: str) -> Resource:
        return self.template.resources[self.names.queues[arn]]

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
