"""Lines about a change of a queue: its steps, how to make or undo it, and template lines.

Template lines are for the owner of the queue's CloudFormation template or Terraform code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mendq.model.case import QUEUE_DELETED_CODE, Case
from mendq.model.dlq import make_dlq_attributes
from mendq.model.facts import Facts
from mendq.model.queue import parse_json_object, queue_arn_or_none
from mendq.model.state import SILENT_DAYS, State
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.model.tags import find_cloudformation_resource
from mendq.notifications.commands import (
    create_queue_command,
    delete_queue_command,
    mendq_case_command,
    redrive_preview_command,
    set_attributes_command,
)
from mendq.notifications.configuration import NOT_SET_TEXT, describe_differences, format_policy
from mendq.notifications.text import (
    Section,
    command_or_note,
    format_exact_json,
    format_value,
    limit_lines,
    to_plain_text,
)

# The most steps that are shown; further ones are counted.
_MOST_SHOWN_STEPS = 4
# The documents of a case's steps, with the keys `attribute`, `before` and `after`.
StepDocuments = Sequence[Mapping[str, str]]
RETENTION_ATTRIBUTE = "MessageRetentionPeriod"
# Shown below a command that shortens the retention period.
DELETION_WARNING = "this deletes the messages that are older"

# A case that comes from one of these states has written its change to the queue.
_STATES_AFTER_WRITE = frozenset(
    {State.APPLIED, State.UNVERIFIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE}
)

# Attributes whose values are seconds.
_SECONDS_ATTRIBUTE_PATTERN = re.compile(
    r"VisibilityTimeout|MessageRetentionPeriod|[A-Za-z]{1,64}Seconds"
)


def format_attribute_value(attribute: str, value_text: str, most_characters: int = 300) -> str:
    """Return an attribute's value as text for people, in at most `most_characters`.

    A number of seconds gets its unit, and a policy becomes compact JSON. Any other value is made
    safe by `format_value`.
    """
    if not (
        WHOLE_NUMBER_PATTERN.fullmatch(value_text)
        and _SECONDS_ATTRIBUTE_PATTERN.fullmatch(attribute)
    ):
        return format_policy(attribute, value_text, most_characters) or format_value(
            value_text, most_characters
        )
    days, rest_seconds = divmod(int(value_text), 86_400)
    if days and not rest_seconds:
        return f"{value_text} s ({days} d)"
    return f"{value_text} s"


def describe_change(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines about the change that a case made or would make.

    If Mendq did not make the change, and the case is neither overridden nor about a deleted queue,
    the lines also contain the commands with which a person can make the change.

    Args:
        case: The case.
        attributes: The queue's attributes as they are now.
    """
    if not case.steps:
        return ("none was made, so there is nothing to undo",)
    step_lines = [line for step in case.steps for line in describe_step(step)]
    shown_step_lines = limit_lines(step_lines, _MOST_SHOWN_STEPS)
    manual_commands = list_change_commands(case.queue_arn, case.steps, attributes)
    if case.came_from in _STATES_AFTER_WRITE:
        return ("made by Mendq:", *shown_step_lines)
    if case.state is State.PROPOSED:
        return ("proposed, not made:", *shown_step_lines, "by hand:", *manual_commands)
    if case.state is State.OVERRIDDEN or case.code == QUEUE_DELETED_CODE:
        return ("not made, so there is nothing to undo:", *shown_step_lines)
    heading = "not made, so there is nothing to undo; it would have been:"
    return (heading, *shown_step_lines, "by hand, if you decide so:", *manual_commands)


def list_change_commands(
    queue_arn: str, steps: StepDocuments, attributes: Mapping[str, str]
) -> Iterator[str]:
    """Yield the commands with which a person makes the change instead of Mendq.

    The commands create queues first, then show which DLQ messages would go back, and then set
    attributes.
    """
    source_facts = Facts(queue_arn, attributes, {})
    for created_arn in _list_created_queues(steps):
        created_attributes = make_dlq_attributes(source_facts, created_arn)
        yield command_or_note(create_queue_command(created_arn, created_attributes))
    for destination_arn in _list_redrive_destinations(steps):
        yield command_or_note(redrive_preview_command(destination_arn))
    new_value_by_attribute = _map_attribute_values(steps, "after")
    if new_value_by_attribute:
        yield command_or_note(set_attributes_command(queue_arn, new_value_by_attribute))


