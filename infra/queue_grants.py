"""IAM statements on queues, derived from what the symptoms in the catalogue read and change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from infra.own_queues import format_queue_arn, list_own_queue_arns
from infra.roles import allow, allow_keys_through, deny
from infra.settings.deployment import DeploymentSettings
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.redrive_causes import KMS_READ_ACTION, KMS_SEND_ACTION, REDRIVE_TAG
from mendq.heal.undo import MANUAL_ATTRIBUTES
from mendq.model.facts import ReadAction, list_read_actions, list_scan_read_actions
from mendq.model.message_calls import MESSAGE_ACTIONS
from mendq.model.mode import Mode
from mendq.model.queue import FIFO_SUFFIX, QUARANTINE_SUFFIX
from mendq.model.steps import (
    SEND_TO_QUARANTINE_ACTION,
    STEP_CLASSES,
    AttributeStep,
    CreateDlq,
    Owner,
    RedriveMessages,
    SetMessageRetention,
    list_write_actions,
)
from mendq.model.tags import MODE_TAG, REDRIVE_ALLOWED_VALUE

PolicyStatements = Iterator[iam.PolicyStatement]
StepTypes = Collection[type[AttributeStep]]

# Reads of the facts that heal needs to plan a fix for any symptom.
HEAL_READ_ACTIONS = list_read_actions(
    need for symptom in CATALOGUE if symptom.plan for need in symptom.all_needs
)
# Reads of the facts that the scan needs to detect any symptom.
SCAN_READ_ACTIONS = list_scan_read_actions(
    need for symptom in CATALOGUE if symptom.detection for need in symptom.detection.needs
)


def list_owner_read_actions(owner: Owner) -> frozenset[ReadAction]:
    """Return the reads of facts that an owner needs for all symptoms with one of its steps."""
    return list_read_actions(
        need
        for symptom in CATALOGUE
        if any(step.owner is owner for step in symptom.steps)
        for need in symptom.all_needs
    )


def list_read_statements(stack: Stack, actions: Iterable[ReadAction]) -> PolicyStatements:
    """Yield statements that allow these reads: one statement for each kind of resource."""
    sorted_actions = sorted(actions, key=lambda action: action.iam_action)
    any_function_arn = stack.format_arn(
        service="lambda",
        resource="function",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    resource_by_kind = {
        "any": "*",
        "function": any_function_arn,
        "key": stack.format_arn(service="kms", resource="key", resource_name="*"),
        "queue": format_queue_arn(stack, "*"),
    }
    for resource_kind, resource in resource_by_kind.items():
        iam_actions = [
            action.iam_action for action in sorted_actions if action.resource == resource_kind
        ]
        if iam_actions:
            yield allow(iam_actions, resource)


# The most queue names in one statement. CDK splits a policy that is too long between statements,
# and never splits a statement.
MAXIMUM_QUEUE_NAMES_PER_STATEMENT = 25
# Modes in which Mendq may write a queue. In mode propose it writes only after a person approved;
# IAM cannot check that, so the code does.
WRITING_MODES = (Mode.PROPOSE, Mode.HEAL)
_MODE_TAG_CONDITION_KEY = f"aws:ResourceTag/{MODE_TAG}"
_WRITING_MODE_NAMES = [str(mode) for mode in WRITING_MODES]
_REDRIVE_TAG_CONDITION_KEY = f"aws:ResourceTag/{REDRIVE_TAG}"
_CREATE_QUEUE_ACTION = CreateDlq.iam_action
# Actions of a redrive on the DLQ and the source queue. It may first raise the DLQ's retention.
_REDRIVE_ACTIONS = (*MESSAGE_ACTIONS, SetMessageRetention.iam_action)


def list_owned_steps(owner: Owner) -> StepTypes:
    """Return the types of the steps that belong to an owner: a Lambda that writes queues."""
    return [step for step in STEP_CLASSES if step.owner is owner]


def list_undoable_steps() -> StepTypes:
    """Return the types of the steps, of all owners, that rollback can undo automatically."""
    return [
        step
        for step in STEP_CLASSES
        if not step.is_permanent and step.attribute not in MANUAL_ATTRIBUTES
    ]


def list_write_statements(
    stack: Stack, settings: DeploymentSettings, steps: StepTypes
) -> PolicyStatements:
    """Yield statements that allow steps on managed queues.

    The last statement denies all steps on queues whose tag `mendq` has a value that enables no
    writes. It is the only statement if the settings put no queue, or no symptom with such a step,
    into a mode in which Mendq writes.
    """
    enabled_steps = _find_enabled_steps(settings).intersection(steps)
    attribute_change_actions = sorted(
        list_write_actions(step for step in enabled_steps if not step.is_permanent)
    )
    managed_queue_statements = list(
        _allow_on_managed_queues(stack, settings, attribute_change_actions)
    )
    yield from managed_queue_statements
    queue_creation_actions = sorted(
        list_write_actions(step for step in enabled_steps if step.is_permanent)
    )
    if queue_creation_actions and managed_queue_statements:
        yield _allow_creation(queue_creation_actions, format_queue_arn(stack, "*"))
    yield _deny_queues_with_non_writing_tag(stack, sorted(list_write_actions(STEP_CLASSES)))


def list_redrive_statements(stack: Stack, settings: DeploymentSettings) -> PolicyStatements:
    """Yield statements that allow moving messages out of managed DLQs.

    The last two statements deny a redrive on queues whose tags do not allow it. They are the only
    statements if no queue, or no symptom that plans a redrive, can be in a mode in which Mendq
    writes. A quarantine has no tag of Mendq's, so the statements name it by the end of its name.
    KMS keys cannot be named: the statements allow any key that SQS uses on behalf of the role.
    """
    managed_queue_statements = list(_allow_on_managed_queues(stack, settings, _REDRIVE_ACTIONS))
    if RedriveMessages in _find_enabled_steps(settings) and managed_queue_statements:
        yield from managed_queue_statements
        yield _allow_creation([_CREATE_QUEUE_ACTION], *_list_quarantine_arn_patterns(stack))
        yield allow([SEND_TO_QUARANTINE_ACTION], *_list_quarantine_arn_patterns(stack))
        yield allow_keys_through("sqs", stack, [KMS_READ_ACTION, KMS_SEND_ACTION])
    yield _deny_queues_with_non_writing_tag(stack, [*_REDRIVE_ACTIONS, _CREATE_QUEUE_ACTION])
    redrive_off_condition = {
        "Null": {_REDRIVE_TAG_CONDITION_KEY: "false"},
        "StringNotEquals": {_REDRIVE_TAG_CONDITION_KEY: REDRIVE_ALLOWED_VALUE},
    }
    yield deny(_REDRIVE_ACTIONS, format_queue_arn(stack, "*"), conditions=redrive_off_condition)


def _allow_on_managed_queues(
    stack: Stack, settings: DeploymentSettings, actions: Sequence[str]
) -> PolicyStatements:
    """Allow actions on queues whose tag enables writes, and on queues that the settings name.

    Tagged queues are left out unless `tag_may_raise_to` is a mode in which Mendq writes, and named
    queues unless `mode` is one. `Consent.mode_of` makes the same decision for one queue.
    """
    if not actions:
        return
    if settings.tag_may_raise_to in WRITING_MODES:
        yield allow(
            actions,
            format_queue_arn(stack, "*"),
            conditions={"StringEquals": {_MODE_TAG_CONDITION_KEY: _WRITING_MODE_NAMES}},
        )
    if settings.mode in WRITING_MODES:
        for first_name_index in range(0, len(settings.queues), MAXIMUM_QUEUE_NAMES_PER_STATEMENT):
            queue_names = settings.queues[
                first_name_index : first_name_index + MAXIMUM_QUEUE_NAMES_PER_STATEMENT
            ]
            yield allow(actions, *(format_queue_arn(stack, name) for name in queue_names))


def _deny_queues_with_non_writing_tag(stack: Stack, actions: Sequence[str]) -> iam.PolicyStatement:
    """Deny actions on queues whose tag `mendq` has a value that enables no writes.

    The tag counts even if the settings name the queue.
    """
    non_writing_tag_condition = {
        "Null": {_MODE_TAG_CONDITION_KEY: "false"},
        "StringNotEquals": {_MODE_TAG_CONDITION_KEY: _WRITING_MODE_NAMES},
    }
    return deny(actions, format_queue_arn(stack, "*"), conditions=non_writing_tag_condition)


def _allow_creation(actions: Sequence[str], *queue_arns: str) -> iam.PolicyStatement:
    """Allow creating queues without tags.

    A queue that does not exist yet has no tag that a condition could test. To make a deleted queue
    again under its old name, any name must be allowed. Creating a queue that exists changes
    nothing.
    """
    return allow(actions, *queue_arns, conditions={"Null": {"aws:TagKeys": "true"}})


def _find_enabled_steps(settings: DeploymentSettings) -> set[type[AttributeStep]]:
    """Return the step types of all symptoms for which Mendq may make or propose a fix."""
    enabled_steps: set[type[AttributeStep]] = set()
    for symptom in CATALOGUE:
        autonomy = settings.autonomy.get(symptom.name, symptom.autonomy)
        if autonomy in WRITING_MODES:
            enabled_steps.update(symptom.steps)
    return enabled_steps


def deny_own_queues(role: iam.Role, *, is_redrive: bool) -> None:
    """Deny a role all writes to Mendq's own queues and to quarantines.

    Args:
        role: the role of a Lambda that writes queues.
        is_redrive: True for the role of redrive. It may create a quarantine and send messages to
            it, but may not receive or delete messages of Mendq's own queues. This is not denied
            to other roles, because heal receives from the intake queue.
    """
    stack = Stack.of(role)
    step_actions = list_write_actions(STEP_CLASSES)
    denied_own_queue_actions = step_actions.union(_REDRIVE_ACTIONS) if is_redrive else step_actions
    role.add_to_policy(deny(sorted(denied_own_queue_actions), *list_own_queue_arns(stack)))
    quarantine_actions = step_actions.union(_REDRIVE_ACTIONS)
    if is_redrive:
        quarantine_actions -= {_CREATE_QUEUE_ACTION, SEND_TO_QUARANTINE_ACTION}
    role.add_to_policy(deny(sorted(quarantine_actions), *_list_quarantine_arn_patterns(stack)))


def _list_quarantine_arn_patterns(stack: Stack) -> list[str]:
    """Return ARN patterns of all queues with the name of a quarantine, standard and FIFO."""
    return [
        format_queue_arn(stack, f"*{QUARANTINE_SUFFIX}{queue_name_ending}")
        for queue_name_ending in ("", FIFO_SUFFIX)
    ]
