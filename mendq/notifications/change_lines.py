"""Lines about a change of a queue: its steps, how to make or undo it, and template lines.

Template lines are for the owner of the queue's CloudFormation template or Terraform code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mendq.model.case import QUEUE_DELETED_CODE, SILENT_DAYS, Case, State
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts
from mendq.model.queue import arn_of, parse_json_object
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.model.tags import find_cloudformation_resource
from mendq.notifications.commands import (
    create_queue_command,
    delete_queue_command,
    mendq_command,
    redrive_preview,
    set_command,
)
from mendq.notifications.configuration import NOT_SET, as_json, differences
from mendq.notifications.text import Section, command_line, exact_json, first_of, plain, value

# The most steps that are shown; further ones are counted.
_MOST_STEPS = 4
# The documents of a case's steps, with the keys `attribute`, `before` and `after`.
Steps = Sequence[Mapping[str, str]]
RETENTION = "MessageRetentionPeriod"
# Shown below a command that shortens the retention period.
DELETES = "this deletes the messages that are older"

# A case that comes from one of these states has written its change to the queue.
_TRIED = frozenset(
    {State.APPLIED, State.UNVERIFIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE}
)

# Attributes whose values are seconds.
_SECONDS = re.compile(r"VisibilityTimeout|MessageRetentionPeriod|[A-Za-z]{1,64}Seconds")


def with_unit(attribute: str, text: str, most: int = 300) -> str:
    """Return an attribute's value for people, in at most `most` characters.

    Seconds get their unit, and a policy becomes compact JSON.
    """
    if not (NUMBER.fullmatch(text) and _SECONDS.fullmatch(attribute)):
        return as_json(attribute, text, most) or value(text, most)
    days, rest = divmod(int(text), 86_400)
    if days and not rest:
        return f"{text} s ({days} d)"
    return f"{text} s"


def change(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines about the change that a case made or would make.

    If Mendq did not make it, the lines also have the commands with which a person can.

    Args:
        case: The case.
        attributes: The queue's attributes as they are now.
    """
    if not case.steps:
        return ("none was made, so there is nothing to undo",)
    all_lines = [line for step in case.steps for line in step_lines(step)]
    steps = first_of(all_lines, _MOST_STEPS)
    manual = commands(case.queue_arn, case.steps, attributes)
    if case.came_from in _TRIED:
        return ("made by Mendq:", *steps)
    if case.state is State.PROPOSED:
        return ("proposed, not made:", *steps, "by hand:", *manual)
    if case.state is State.OVERRIDDEN or case.code == QUEUE_DELETED_CODE:
        return ("not made, so there is nothing to undo:", *steps)
    would = "not made, so there is nothing to undo; it would have been:"
    return (would, *steps, "by hand, if you decide so:", *manual)


