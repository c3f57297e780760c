"""The queues of a template as the catalogue's checks see queues.

One mapping of CloudFormation's resources to the facts that the catalogue judges.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mendq.lint.template import Place, Template, TemplateResource, get_mapping, to_list
from mendq.lint.values import DeployTarget, Names, NotKnown
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.limits import TEAM_TAG
from mendq.model.policy import EVERYBODY, statements_of
from mendq.model.queue import DEFAULTS, arn_of, arn_of_url, parse_redrive_policy
from mendq.notifications.change_lines import NUMBER

MAPPING = "AWS::Lambda::EventSourceMapping"
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
REDRIVE, POLICY = "RedrivePolicy", "Policy"
TARGET, COUNT = "deadLetterTargetArn", "maxReceiveCount"
# Of a grant to somebody who is named, no check asks to whom exactly, by way of what, and on what.
_OF_A_GRANT = ("Principal", "Resource", "Condition")
# SQS answers with these, set or not, and checks rely on that.
_ALWAYS_THERE = ("VisibilityTimeout", "MessageRetentionPeriod")
_BOOLEANS = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# In place of a text that is not known.
_ANY = "not-known"


class Attributes(dict[str, Any]):
    """Attributes as SQS spells them; `read` collects what was asked.

    Reading one that is not known raises NotKnown: no check can take it for what is not set.
    """

    def __init__(self, said: Mapping[str, str | NotKnown]) -> None:
        super().__init__(said)
        self.read: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        found = super().__getitem__(name)
        if isinstance(found, NotKnown):
            raise NotKnown(found.because, name)
        return str(found)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.append(name)
        return self[name] if name in self.keys() else default


@dataclass(frozen=True, kw_only=True)
class Consumer(LambdaConsumer):
    """A mapping's function; `unknown` says why its times are not known, which are then 0."""

    mapping: TemplateResource
    unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class Queue(Facts):
    """One queue as it is declared; what is not known raises NotKnown where it is read."""

    resource: TemplateResource
    attributes: Attributes
    policy: TemplateResource | None
    lambda_consumers: tuple[Consumer, ...]

    @property
    def max_receive_count(self) -> int | None:
        """Raise NotKnown where it is not known, and a function reads the queue."""
        if f'"{_ANY}"' in self.attributes.get(REDRIVE, "") and self.lambda_consumers:
            raise NotKnown(f"{COUNT}: known when it is deployed", REDRIVE)
        return super().max_receive_count


