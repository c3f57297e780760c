"""What roles may read and write of queues, from the needs and steps of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from infra.own_queues import queue_arn
from infra.settings.deployment import DeploymentSettings
from mendq.catalogue import CATALOGUE
from mendq.catalogue._redrive_causes import ON, READ, REDRIVE_TAG, SEND
from mendq.heal.undo import NEVER_PUT_BACK
from mendq.model.facts import ReadAction
from mendq.model.limits import MODE_TAG, Mode
from mendq.model.queue import FIFO, QUARANTINE_SUFFIX
from mendq.model.steps import (
    INTO_QUARANTINE,
    MESSAGE_ACTIONS,
    STEPS,
    AttributeStep,
    CreateDlq,
    Owner,
    RedriveMessages,
    SetMessageRetention,
    write_actions,
)


def look_statements(stack: Stack, reader: Iterable[ReadAction]) -> Iterator[iam.PolicyStatement]:
    """One statement for each kind of resource among `reader`."""
    wanted = sorted(reader, key=lambda each: each.iam_action)
    for kind, resource in looked_at(stack, wanted).items():
        actions = [each.iam_action for each in wanted if each.resource == kind]
        yield iam.PolicyStatement(actions=actions, resources=[resource])


def looked_at(stack: Stack, reader: Iterable[ReadAction]) -> dict[str, str]:
    """The resources of `reader` by kind; the reasons given to cdk-nag are taken from here too."""
    return {kind: _RESOURCES[kind](stack) for kind in sorted({each.resource for each in reader})}


def _every_function(stack: Stack) -> str:
    return stack.format_arn(
        service="lambda",
        resource="function",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


_RESOURCES: dict[str, Callable[[Stack], str]] = {
    "queue": lambda stack: queue_arn(stack, "*"),
    "function": _every_function,
    "any": lambda _: "*",
}

Kinds = Collection[type[AttributeStep]]
# CDK moves what is too much for one policy to the next, but never cuts a statement in two.
NAMES_PER_STATEMENT = 25
# What a proposal is written in once a person approved it; that one did is the code's to check.
WRITTEN_MODES = (Mode.PROPOSE, Mode.HEAL)
_TAG = f"aws:ResourceTag/{MODE_TAG}"
_MODES = [str(each) for each in WRITTEN_MODES]


def kinds_of(owner: Owner) -> Kinds:
    """The steps that a Lambda owns."""
    return [kind for kind in STEPS if kind.owner is owner]


def taken_back() -> Kinds:
    """The steps of every owner that rollback undoes by a write."""
    return [kind for kind in STEPS if not kind.stays and kind.attribute not in NEVER_PUT_BACK]


def write_statements(
    stack: Stack, settings: DeploymentSettings, kinds: Kinds
) -> Iterator[iam.PolicyStatement]:
    """What taking these steps takes.

    Nothing while no queue or no symptom can be in one of the modes that are written in.
    """
    written = [kind for kind in kinds if kind in written_kinds(settings)]
    actions = _actions([kind for kind in written if not kind.stays])
    yield from managed_statements(stack, settings, actions)
    making = _actions([kind for kind in written if kind.stays])
    if making and _is_tag_enough(settings):
        yield make_statement(making, [queue_arn(stack, "*")])
    yield other_tags_statement(stack, _actions(STEPS))


def managed_statements(
    stack: Stack, settings: DeploymentSettings, actions: Sequence[str]
) -> Iterator[iam.PolicyStatement]:
    """Of queues whose tag lets them be written, and of those that the settings name."""
    if actions and _is_tag_enough(settings):
        yield iam.PolicyStatement(
            actions=list(actions),
            resources=[queue_arn(stack, "*")],
            conditions={"StringEquals": {_TAG: _MODES}},
        )
    named = settings.queues if actions and settings.mode in WRITTEN_MODES else ()
    for start in range(0, len(named), NAMES_PER_STATEMENT):
        names = named[start : start + NAMES_PER_STATEMENT]
        resources = [queue_arn(stack, each) for each in names]
        yield iam.PolicyStatement(actions=list(actions), resources=resources)


def other_tags_statement(stack: Stack, actions: Sequence[str]) -> iam.PolicyStatement:
    """A tag that says anything else holds, whatever names the queue."""
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=list(actions),
        resources=[queue_arn(stack, "*")],
        conditions={"Null": {_TAG: "false"}, "StringNotEquals": {_TAG: _MODES}},
    )


def make_statement(actions: Sequence[str], queue_arns: Sequence[str]) -> iam.PolicyStatement:
    """Of queues that are not there, and so have no tag to ask for; made without tags.

    Under any name where one that is gone is made again under its own. A queue that exists is not
    changed by being made.
    """
    return iam.PolicyStatement(
        actions=list(actions),
        resources=list(queue_arns),
        conditions={"Null": {"aws:TagKeys": "true"}},
    )


def never_write_to(
    role: iam.Role,
    queue_arns: Sequence[str],
    actions: Collection[str],
    *,
    unless: Collection[str] = (),
) -> None:
    """Whatever tags and settings say of these queues; `actions` beside those of every step."""
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=sorted({*_actions(STEPS), *actions}.difference(unless)),
            resources=list(queue_arns),
        )
    )


def _is_tag_enough(settings: DeploymentSettings) -> bool:
    return max(settings.mode, settings.tag_may_raise_to) in WRITTEN_MODES


def written_kinds(settings: DeploymentSettings) -> Kinds:
    """The steps of symptoms that may act, or may propose what a person lets act."""
    return {
        step
        for symptom in CATALOGUE
        if settings.autonomy.get(symptom.name, symptom.autonomy) in WRITTEN_MODES
        for step in symptom.steps
    }


def _actions(kinds: Kinds) -> list[str]:
    return sorted(write_actions(kinds))


_REDRIVE_TAG = f"aws:ResourceTag/{REDRIVE_TAG}"
_MAKING = CreateDlq.iam_action
# It may raise a DLQ's retention first.
TAKEN = (*MESSAGE_ACTIONS, SetMessageRetention.iam_action)


def redrive_statements(stack: Stack, settings: DeploymentSettings) -> Iterator[iam.PolicyStatement]:
    """Nothing of a queue while none can be in a mode that is written in.

    A quarantine bears no tag of ours, so its name has to be enough; so has SQS's word for a key.
    """
    managed = list(managed_statements(stack, settings, TAKEN))
    if RedriveMessages in written_kinds(settings) and managed:
        yield from managed
        yield make_statement([_MAKING], quarantine_arns(stack))
        yield iam.PolicyStatement(actions=[INTO_QUARANTINE], resources=quarantine_arns(stack))
        yield _keys(stack)
    yield other_tags_statement(stack, [*TAKEN, _MAKING])
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=list(TAKEN),
        resources=[queue_arn(stack, "*")],
        conditions={"Null": {_REDRIVE_TAG: "false"}, "StringNotEquals": {_REDRIVE_TAG: ON}},
    )


def keep_off(role: iam.Role, own_queue_arns: Sequence[str], owner: Owner | None) -> None:
    """Nobody writes Mendq's own queues, and into a quarantine redrive alone puts messages.

    Heal reads its intake, so messages of our own are forbidden to redrive by name.
    """
    moves_messages = owner is Owner.REDRIVE
    never_write_to(role, own_queue_arns, TAKEN if moves_messages else ())
    into_it = (_MAKING, INTO_QUARANTINE) if moves_messages else ()
    never_write_to(role, quarantine_arns(Stack.of(role)), TAKEN, unless=into_it)


def quarantine_arns(stack: Stack) -> list[str]:
    """Every queue that is called as a quarantine of ours would be."""
    return [queue_arn(stack, f"*{QUARANTINE_SUFFIX}{ending}") for ending in ("", FIFO)]


def every_key_arn(stack: Stack) -> str:
    """The account's keys; which of them encrypt managed queues changes without a deployment."""
    return stack.format_arn(service="kms", resource="key", resource_name="*")


def _keys(stack: Stack) -> iam.PolicyStatement:
    """Asked for by SQS alone, on behalf of a call that this role may make."""
    via = {"kms:ViaService": f"sqs.{stack.region}.amazonaws.com"}
    return iam.PolicyStatement(
        actions=[READ, SEND],
        resources=[every_key_arn(stack)],
        conditions={"StringEquals": {**via, "kms:CallerAccount": stack.account}},
    )
