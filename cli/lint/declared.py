"""The queues of a template, as the catalogue's checks see queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cli.lint.attributes import Attributes, DeclaredFacts, attributes_of
from cli.lint.consumers import Consumer, Consumers, consumers_of
from cli.lint.policies import Policies, Policy, policies_of
from cli.lint.stand_ins import QUEUE, Environment, StandIns, stand_ins
from cli.lint.template import Place, Resource, Template
from cli.lint.values import NotKnown, Values
from cli.lint.work import A_QUEUE, Work
from functions.healing.dead_letters import Redrive
from functions.healing.facts import DeadLetterQueue, Facts, SourceQueue
from functions.healing.queue_names import arn_of

REDRIVE, POLICY = "RedrivePolicy", "Policy"
_TARGET = "deadLetterTargetArn"
# No queue's: it stands where `dead_letters_unknown` keeps everybody from reading it.
_ANY = "not-known"


@dataclass(frozen=True)
class Queue:
    """One queue as it is declared; `target` is where its letters go, None where nowhere."""

    resource: Resource
    arn: str
    attributes: Attributes
    tags: Mapping[str, str]
    target: str | NotKnown | None = None
    policy: Policy | None = None
    consumers: Sequence[Consumer] = ()


@dataclass
class Declared:
    """A template's queues by ARN, and what else of it speaks of queues."""

    template: Template
    made: StandIns
    values: Values
    consumers: Consumers
    policies: Policies
    queues: dict[str, Queue] = field(default_factory=dict)

    @cached_property
    def _sources(self) -> Mapping[str, Sequence[Queue]]:
        """By the queue that takes their letters."""
        found: dict[str, list[Queue]] = defaultdict(list)
        for each in self.queues.values():
            if isinstance(each.target, str):
                found[each.target].append(each)
        return found

    def facts_of(self, queue: Queue) -> DeclaredFacts:
        """All that a check of configuration asks; its attributes note what is read of them."""
        made, target = self.made, queue.target
        logical_id = queue.resource.logical_id
        unknown = target if isinstance(target, NotKnown) else self._of_unknown_type(target)
        return DeclaredFacts(
            queue.arn,
            queue.attributes.asked_anew(),
            queue.tags,
            lambda_consumers=tuple(each.read_by for each in queue.consumers),
            dead_letter_queue=self._dead_letter_queue(target),
            dead_letter_sources=tuple(
                SourceQueue(each.arn, each.attributes) for each in self._sources.get(queue.arn, ())
            ),
            dead_letters_unknown=unknown,
            type_unknown=made.untyped.get(logical_id),
        )

    def begin(self, queue: Queue) -> None:
        """Each check reads its texts anew, and looks a source up in them; raises NotATemplate."""
        characters = sum(map(len, queue.attributes.known.values()))
        sources = len(self._sources.get(queue.arn, ()))
        self.values.work.take(A_QUEUE + characters * (1 + sources // 16))

    def _of_unknown_type(self, target: str | None) -> NotKnown | None:
        return self.made.untyped.get(self.made.queues.get(target or "", ""))

    def _dead_letter_queue(self, target: str | NotKnown | None) -> DeadLetterQueue | None:
        """None where nobody knows it: it is not in the template, and may well be elsewhere."""
        queue = self.queues.get(target) if isinstance(target, str) else None
        return DeadLetterQueue(queue.arn, queue.attributes) if queue else None

    def place(self, queue: Queue, attributes: Sequence[str]) -> Place:
        """Of the first of the attributes that the template sets, else of the queue."""
        for each in attributes:
            if each == POLICY and queue.policy is not None:
                logical_id = queue.policy.resource.logical_id
                return self.template.place("Resources", logical_id, "Properties", "PolicyDocument")
            if each in queue.resource.properties:
                return self.place_of(queue.resource, "Properties", each)
        return self.place_of(queue.resource)

    def place_of(self, resource: Resource, *keys: str) -> Place:
        return self.template.place("Resources", resource.logical_id, *keys)


def declared(template: Template, environment: Environment, work: Work) -> Declared:
    """Raises NotATemplate where that takes more work than is left."""
    defaults: dict[str, str] = {}
    made = stand_ins(template, environment, defaults, work)
    values = Values(template, made.known, defaults, work)
    consumers, policies = consumers_of(template, made, values), policies_of(template, made, values)
    found = Declared(template, made, values, consumers, policies)
    for resource in template.of_type(QUEUE):
        arn = made.attributes[resource.logical_id, "Arn"]
        found.queues[arn] = _queue(resource, arn, found)
    return found


def _queue(resource: Resource, arn: str, of: Declared) -> Queue:
    own = attributes_of(resource.properties, of.values)
    known, unknown = dict(own.known), dict(own.unknown)
    policy = of.policies.by_queue.get(arn)
    if policy is not None and isinstance(policy.text, NotKnown):
        unknown[POLICY] = policy.text
    elif policy is not None:
        known[POLICY] = str(policy.text)
    elif of.policies.astray:
        name, because = next(iter(of.policies.astray.items()))
        unknown[POLICY] = NotKnown(f"whose policy {name} is: {because.because}")
    target = _target_of(known, unknown, resource, of)
    return Queue(
        resource,
        arn,
        Attributes(known, unknown),
        _tags_of(resource, of.values),
        target,
        policy,
        of.consumers.by_queue.get(arn, ()),
    )


def _target_of(
    known: dict[str, str], unknown: dict[str, NotKnown], resource: Resource, of: Declared
) -> str | NotKnown | None:
    """Where letters go. A count is known without: `known` then has the RedrivePolicy's count."""
    if REDRIVE not in unknown:
        facts = Facts(_ANY, {REDRIVE: known.get(REDRIVE, "")}, {})
        return arn_of(facts.dead_letter_arn)
    written = resource.properties[REDRIVE].entries
    try:
        named = of.values.text(written.get(_TARGET))
    except NotKnown as because:
        _keep_count(known, unknown, resource, of)
        return because
    return arn_of(named)


def _keep_count(
    known: dict[str, str], unknown: dict[str, NotKnown], resource: Resource, of: Declared
) -> None:
    try:
        count = of.values.text(resource.properties[REDRIVE].entries.get("maxReceiveCount"))
    except NotKnown:
        return
    if count is not None and count.isascii() and count.isdecimal() and len(count) < 6:
        known[REDRIVE] = Redrive(_ANY, int(count)).text
        del unknown[REDRIVE]


def _tags_of(resource: Resource, values: Values) -> dict[str, str]:
    """Those that are known."""
    listed = resource.properties.get("Tags")
    found: dict[str, str] = {}
    for each in listed.items if listed else ():
        try:
            key, text = values.text(each.under("Key")), values.text(each.under("Value"))
        except NotKnown:
            continue
        found |= {key: text} if key and text else {}
    return found
