"""A change to a queue in words: steps, commands, CloudFormation and Terraform lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mendq.model.case import QUEUE_DELETED, SILENT_DAYS, Case, State
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts
from mendq.model.limits import cloudformation_resource
from mendq.model.queue import arn_of, parse_json_object
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.notifications.commands import (
    create_queue_command,
    delete_queue_command,
    mendq_command,
    redrive_preview,
    set_command,
)
from mendq.notifications.configuration import NOT_SET, as_json, differences
from mendq.notifications.text import Section, command_line, exact_json, first_of, plain, value

_MOST_STEPS = 4
Steps = Sequence[Mapping[str, str]]
RETENTION = "MessageRetentionPeriod"
# Of a command that puts back a shorter one.
DELETES = "this deletes the messages that are older"

_TRIED = frozenset(
    {State.APPLIED, State.UNVERIFIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE}
)

_SECONDS = re.compile(r"VisibilityTimeout|MessageRetentionPeriod|[A-Za-z]{1,64}Seconds")


def with_unit(attribute: str, text: str, most: int = 300) -> str:
    """An attribute's value in at most `most` characters: its unit, or compact JSON, with it."""
    if not (NUMBER.fullmatch(text) and _SECONDS.fullmatch(attribute)):
        return as_json(attribute, text, most) or value(text, most)
    days, rest = divmod(int(text), 86_400)
    return f"{text} s ({days} d)" if days and not rest else f"{text} s"


