"""Which queues a role of ours may change, said once for whoever changes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from functions.catalogue import CATALOGUE
from functions.healing.every_step import STEPS
from functions.healing.managed import MODE_TAG
from functions.healing.mode import Mode
from functions.healing.rollback import NEVER_PUT_BACK
from functions.healing.steps import AttributeStep, Owner, write_actions
from infra.own_queues import queue_arn
from infra.settings import DeploymentSettings

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
    """The steps of every owner that roll_back undoes by a write."""
    return [kind for kind in STEPS if not kind.is_kept and kind.attribute not in NEVER_PUT_BACK]


def write_statements(
    stack: Stack, settings: DeploymentSettings, kinds: Kinds
) -> Iterator[iam.PolicyStatement]:
    """What taking these steps takes.

    Nothing while no queue or no symptom can be in one of the modes that are written in.
    """
    written = [kind for kind in kinds if kind in written_kinds(settings)]
    actions = _actions([kind for kind in written if not kind.is_kept])
    yield from managed_statements(stack, settings, actions)
    making = _actions([kind for kind in written if kind.is_kept])
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
