"""What roles may read and write of queues, from the needs and steps of the catalogue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from infra.own_queues import own_queue_arns, queue_arn
from infra.roles import may, may_not, may_use_keys_by
from infra.settings.deployment import DeploymentSettings
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.redrive_causes import READ, REDRIVE_TAG, SEND
from mendq.heal.undo import NEVER_PUT_BACK
from mendq.model.evidence import MESSAGE_ACTIONS
from mendq.model.facts import ReadAction, read_actions, scan_read_actions
from mendq.model.limits import MODE_TAG, Mode
from mendq.model.queue import FIFO, QUARANTINE_SUFFIX
from mendq.model.steps import (
    INTO_QUARANTINE,
    STEPS,
    AttributeStep,
    CreateDlq,
    Owner,
    RedriveMessages,
    SetMessageRetention,
    write_actions,
)
from mendq.model.tags import ON

Statements = Iterator[iam.PolicyStatement]
Kinds = Collection[type[AttributeStep]]

# What the facts take of every symptom that heal plans for, and what detecting takes.
HEAL_READS = read_actions(
    need for symptom in CATALOGUE if symptom.plan for need in symptom.every_need
)
SCAN_READS = scan_read_actions(
    need for symptom in CATALOGUE if symptom.detection for need in symptom.detection.needs
)


def owner_reads(owner: Owner) -> frozenset[ReadAction]:
    """What the facts take of every symptom that it has steps of."""
    return read_actions(
        need
        for symptom in CATALOGUE
        if any(step.owner is owner for step in symptom.steps)
        for need in symptom.every_need
    )


def look_statements(stack: Stack, reader: Iterable[ReadAction]) -> Statements:
    """One statement for each kind of resource among `reader`."""
    wanted = sorted(reader, key=lambda each: each.iam_action)
    every_function = stack.format_arn(
        service="lambda",
        resource="function",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    resources = {"any": "*", "function": every_function, "queue": queue_arn(stack, "*")}
    for kind, resource in resources.items():
        if actions := [each.iam_action for each in wanted if each.resource == kind]:
            yield may(actions, resource)


# CDK moves what is too much for one policy to the next, but never cuts a statement in two.
NAMES_PER_STATEMENT = 25
# What a proposal is written in once a person approved it; that one did is the code's to check.
WRITTEN_MODES = (Mode.PROPOSE, Mode.HEAL)
_TAG = f"aws:ResourceTag/{MODE_TAG}"
_MODES = [str(each) for each in WRITTEN_MODES]
_REDRIVE_TAG = f"aws:ResourceTag/{REDRIVE_TAG}"
_MAKING = CreateDlq.iam_action
# Redrive may raise a DLQ's retention first.
_TAKEN = (*MESSAGE_ACTIONS, SetMessageRetention.iam_action)


def kinds_of(owner: Owner) -> Kinds:
    """The steps that a Lambda owns."""
    return [kind for kind in STEPS if kind.owner is owner]


def taken_back() -> Kinds:
    """The steps of every owner that rollback undoes by a write."""
    return [
        kind for kind in STEPS if not kind.is_permanent and kind.attribute not in NEVER_PUT_BACK
    ]


def write_statements(stack: Stack, settings: DeploymentSettings, kinds: Kinds) -> Statements:
    """What taking these steps takes.

    Nothing while no queue or no symptom can be in one of the modes that are written in.
    """
    written = _written_kinds(settings).intersection(kinds)
    in_place = sorted(write_actions(kind for kind in written if not kind.is_permanent))
    managed = list(_on_managed(stack, settings, in_place))
    yield from managed
    making = sorted(write_actions(kind for kind in written if kind.is_permanent))
    if making and managed:
        yield _make(making, queue_arn(stack, "*"))
    yield _not_by_another_tag(stack, sorted(write_actions(STEPS)))


def redrive_statements(stack: Stack, settings: DeploymentSettings) -> Statements:
    """What moving messages takes; nothing while no queue can be in a mode that is written in.

    A quarantine bears no tag of ours, so its name has to be enough; so has SQS's word for a key.
    """
    managed = list(_on_managed(stack, settings, _TAKEN))
    if RedriveMessages in _written_kinds(settings) and managed:
        yield from managed
        yield _make([_MAKING], *_quarantine_arns(stack))
        yield may([INTO_QUARANTINE], *_quarantine_arns(stack))
        yield may_use_keys_by("sqs", stack, [READ, SEND])
    yield _not_by_another_tag(stack, [*_TAKEN, _MAKING])
    other_word = {"Null": {_REDRIVE_TAG: "false"}, "StringNotEquals": {_REDRIVE_TAG: ON}}
    yield may_not(_TAKEN, queue_arn(stack, "*"), conditions=other_word)


def _on_managed(stack: Stack, settings: DeploymentSettings, actions: Sequence[str]) -> Statements:
    """Of queues whose tag lets them be written, and of those that the settings name.

    `Consent.mode_of` says the same of each queue.
    """
    if actions and settings.tag_may_raise_to in WRITTEN_MODES:
        yield may(actions, queue_arn(stack, "*"), conditions={"StringEquals": {_TAG: _MODES}})
    named = settings.queues if actions and settings.mode in WRITTEN_MODES else ()
    for start in range(0, len(named), NAMES_PER_STATEMENT):
        names = named[start : start + NAMES_PER_STATEMENT]
        yield may(actions, *(queue_arn(stack, each) for each in names))


def _not_by_another_tag(stack: Stack, actions: Sequence[str]) -> iam.PolicyStatement:
    """A tag that says anything else holds, whatever names the queue."""
    other_word = {"Null": {_TAG: "false"}, "StringNotEquals": {_TAG: _MODES}}
    return may_not(actions, queue_arn(stack, "*"), conditions=other_word)


def _make(actions: Sequence[str], *queue_arns: str) -> iam.PolicyStatement:
    """Of queues that are not there, and so have no tag to ask for; made without tags.

    Under any name where one that is gone is made again under its own. A queue that exists is not
    changed by being made.
    """
    return may(actions, *queue_arns, conditions={"Null": {"aws:TagKeys": "true"}})


def _written_kinds(settings: DeploymentSettings) -> set[type[AttributeStep]]:
    """The steps of symptoms that may act, or may propose what a person lets act."""
    return {
        step
        for symptom in CATALOGUE
        if settings.autonomy.get(symptom.name, symptom.autonomy) in WRITTEN_MODES
        for step in symptom.steps
    }


def keep_off(role: iam.Role, *, moves_messages: bool) -> None:
    """Nobody writes Mendq's own queues, and into a quarantine redrive alone puts messages.

    Heal reads its intake, so messages of our own are forbidden to redrive by name.
    """
    stack = Stack.of(role)
    written = write_actions(STEPS)
    on_own = written.union(_TAKEN) if moves_messages else written
    role.add_to_policy(may_not(sorted(on_own), *own_queue_arns(stack)))
    into_it = {_MAKING, INTO_QUARANTINE} if moves_messages else set[str]()
    emptying = written.union(_TAKEN) - into_it
    role.add_to_policy(may_not(sorted(emptying), *_quarantine_arns(stack)))


def _quarantine_arns(stack: Stack) -> list[str]:
    """Every queue that is called as a quarantine of ours would be."""
    return [queue_arn(stack, f"*{QUARANTINE_SUFFIX}{ending}") for ending in ("", FIFO)]