class DeclaredQueues:
    """A template's queues by ARN; of what is `astray` nobody knows which queue it is about."""

    def __init__(self, template: Template, environment: DeployTarget) -> None:
        self.template = template
        self.names = Names(template, environment)
        self.astray = self.names.untyped
        self._stray_policy: NotKnown | None = None
        self._consumers = defaultdict[str, list[Consumer]](list)
        self._policies: dict[str, tuple[TemplateResource, str | NotKnown]] = {}
        for each in template.of_type(MAPPING, *POLICIES):
            try:
                (self._take_mapping if each.type == MAPPING else self._take_policy)(each)
            except NotKnown as unknown:
                self.astray[each.logical_id] = unknown
                if each.type in POLICIES:
                    why = f"whose policy {each.logical_id} is: {unknown.because}"
                    self._stray_policy = NotKnown(why)
        self._attributes = {arn: self._attributes_of(arn) for arn in self.names.queues}
        sources = defaultdict[Any, list[QueueFacts]](list)
        for arn, attributes in self._attributes.items():
            sources[self._dlq_arn(arn)].append(QueueFacts(arn, attributes))
        self.queues = {arn: self._queue(arn, sources[arn]) for arn in self.names.queues}

    def _take_mapping(self, mapping: TemplateResource) -> None:
        values, given = self.names, mapping.properties
        source = values.text(given.get("EventSourceArn"))
        if source not in self.names.queues:
            if source and source.split(":")[2:3] == ["sqs"]:
                raise NotKnown("it reads a queue that the template does not declare")
        elif values.text(given.get("Enabled")) != "false":
            if "Condition" in mapping.written:
                raise NotKnown(f"a condition decides whether it reads {self.names.queues[source]}")
            self._consumers[source].append(self._consumer(mapping))

    def _consumer(self, mapping: TemplateResource) -> Consumer:
        arn = "a function of another stack"
        try:
            arn = self.names.text(mapping.properties.get("FunctionName")) or "a function"
            logical_id = self.names.function_named(arn) or ""
            arn = self.names.known.get(f"{logical_id}.Arn", arn)
            timeout = self._seconds(self.template.resources.get(logical_id), "Timeout", 3)
            window = self._seconds(mapping, "MaximumBatchingWindowInSeconds", 0)
        except NotKnown as error:
            return Consumer(arn, 0, 0, mapping=mapping, unknown=error.because)
        return Consumer(arn, timeout, window, mapping=mapping)

    def _seconds(self, resource: TemplateResource | None, name: str, default: int) -> int:
        """The default where it is not set; of functions it is in their page.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
        """
        if resource is None:
            raise NotKnown("the template does not declare its function")
        text = self.names.text(resource.properties.get(name)) or str(default)
        if not NUMBER.fullmatch(text):
            raise NotKnown("it is no whole number")
        return int(text)

    def _take_policy(self, policy: TemplateResource) -> None:
        """Keep the policy of each queue that it names; SQS keeps one.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html
        """
        text = self._policy_text(policy)
        urls = to_list(self.names.of(policy.properties.get(POLICIES[policy.type])))
        for arn in dict.fromkeys(arn_of_url(each, self.names.environment.region) for each in urls):
            if arn in self._policies:
                both = f"{self._policies[arn][0].logical_id} and {policy.logical_id}"
                text = NotKnown(f"{both} both set it, and SQS keeps one")
            if arn is not None and arn in self.names.queues:
                self._policies[arn] = policy, text

    def _policy_text(self, policy: TemplateResource) -> str | NotKnown:
        if "Condition" in policy.written:
            return NotKnown("a condition decides whether it has this policy")
        document = policy.properties.get("PolicyDocument")
        try:
            statements = (get_mapping(document) or {}).get("Statement")
            made = [self._statement(each) for each in to_list(statements)]
            found = self.names.of(document, _ANY if made else None)
        except NotKnown as because:
            return because
        found = {**found, "Statement": made} if isinstance(statements, list) else found
        text = json.dumps(found) if isinstance(found, dict | list) else found or ""
        return NotKnown("no policy that SQS would take") if statements_of(text) is None else text

    def _statement(self, statement: Any) -> Any:
        """In a grant to somebody who is named, a word stands for each text that is not known."""
        found = self.names.of(statement, _ANY)
        is_a_grant = isinstance(found, dict) and _is_a_grant_to_somebody(found)
        return found if is_a_grant else self.names.of(statement)

    def _attributes_of(self, arn: str) -> Attributes:
        """Every property as the attribute of its name; what SQS would not take is not known."""
        made: dict[str, str | NotKnown] = {name: str(DEFAULTS[name]) for name in _ALWAYS_THERE}
        for name, node in self._resource(arn).properties.items():
            try:
                found = self.names.of(node)
                made |= {} if found is None else {name: _spelled(name, found)}
            except NotKnown as because:
                target = self._target_of(node) if name == REDRIVE else ""
                made[name] = json.dumps({TARGET: target, COUNT: _ANY}) if target else because
        if arn in self._policies:
            made[POLICY] = self._policies[arn][1]
        elif self._stray_policy is not None:
            made[POLICY] = self._stray_policy
        return Attributes(made)

    def _target_of(self, node: Any) -> str:
        """Of a redrive policy whose count is a function; else, or if it is not known, empty."""
        redrive = get_mapping(node) or {}
        has_function = isinstance(redrive.get(COUNT), dict)
        return self.names.known_text(redrive.get(TARGET)) if has_function else ""

    def _dlq_arn(self, arn: str) -> str | None:
        try:
            return arn_of(QueueFacts(arn, self._attributes[arn]).dlq_arn)
        except NotKnown:
            return None

    def _queue(self, arn: str, sources: Sequence[QueueFacts]) -> Queue:
        resource, dlq_arn = self._resource(arn), self._dlq_arn(arn)
        is_here = dlq_arn in self.names.queues
        return Queue(
            queue_arn=arn,
            attributes=self._attributes[arn],
            tags=self._tags(resource),
            lambda_consumers=tuple(self._consumers[arn]),
            dlq=QueueFacts(dlq_arn, self._attributes[dlq_arn]) if dlq_arn and is_here else None,
            dlq_sources=tuple(sources),
            resource=resource,
            policy=self._policies.get(arn, (None,))[0],
        )

    def _resource(self, arn: str) -> TemplateResource:
        return self.template.resources[self.names.queues[arn]]

    def _tags(self, resource: TemplateResource) -> dict[str, str]:
        """Those that are known."""
        tags = [each for each in to_list(resource.properties.get("Tags")) if isinstance(each, dict)]
        text = self.names.known_text
        every = {text(each.get("Key")): text(each.get("Value")) for each in tags}
        return {key: said for key, said in every.items() if key != TEAM_TAG}

    def place(self, queue: Queue, attributes: Sequence[str]) -> Place:
        """The place of the first of the attributes that the template sets, else the queue's."""
        for each in attributes:
            if each == POLICY and queue.policy is not None:
                return self.place_of(queue.policy, "Properties", "PolicyDocument")
            if each in queue.resource.properties:
                return self.place_of(queue.resource, "Properties", each)
        return self.place_of(queue.resource)

    def place_of(self, resource: TemplateResource, *keys: str | int) -> Place:
        return self.template.place("Resources", resource.logical_id, *keys)


def _is_a_grant_to_somebody(statement: Mapping[str, Any]) -> bool:
    """Whether all that is not known of it is what no check asks: who exactly, by whom, on what."""
    asked = {name: each for name, each in statement.items() if name not in _OF_A_GRANT}
    principal = statement.get("Principal")
    if statement.get("Effect") != "Allow" or not isinstance(principal, dict):
        return False
    named = [one for each in principal.values() for one in to_list(each)]
    is_known = _ANY not in json.dumps([asked, principal.get("Service")])
    return is_known and principal.keys() <= {"AWS", "Service"} and EVERYBODY not in named


def _spelled(name: str, found: Any) -> str:
    text = found if isinstance(found, str) else json.dumps(found)
    if name in DEFAULTS and not NUMBER.fullmatch(text):
        raise NotKnown("it is no whole number")
    if name in _BOOLEANS and text.lower() not in ("true", "false"):
        raise NotKnown("it is neither true nor false")
    if name == REDRIVE and text not in ("", "{}") and parse_redrive_policy(text) is None:
        raise NotKnown("no redrive policy that SQS would take")
    return text.lower() if name in _BOOLEANS else text
