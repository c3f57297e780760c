"""Map the queues of a template to the facts that the catalogue's checks read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mendq.lint.template import Place, Template, TemplateResource, get_mapping, to_list
from mendq.lint.values import DeployTarget, NotKnown, ResourceNames
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.policy import EVERYBODY, statements_of
from mendq.model.queue import DEFAULTS, arn_of, arn_of_url, parse_redrive_policy
from mendq.model.tags import TEAM_TAG
from mendq.notifications.change_lines import NUMBER

MAPPING = "AWS::Lambda::EventSourceMapping"
# Resource types of queue policies, each with the property that names the queues.
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SQS::QueueInlinePolicy": "Queue"}
# Attributes of a queue.
REDRIVE = "RedrivePolicy"
POLICY = "Policy"
# Keys of a redrive policy.
TARGET = "deadLetterTargetArn"
COUNT = "maxReceiveCount"
# In a grant to a named principal, no check asks who exactly it is, under which condition it may act
# and on which resource.
_UNCHECKED_KEYS_OF_GRANT = ("Principal", "Resource", "Condition")
# SQS returns these attributes even if they were never set, and checks rely on that.
_ALWAYS_RETURNED = ("VisibilityTimeout", "MessageRetentionPeriod")
_BOOLEANS = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# Placeholder for a text that is not known.
_PLACEHOLDER = "not-known"


class Attributes(dict[str, Any]):
    """Attributes of a queue as SQS spells them. Reading an unknown one raises NotKnown.

    This way, no check can mistake an unknown attribute for one that is not set.
    """

    def __init__(self, attributes: Mapping[str, str | NotKnown]) -> None:
        super().__init__(attributes)
        # Names of the attributes that were read, in their order.
        self.names_read: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.names_read.append(name)
        value = super().__getitem__(name)
        if isinstance(value, NotKnown):
            raise NotKnown(value.because, name)
        return str(value)

    def get(self, name: str, default: Any = None) -> Any:
        self.names_read.append(name)
        return self[name] if name in self.keys() else default


@dataclass(frozen=True, kw_only=True)
class Consumer(LambdaConsumer):
    """A function that consumes a queue, with the event source mapping that connects them."""

    mapping: TemplateResource
    # Why the function's times are not known. They are 0 then. Empty if they are known.
    unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class Queue(Facts):
    """Facts about a queue that a template declares. Reading an unknown fact raises NotKnown."""

    resource: TemplateResource
    attributes: Attributes
    # The resource that sets the queue's policy. None if the template has none.
    policy: TemplateResource | None
    lambda_consumers: tuple[Consumer, ...]

    @property
    def max_receive_count(self) -> int | None:
        """The number of receives after which SQS moves a message to the DLQ. None without a DLQ.

        Raises NotKnown if the number is not known and a function consumes the queue.
        """
        if f'"{_PLACEHOLDER}"' in self.attributes.get(REDRIVE, "") and self.lambda_consumers:
            raise NotKnown(f"{COUNT}: known when it is deployed", REDRIVE)
        return super().max_receive_count


class DeclaredQueues:
    """All queues of a template by ARN, with their policies, consumers, DLQs and sources."""

    def __init__(self, template: Template, target: DeployTarget) -> None:
        self.template = template
        self.names = ResourceNames(template, target)
        # Queues whose type is not known, and mappings and policies whose queue is not known: the
        # reason by logical ID.
        self.unassigned = self.names.untyped
        # Set if it is not known which queue a policy belongs to: it may be any queue's policy.
        self._unassigned_policy: NotKnown | None = None
        self._consumers = defaultdict[str, list[Consumer]](list)
        # The policy resource of each queue, and its text.
        self._policies: dict[str, tuple[TemplateResource, str | NotKnown]] = {}
        for resource in template.list_resources(MAPPING, *POLICIES):
            try:
                if resource.type == MAPPING:
                    self._add_mapping(resource)
                else:
                    self._add_policy(resource)
            except NotKnown as unknown:
                self.unassigned[resource.logical_id] = unknown
                if resource.type in POLICIES:
                    why = f"whose policy {resource.logical_id} is: {unknown.because}"
                    self._unassigned_policy = NotKnown(why)
        self._attributes = {arn: self._make_attributes(arn) for arn in self.names.queues}
        sources = defaultdict[Any, list[QueueFacts]](list)
        for arn, attributes in self._attributes.items():
            sources[self._find_dlq_arn(arn)].append(QueueFacts(arn, attributes))
        self.queues = {arn: self._make_queue(arn, sources[arn]) for arn in self.names.queues}

    def _add_mapping(self, mapping: TemplateResource) -> None:
        """Add the mapping's function to the consumers of its queue, if the mapping is enabled.

        Raises NotKnown if the mapping's source is not known or is a queue that the template does
        not declare, or if a condition decides whether the mapping exists.
        """
        properties = mapping.properties
        source = self.names.resolve_text(properties.get("EventSourceArn"))
        if source not in self.names.queues:
            if source and source.split(":")[2:3] == ["sqs"]:
                raise NotKnown("it reads a queue that the template does not declare")
            return
        if self.names.resolve_text(properties.get("Enabled")) == "false":
            return
        if "Condition" in mapping.definition:
            raise NotKnown(f"a condition decides whether it reads {self.names.queues[source]}")
        self._consumers[source].append(self._make_consumer(mapping))

    def _make_consumer(self, mapping: TemplateResource) -> Consumer:
        """Return a mapping's function with its timeout and batching window, in seconds.

        If one of them is not known, both are 0 and `unknown` has the reason.
        """
        arn = "a function of another stack"
        try:
            arn = self.names.resolve_text(mapping.properties.get("FunctionName")) or "a function"
            logical_id = self.names.find_function(arn) or ""
            arn = self.names.known.get(f"{logical_id}.Arn", arn)
            timeout = self._seconds(self.template.resources.get(logical_id), "Timeout", 3)
            window = self._seconds(mapping, "MaximumBatchingWindowInSeconds", 0)
        except NotKnown as error:
            return Consumer(arn, 0, 0, mapping=mapping, unknown=error.because)
        return Consumer(arn, timeout, window, mapping=mapping)

    def _seconds(self, resource: TemplateResource | None, name: str, default: int) -> int:
        """Return a property in seconds, or `default` if it is not set.

        Raises NotKnown if the resource is None or the value is not known. The default timeout of a
        function is in
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
        """
        if resource is None:
            raise NotKnown("the template does not declare its function")
        text = self.names.resolve_text(resource.properties.get(name)) or str(default)
        if not NUMBER.fullmatch(text):
            raise NotKnown("it is no whole number")
        return int(text)

    def _add_policy(self, policy: TemplateResource) -> None:
        """Record a policy for each queue that it names. Raises NotKnown if a queue is not known.

        SQS keeps one policy per queue, so a queue that two resources name has an unknown policy.
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html
        """
        text = self._policy_text(policy)
        urls = to_list(self.names.resolve(policy.properties.get(POLICIES[policy.type])))
        region = self.names.target.region
        for arn in dict.fromkeys(arn_of_url(url, region) for url in urls):
            if arn in self._policies:
                both = f"{self._policies[arn][0].logical_id} and {policy.logical_id}"
                text = NotKnown(f"{both} both set it, and SQS keeps one")
            if arn is not None and arn in self.names.queues:
                self._policies[arn] = policy, text

    def _policy_text(self, policy: TemplateResource) -> str | NotKnown:
        """Return the policy's JSON text, or why it is not known."""
        if "Condition" in policy.definition:
            return NotKnown("a condition decides whether it has this policy")
        document = policy.properties.get("PolicyDocument")
        try:
            declared_statements = (get_mapping(document) or {}).get("Statement")
            statements = [self._resolve_statement(node) for node in to_list(declared_statements)]
            resolved = self.names.resolve(document, _PLACEHOLDER if statements else None)
        except NotKnown as because:
            return because
        if isinstance(declared_statements, list):
            resolved = {**resolved, "Statement": statements}
        text = json.dumps(resolved) if isinstance(resolved, dict | list) else resolved or ""
        if statements_of(text) is None:
            return NotKnown("no policy that SQS would take")
        return text

    def _resolve_statement(self, statement: Any) -> Any:
        """Return a statement with known values.

        In a grant to named principals, a placeholder stands for each text that is not known.
        Otherwise an unknown text raises NotKnown.
        """
        resolved = self.names.resolve(statement, _PLACEHOLDER)
        if isinstance(resolved, dict) and _is_grant_to_named_principals(resolved):
            return resolved
        return self.names.resolve(statement)

    def _make_attributes(self, arn: str) -> Attributes:
        """Return a queue's properties and policy, with the defaults that SQS always returns.

        A value that SQS would refuse counts as not known.
        """
        attributes: dict[str, str | NotKnown] = {
            name: str(DEFAULTS[name]) for name in _ALWAYS_RETURNED
        }
        for name, node in self._resource(arn).properties.items():
            try:
                value = self.names.resolve(node)
                if value is not None:
                    attributes[name] = _spell(name, value)
            except NotKnown as unknown:
                attributes[name] = unknown
                target = self._target_of(node) if name == REDRIVE else ""
                if target:
                    attributes[name] = json.dumps({TARGET: target, COUNT: _PLACEHOLDER})
        if arn in self._policies:
            _, attributes[POLICY] = self._policies[arn]
        elif self._unassigned_policy is not None:
            attributes[POLICY] = self._unassigned_policy
        return Attributes(attributes)

    def _target_of(self, node: Any) -> str:
        """Return the DLQ's ARN in a redrive policy in which only `maxReceiveCount` is not known.

        Empty if the count is no intrinsic function, or if the ARN is not known either.
        """
        redrive = get_mapping(node) or {}
        if not isinstance(redrive.get(COUNT), dict):
            return ""
        return self.names.text_or_empty(redrive.get(TARGET))

    def _find_dlq_arn(self, arn: str) -> str | None:
        """Return the ARN of a queue's DLQ. None if there is no DLQ or its ARN is not known."""
        try:
            return arn_of(QueueFacts(arn, self._attributes[arn]).dlq_arn)
        except NotKnown:
            return None

    def _make_queue(self, arn: str, sources: Sequence[QueueFacts]) -> Queue:
        resource = self._resource(arn)
        dlq_arn = self._find_dlq_arn(arn)
        dlq = None
        if dlq_arn and dlq_arn in self.names.queues:
            dlq = QueueFacts(dlq_arn, self._attributes[dlq_arn])
        policy, _ = self._policies.get(arn, (None, None))
        return Queue(
            queue_arn=arn,
            attributes=self._attributes[arn],
            tags=self._known_tags(resource),
            lambda_consumers=tuple(self._consumers[arn]),
            dlq=dlq,
            dlq_sources=tuple(sources),
            resource=resource,
            policy=policy,
        )

    def _resource(self, arn: str) -> TemplateResource:
        return self.template.resources[self.names.queues[arn]]

    def _known_tags(self, resource: TemplateResource) -> dict[str, str]:
        """Return the tags of a queue. A key or value that is not known is an empty text.

        The team's tag is left out, because only the deployed settings know which teams there are.
        """
        tags = dict[str, str]()
        for tag in to_list(resource.properties.get("Tags")):
            if isinstance(tag, dict):
                key = self.names.text_or_empty(tag.get("Key"))
                tags[key] = self.names.text_or_empty(tag.get("Value"))
        tags.pop(TEAM_TAG, None)
        return tags

    def find_place(self, queue: Queue, attributes: Sequence[str]) -> Place:
        """Return the place of the first of these attributes that the template sets.

        If it sets none of them, return the queue's own place.
        """
        for attribute in attributes:
            if attribute == POLICY and queue.policy is not None:
                return self.find_place_in(queue.policy, "Properties", "PolicyDocument")
            if attribute in queue.resource.properties:
                return self.find_place_in(queue.resource, "Properties", attribute)
        return self.find_place_in(queue.resource)

    def find_place_in(self, resource: TemplateResource, *keys: str | int) -> Place:
        """Return the place below these keys of a resource."""
        return self.template.find_place("Resources", resource.logical_id, *keys)