def describe_step(step: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines about one step: the value before and after, or each difference of a policy."""
    attribute = step["attribute"]
    value_before = step["before"]
    value_after = step["after"]
    if attribute == "Policy":
        difference_lines = describe_differences({attribute: value_before}, {attribute: value_after})
        if difference_lines:
            return difference_lines
    text_before = format_attribute_value(attribute, value_before) if value_before else NOT_SET_TEXT
    text_after = format_attribute_value(attribute, value_after) if value_after else NOT_SET_TEXT
    return (f"{to_plain_text(attribute, 64)}: {text_before} -> {text_after}",)


def describe_shared_default(case: Case) -> tuple[str, ...]:
    """Return lines about the other queues of the case's shared default; empty if there is none."""
    shared_default = case.shared_default
    if shared_default is None or case.follows_first_case:
        return ()
    return (
        ", ".join(shared_default.queue_names[1:]),
        "each has a case of its own; what undoes all of them:",
        mendq_case_command("rollback --all", case),
    )


def _map_attribute_values(steps: StepDocuments, before_or_after: str) -> dict[str, str]:
    """Return the value `before` or `after` of each step that sets an attribute, by attribute."""
    return {step["attribute"]: step[before_or_after] for step in steps if _sets_attribute(step)}


def _list_created_queues(steps: StepDocuments) -> tuple[str, ...]:
    """Return the ARNs of the queues that the steps create."""
    return tuple(step["after"] for step in steps if _creates_queue(step))


def _creates_queue(step: Mapping[str, str]) -> bool:
    """Return True if the step creates another queue."""
    return step["attribute"] == CreateDlq.attribute and queue_arn_or_none(step["after"]) is not None


def _list_redrive_destinations(steps: StepDocuments) -> tuple[str, ...]:
    """Return the ARNs of the queues to which the steps send DLQ messages back."""
    return tuple(
        step["after"]
        for step in steps
        if not has_value_in_queue(step["attribute"])
        and queue_arn_or_none(step["after"]) is not None
    )


def _sets_attribute(step: Mapping[str, str]) -> bool:
    """Return True if the step sets an attribute of the queue itself."""
    return has_value_in_queue(step["attribute"]) and not _creates_queue(step)


def _is_change_in_queue(case: Case) -> bool:
    """Return True if the case has written its change, and this is not its rollback."""
    return case.came_from in _STATES_AFTER_WRITE and not case.is_rollback


def describe_undo(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines with the commands that undo a case's change; empty if nothing can be undone.

    Empty also for a rollback, which has undone the change.

    If someone else has set an attribute since, a line says so, and the commands do not undo it.

    Args:
        case: The case.
        attributes: The queue's attributes as they are now. Empty if they could not be read.
    """
    was_change_written = _is_change_in_queue(case)
    if not case.steps or not (was_change_written or case.state is State.PROPOSED):
        return ()
    if was_change_written and not attributes:
        return ("the queue's attributes are not known now: look before you undo",)
    overruled_attributes = (
        _find_overruled_attributes(case, attributes) if was_change_written else []
    )
    overruled_lines = [
        f"{to_plain_text(attribute, 64)} holds another value now: not undone"
        for attribute in overruled_attributes
    ]
    undo_lines = list(limit_lines(overruled_lines, _MOST_SHOWN_STEPS))
    rollback_command = mendq_case_command("rollback", case)
    restored_value_by_attribute = {
        attribute: value_before
        for attribute, value_before in _map_attribute_values(case.steps, "before").items()
        if attribute not in overruled_attributes
    }
    if restored_value_by_attribute and not was_change_written:
        undo_lines.append("once the change is made:")
    if restored_value_by_attribute:
        manual_command = command_or_note(
            set_attributes_command(case.queue_arn, restored_value_by_attribute)
        )
        undo_lines.extend([rollback_command, "or by hand:", manual_command])
    if RETENTION_ATTRIBUTE in restored_value_by_attribute:
        undo_lines.append(DELETION_WARNING)
    for created_arn in _list_created_queues(case.steps):
        undo_lines.append("the queue that was made is kept; once it is empty and nobody names it:")
        undo_lines.append(command_or_note(delete_queue_command(created_arn)))
    for _ in _list_redrive_destinations(case.steps):
        undo_lines.extend(
            ["messages that went back stay there; what stops the others:", rollback_command]
        )
    return tuple(undo_lines)


def _find_overruled_attributes(case: Case, attributes: Mapping[str, str]) -> list[str]:
    """Return the names of attributes that no longer have the value that the case wrote."""
    return [
        attribute
        for attribute, written_value in _map_attribute_values(case.steps, "after").items()
        if describe_differences(
            {attribute: written_value}, {attribute: attributes.get(attribute, "")}
        )
    ]


def describe_template_values(case: Case, facts: Facts) -> tuple[Section, ...]:
    """Return a section with template lines, if a case is about an overridden value.

    For each of the first _MOST_SHOWN_STEPS attributes there are lines for two values: Mendq's
    value, and the value that someone else has set. If the case is not about an overridden value,
    the result is empty.
    """
    if State.OVERRIDDEN not in (case.state, case.code):
        return ()
    stack_and_resource = find_cloudformation_resource(facts.tags)
    stack_name = stack_and_resource.get("stack")
    logical_id = stack_and_resource.get("resource")
    stack_text = (
        f"CloudFormation stack {format_value(stack_name, 128)}"
        if stack_name
        else "no CloudFormation stack"
    )
    if logical_id:
        stack_text = f"{stack_text}, {format_value(logical_id, 255)}"
    template_value_lines = [
        f"owner by its tags: {stack_text}",
        "put the value you want there: `terraform apply` brings back its own; CloudFormation does",
        "when that property changes in its template, or by a drift-aware change set",
        f"Mendq leaves these settings alone for {SILENT_DAYS} days",
    ]
    attribute_steps = [step for step in case.steps if _sets_attribute(step)]
    for step in attribute_steps[:_MOST_SHOWN_STEPS]:
        attribute = step["attribute"]
        value_set_by_others = (
            facts.attributes.get(attribute, "") if facts.attributes else step["before"]
        )
        template_value_lines += make_template_lines("Mendq's", attribute, step["after"])
        template_value_lines += make_template_lines("theirs", attribute, value_set_by_others)
    return (Section("TEMPLATE", tuple(template_value_lines)),)


# The most characters of a value in a template line, and of a value that is parsed for it.
_MOST_LITERAL_CHARACTERS = 400
_MOST_PARSED_CHARACTERS = 1_000

# CloudFormation's property has the attribute's name. Terraform's argument has the same name in
# snake case, except for these.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
# https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/sqs_queue
_TERRAFORM_NAME_BY_ATTRIBUTE: dict[str, str] = {
    "QueueName": "name",
    "PolicyDocument": "policy",
    "Queues": "queue_url",
    "VisibilityTimeout": "visibility_timeout_seconds",
    "MessageRetentionPeriod": "message_retention_seconds",
    "MaximumMessageSize": "max_message_size",
    "ReceiveMessageWaitTimeSeconds": "receive_wait_time_seconds",
}
_WORD_BOUNDARY_PATTERN = re.compile(r"(?<=[a-z])(?=[A-Z])")

WHOLE_NUMBER_PATTERN = re.compile(r"0|[1-9][0-9]{0,11}")


def name_terraform_argument(attribute: str) -> str:
    """Return the argument of Terraform's `aws_sqs_queue` that sets a queue attribute."""
    return (
        _TERRAFORM_NAME_BY_ATTRIBUTE.get(attribute)
        or _WORD_BOUNDARY_PATTERN.sub("_", to_plain_text(attribute, 64)).lower()
    )


def make_template_lines(owner_prefix: str, attribute: str, value_text: str) -> tuple[str, str]:
    """Return the line for CloudFormation and the line for Terraform that set an attribute.

    Each line begins with `owner_prefix`, such as `Mendq's`, which says whose value it is. If the
    value is empty or too long, the line says this instead of the value.
    """
    value_literal = _format_literal(value_text)
    if not value_literal:
        value_literal = "(too long for a page)" if value_text else f"({NOT_SET_TEXT}: leave it out)"
    terraform_literal = value_literal.replace("${", "$${").replace("%{", "%%{")
    terraform_value = (
        f"jsonencode({terraform_literal})"
        if terraform_literal.startswith("{")
        else terraform_literal
    )
    property_name = _name_cloudformation_property(attribute)
    return (
        f"{owner_prefix}, CloudFormation: {property_name}: {value_literal}",
        f"{owner_prefix}, Terraform: {name_terraform_argument(attribute)} = {terraform_value}",
    )


def _name_cloudformation_property(attribute: str) -> str:
    """Return CloudFormation's name for a queue attribute."""
    # In CloudFormation, a queue's policy is a resource of its own.
    if attribute == "Policy":
        return "PolicyDocument (AWS::SQS::QueuePolicy)"
    return to_plain_text(attribute, 64)


def _format_literal(value_text: str) -> str:
    """Return a value in a form that both YAML and HCL (Terraform's language) read.

    This is a number, `true`, `false`, JSON, or a quoted text. Return an empty text if the value is
    empty or too long.
    """
    if WHOLE_NUMBER_PATTERN.fullmatch(value_text) or value_text in ("true", "false"):
        return value_text
    if not 0 < len(value_text) <= _MOST_PARSED_CHARACTERS:
        return ""
    value_literal = format_exact_json(parse_json_object(value_text) or value_text)
    return value_literal if len(value_literal) <= _MOST_LITERAL_CHARACTERS else ""
