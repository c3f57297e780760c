"""Which queues a role of ours may change, said once for whoever changes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs

from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.managed import MODE_TAG
from functions.healing.mode import Mode
from functions.healing.steps import write_actions
from infra.own_queues import queue_arn
from infra.settings import DeploymentSettings

# CDK moves what is too much for one policy to the next, but never cuts a statement in two.
NAMES_PER_STATEMENT = 25
# What a proposal is written in once a person approved it; that one did is the code's to check.
WRITTEN_MODES = (Mode.PROPOSE, Mode.HEAL)
_TAG = f"aws:ResourceTag/{MODE_TAG}"


def write_statements(stack: Stack, settings: DeploymentSettings) -> Iterator[iam.PolicyStatement]:
    """Nothing while no queue or no symptom can be in one of the modes that are written in."""
    modes = [str(each) for each in WRITTEN_MODES]
    actions = _write_actions(_written(settings))
    if actions and max(settings.mode, settings.tag_may_raise_to) in WRITTEN_MODES:
        yield iam.PolicyStatement(
            actions=actions,
            resources=[queue_arn(stack, "*")],
            conditions={"StringEquals": {_TAG: modes}},
        )
    named = settings.queues if actions and settings.mode in WRITTEN_MODES else ()
    for start in range(0, len(named), NAMES_PER_STATEMENT):
        names = named[start : start + NAMES_PER_STATEMENT]
        resources = [queue_arn(stack, each) for each in names]
        yield iam.PolicyStatement(actions=actions, resources=resources)
    # A tag that says anything else holds, whatever names the queue.
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=_write_actions(CATALOGUE),
        resources=[queue_arn(stack, "*")],
        conditions={"Null": {_TAG: "false"}, "StringNotEquals": {_TAG: modes}},
    )


def never_write_to(role: iam.Role, queues: Sequence[sqs.IQueue]) -> None:
    """Mendq's own queues, whatever their tags and names."""
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=_write_actions(CATALOGUE),
            resources=[queue.queue_arn for queue in queues],
        )
    )


def _written(settings: DeploymentSettings) -> Iterator[Symptom]:
    """The symptoms that may act, or may propose what a person lets act."""
    for symptom in CATALOGUE:
        if settings.autonomy.get(symptom.name, symptom.autonomy) in WRITTEN_MODES:
            yield symptom


def _write_actions(symptoms: Iterable[Symptom]) -> list[str]:
    return sorted(write_actions(step for symptom in symptoms for step in symptom.steps))