def _is_grant_to_named_principals(statement: Mapping[str, Any]) -> bool:
    """Return True if the statement allows something to named principals and checks can read it.

    Only details that no check reads may be unknown: the exact account or role, the condition and
    the resource.
    """
    principal = statement.get("Principal")
    if statement.get("Effect") != "Allow" or not isinstance(principal, dict):
        return False
    checked = {
        name: value for name, value in statement.items() if name not in _UNCHECKED_KEYS_OF_GRANT
    }
    is_known = _PLACEHOLDER not in json.dumps([checked, principal.get("Service")])
    is_open = any(EVERYBODY in to_list(names) for names in principal.values())
    return is_known and principal.keys() <= {"AWS", "Service"} and not is_open


def _spell(name: str, value: Any) -> str:
    """Return a property's value as SQS spells it. Raises NotKnown if SQS would refuse it."""
    text = value if isinstance(value, str) else json.dumps(value)
    if name in DEFAULTS and not NUMBER.fullmatch(text):
        raise NotKnown("it is no whole number")
    if name in _BOOLEANS:
        text = text.lower()
        if text not in ("true", "false"):
            raise NotKnown("it is neither true nor false")
    if name == REDRIVE and text not in ("", "{}") and parse_redrive_policy(text) is None:
        raise NotKnown("no redrive policy that SQS would take")
    return text