def commands(queue_arn: str, steps: Steps, attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands with which a person makes the change instead of Mendq.

    The order is: create queues, send messages back, set attributes.
    """
    source = Facts(queue_arn, attributes, {})
    for created_arn in _created_queues(steps):
        created_attributes = attributes_of_dlq(source, created_arn)
        yield command_line(create_queue_command(created_arn, created_attributes))
    for destination_arn in _redrive_destinations(steps):
        yield command_line(redrive_preview(destination_arn))
    values = _attribute_values(steps, "after")
    if values:
        yield command_line(set_command(queue_arn, values))


def step_lines(step: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines about one step: the value before and after, or each difference of a policy."""
    name = step["attribute"]
    before = step["before"]
    after = step["after"]
    if name == "Policy":
        lines = differences({name: before}, {name: after})
        if lines:
            return lines
    shown_before = with_unit(name, before) if before else NOT_SET
    shown_after = with_unit(name, after) if after else NOT_SET
    return (f"{plain(name, 64)}: {shown_before} -> {shown_after}",)


def _attribute_values(steps: Steps, which: str) -> dict[str, str]:
    """Return the values `before` or `after` of the steps that set attributes of the queue."""
    return {step["attribute"]: step[which] for step in steps if _sets_attribute(step)}


def _created_queues(steps: Steps) -> tuple[str, ...]:
    """Return the ARNs of the queues that the steps create."""
    return tuple(step["after"] for step in steps if _creates_queue(step))


def _creates_queue(step: Mapping[str, str]) -> bool:
    """Return True if the step creates another queue."""
    return step["attribute"] == CreateDlq.attribute and arn_of(step["after"]) is not None


def _redrive_destinations(steps: Steps) -> tuple[str, ...]:
    """Return the ARNs of the queues to which the steps send DLQ messages back."""
    return tuple(
        step["after"]
        for step in steps
        if not has_value_in_queue(step["attribute"]) and arn_of(step["after"]) is not None
    )


def _sets_attribute(step: Mapping[str, str]) -> bool:
    """Return True if the step sets an attribute of the queue itself."""
    return has_value_in_queue(step["attribute"]) and not _creates_queue(step)


def undo(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines with the commands that undo a case's change; none if nothing can be undone.

    An attribute that someone else has set since is not undone, and a line says so.

    Args:
        case: The case.
        attributes: The queue's attributes as they are now. Empty if they could not be read.
    """
    is_made = case.came_from in _TRIED
    if not case.steps or not (is_made or case.state is State.PROPOSED):
        return ()
    if is_made and not attributes:
        return ("the queue's attributes are not known now: look before you undo",)
    overruled: list[str] = []
    for name, ours in _attribute_values(case.steps, "after").items():
        if is_made and differences({name: ours}, {name: attributes.get(name, "")}):
            overruled.append(name)
    overruled_lines = [
        f"{plain(name, 64)} holds another value now: not undone" for name in overruled
    ]
    lines = list(first_of(overruled_lines, _MOST_STEPS))
    rollback = mendq_command("rollback", case)
    undone = {
        name: text
        for name, text in _attribute_values(case.steps, "before").items()
        if name not in overruled
    }
    if undone:
        if not is_made:
            lines.append("once the change is made:")
        by_hand = command_line(set_command(case.queue_arn, undone))
        lines.extend([rollback, "or by hand:", by_hand])
    if RETENTION in undone:
        lines.append(DELETES)
    for created_arn in _created_queues(case.steps):
        lines.append("the queue that was made is kept; once it is empty and nobody names it:")
        lines.append(command_line(delete_queue_command(created_arn)))
    for _ in _redrive_destinations(case.steps):
        lines.extend(["messages that went back stay there; what stops the others:", rollback])
    return tuple(lines)


def template(case: Case, facts: Facts) -> tuple[Section, ...]:
    """Return a section with template lines of both values, if a case is about an overridden value.

    Otherwise return no section. The two values are Mendq's and the one that someone else has set.
    """
    if State.OVERRIDDEN not in (case.state, case.code):
        return ()
    deployer = find_cloudformation_resource(facts.tags)
    stack = deployer.get("stack")
    resource = deployer.get("resource")
    owner = f"CloudFormation stack {value(stack, 128)}" if stack else "no CloudFormation stack"
    if resource:
        owner = f"{owner}, {value(resource, 255)}"
    lines = [
        f"owner by its tags: {owner}",
        "put the value you want there: `terraform apply` brings back its own; CloudFormation does",
        "when that property changes in its template, or by a drift-aware change set",
        f"Mendq leaves these settings alone for {SILENT_DAYS} days",
    ]
    attribute_steps = [step for step in case.steps if _sets_attribute(step)]
    for step in attribute_steps[:_MOST_STEPS]:
        name = step["attribute"]
        theirs = facts.attributes.get(name, "") if facts.attributes else step["before"]
        lines += template_lines("Mendq's", name, step["after"])
        lines += template_lines("theirs", name, theirs)
    return (Section("TEMPLATE", tuple(lines)),)


# The most characters of a value in a template line, and of a value that is parsed for it.
_MOST_VALUE = 400
_MOST_READ = 1_000

# CloudFormation's property has the attribute's name. Terraform's argument has the same name in
# snake case, except for these.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
# https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/sqs_queue
_TERRAFORM: dict[str, str] = {
    "QueueName": "name",
    "PolicyDocument": "policy",
    "Queues": "queue_url",
    "VisibilityTimeout": "visibility_timeout_seconds",
    "MessageRetentionPeriod": "message_retention_seconds",
    "MaximumMessageSize": "max_message_size",
    "ReceiveMessageWaitTimeSeconds": "receive_wait_time_seconds",
}
_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")

NUMBER = re.compile(r"0|[1-9][0-9]{0,11}")


def terraform_name(attribute: str) -> str:
    """Return the name of the argument of Terraform's `aws_sqs_queue` for a queue attribute."""
    return _TERRAFORM.get(attribute) or _NEXT_WORD.sub("_", plain(attribute, 64)).lower()


def template_lines(whose: str, attribute: str, text: str) -> tuple[str, str]:
    """Return the line for CloudFormation and the line for Terraform that set an attribute.

    Each line begins with `whose`, such as `Mendq's`, to say who wants the value. If the value is
    empty or too long, the line says so instead of the value.
    """
    literal = _write_literal(text)
    if not literal:
        literal = "(too long for a page)" if text else f"({NOT_SET}: leave it out)"
    escaped = literal.replace("${", "$${").replace("%{", "%%{")
    encoded = f"jsonencode({escaped})" if escaped.startswith("{") else escaped
    return (
        f"{whose}, CloudFormation: {_property(attribute)}: {literal}",
        f"{whose}, Terraform: {terraform_name(attribute)} = {encoded}",
    )


def _property(attribute: str) -> str:
    """Return CloudFormation's name for a queue attribute."""
    # In CloudFormation, a queue's policy is a resource of its own.
    if attribute == "Policy":
        return "PolicyDocument (AWS::SQS::QueuePolicy)"
    return plain(attribute, 64)


def _write_literal(text: str) -> str:
    """Return a value as YAML and HCL both read it: a number, true, false, JSON, or a quoted text.

    Return an empty text if the value is empty or too long.
    """
    if NUMBER.fullmatch(text) or text in ("true", "false"):
        return text
    if not 0 < len(text) <= _MOST_READ:
        return ""
    literal = exact_json(parse_json_object(text) or text)
    return literal if len(literal) <= _MOST_VALUE else ""