def change(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """What was changed or would be, and the command for it where a person may want it."""
    if not case.steps:
        return ("none was made, so there is nothing to undo",)
    steps = first_of((line for each in case.steps for line in step_lines(each)), _MOST_STEPS)
    manual = commands(case.queue_arn, case.steps, attributes)
    if case.came_from in _TRIED:
        return ("made by Mendq:", *steps)
    if case.state is State.PROPOSED:
        return ("proposed, not made:", *steps, "by hand:", *manual)
    if case.state is State.OVERRIDDEN or case.code == QUEUE_DELETED:
        return ("not made, so there is nothing to undo:", *steps)
    would = "not made, so there is nothing to undo; it would have been:"
    return (would, *steps, "by hand, if you decide so:", *manual)


def commands(queue_arn: str, steps: Steps, attributes: Mapping[str, str]) -> Iterator[str]:
    """What a person would run in place of Mendq: first the queue that is made, then the rest."""
    source = Facts(queue_arn, attributes, {})
    for made in _made(steps):
        yield command_line(create_queue_command(made, attributes_of_dlq(source, made)))
    yield from map(command_line, map(redrive_preview, _sent_back(steps)))
    if values := _values(steps, "after"):
        yield command_line(set_command(queue_arn, values))


def step_lines(step: Mapping[str, str]) -> tuple[str, ...]:
    """A step as people read it: both values; of a policy, what goes and what comes."""
    name, before, after = step["attribute"], step["before"], step["after"]
    if name == "Policy" and (lines := differences({name: before}, {name: after})):
        return lines
    shown = (with_unit(name, each) if each else NOT_SET for each in (before, after))
    return (f"{plain(name, 64)}: {' -> '.join(shown)}",)


def _values(steps: Steps, which: str) -> dict[str, str]:
    """Of the attributes that the queue itself has."""
    return {each["attribute"]: each[which] for each in steps if _has_value(each)}


def _made(steps: Steps) -> tuple[str, ...]:
    return tuple(each["after"] for each in steps if _is_made(each))


def _is_made(step: Mapping[str, str]) -> bool:
    """Whether it makes another queue."""
    return step["attribute"] == CreateDlq.attribute and arn_of(step["after"]) is not None


def _sent_back(steps: Steps) -> tuple[str, ...]:
    """The queues that messages go back to."""
    of_messages = (each for each in steps if not has_value_in_queue(each["attribute"]))
    return tuple(each["after"] for each in of_messages if arn_of(each["after"]) is not None)


def _has_value(step: Mapping[str, str]) -> bool:
    """Whether an attribute of the queue itself holds it."""
    return has_value_in_queue(step["attribute"]) and not _is_made(step)


def undo(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The command that undoes it, if there is anything; somebody else's value is kept."""
    made, rollback = case.came_from in _TRIED, mendq_command("rollback", case)
    if not case.steps or not (made or case.state is State.PROPOSED):
        return ()
    if made and not attributes:
        return ("the queue's attributes are not known now: look before you undo",)
    theirs = [
        name
        for name, ours in _values(case.steps, "after").items()
        if made and differences({name: ours}, {name: attributes.get(name, "")})
    ]
    lines = [f"{plain(each, 64)} holds another value now: not undone" for each in theirs]
    lines = [*first_of(lines, _MOST_STEPS)]
    undone = {
        name: text for name, text in _values(case.steps, "before").items() if name not in theirs
    }
    if undone:
        lines += [*([] if made else ["once the change is made:"]), rollback, "or by hand:"]
        lines.append(command_line(set_command(case.queue_arn, undone)))
    lines += [DELETES] * (RETENTION in undone)
    for each in _made(case.steps):
        lines.append("the queue that was made is kept; once it is empty and nobody names it:")
        lines.append(command_line(delete_queue_command(each)))
    for _ in _sent_back(case.steps):
        lines += ["messages that went back stay there; what stops the others:", rollback]
    return tuple(lines)


def template(case: Case, facts: Facts) -> tuple[Section, ...]:
    """Both values as the owner of the queue would write them; of what is overridden alone."""
    if State.OVERRIDDEN not in (case.state, case.code):
        return ()
    owner_of = cloudformation_resource(facts.tags)
    stack, resource = (owner_of.get(each) for each in ("stack", "resource"))
    of_stack = f"CloudFormation stack {value(stack, 128)}" if stack else "no CloudFormation stack"
    lines = [
        f"owner by its tags: {of_stack}" + (f", {value(resource, 255)}" if resource else ""),
        "put the value you want there: `terraform apply` brings back its own; CloudFormation does",
        "when that property changes in its template, or by a drift-aware change set",
        f"Mendq leaves these settings alone for {SILENT_DAYS} days",
    ]
    for step in [each for each in case.steps if _has_value(each)][:_MOST_STEPS]:
        name = step["attribute"]
        theirs = facts.attributes.get(name, "") if facts.attributes else step["before"]
        lines += template_lines("Mendq's", name, step["after"])
        lines += template_lines("theirs", name, theirs)
    return (Section("TEMPLATE", tuple(lines)),)


_MOST_VALUE = 400
_MOST_READ = 1_000

# CloudFormation's property bears the attribute's own name, Terraform's argument the same in its own
# case, but for these.
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
    """The argument of Terraform's `aws_sqs_queue` for a queue attribute."""
    return _TERRAFORM.get(attribute) or _NEXT_WORD.sub("_", plain(attribute, 64)).lower()


def template_lines(whose: str, attribute: str, text: str) -> tuple[str, str]:
    """Both languages' lines, after whose value it is; they say it where there is none to write."""
    none = "(too long for a page)" if text else f"({NOT_SET}: leave it out)"
    written = _written(text) or none
    escaped = written.replace("${", "$${").replace("%{", "%%{")
    encoded = f"jsonencode({escaped})" if escaped.startswith("{") else escaped
    return (
        f"{whose}, CloudFormation: {_property(attribute)}: {written}",
        f"{whose}, Terraform: {terraform_name(attribute)} = {encoded}",
    )


def _property(attribute: str) -> str:
    # A queue's policy is a resource of its own in CloudFormation.
    of_policy = "PolicyDocument (AWS::SQS::QueuePolicy)"
    return of_policy if attribute == "Policy" else plain(attribute, 64)


def _written(text: str) -> str:
    """As YAML and HCL both read it: number, true or false, document, text.

    Empty where nothing is set or it is too long.
    """
    if NUMBER.fullmatch(text) or text in ("true", "false"):
        return text
    written = exact_json(parse_json_object(text) or text) if 0 < len(text) <= _MOST_READ else ""
    return written if len(written) <= _MOST_VALUE else ""
