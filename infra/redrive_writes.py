"""What moving messages takes: of managed queues, of quarantines by name, and of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from functions.healing.companions import FIFO
from functions.healing.dead_letter_steps import CreateDeadLetters
from functions.healing.quarantines import SUFFIX
from functions.healing.redrive_consent import ON, READ, REDRIVE_TAG, SEND
from functions.healing.redrive_step import INTO_QUARANTINE, LETTER_ACTIONS, RedriveDeadLetters
from functions.healing.steps import Owner, SetMessageRetention
from infra.own_queues import queue_arn
from infra.queue_writes import (
    make_statement,
    managed_statements,
    never_write_to,
    other_tags_statement,
    written_kinds,
)
from infra.settings import DeploymentSettings

_TAG = f"aws:ResourceTag/{REDRIVE_TAG}"
_MAKING = CreateDeadLetters.iam_action
# It may raise a dead-letter queue's retention first.
TAKEN = (*LETTER_ACTIONS, SetMessageRetention.iam_action)


def redrive_statements(stack: Stack, settings: DeploymentSettings) -> Iterator[iam.PolicyStatement]:
    """Nothing of a queue while none can be in a mode that is written in.

    A quarantine bears no tag of ours, so its name has to be enough; so has SQS's word for a key.
    """
    managed = list(managed_statements(stack, settings, TAKEN))
    if RedriveDeadLetters in written_kinds(settings) and managed:
        yield from managed
        yield make_statement([_MAKING], quarantine_arns(stack))
        yield iam.PolicyStatement(actions=[INTO_QUARANTINE], resources=quarantine_arns(stack))
        yield _keys(stack)
    yield other_tags_statement(stack, [*TAKEN, _MAKING])
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=list(TAKEN),
        resources=[queue_arn(stack, "*")],
        conditions={"Null": {_TAG: "false"}, "StringNotEquals": {_TAG: ON}},
    )


def keep_off(role: iam.Role, own_queue_arns: Sequence[str], owner: Owner | None) -> None:
    """Nobody writes Mendq's own queues, and into a quarantine redrive alone puts letters.

    Heal reads its intake, so messages of our own are forbidden to redrive by name.
    """
    moves_letters = owner is Owner.REDRIVE
    never_write_to(role, own_queue_arns, TAKEN if moves_letters else ())
    into_it = (_MAKING, INTO_QUARANTINE) if moves_letters else ()
    never_write_to(role, quarantine_arns(Stack.of(role)), TAKEN, unless=into_it)


def quarantine_arns(stack: Stack) -> list[str]:
    """Every queue that is called as a quarantine of ours would be."""
    return [queue_arn(stack, f"*{SUFFIX}{ending}") for ending in ("", FIFO)]


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
