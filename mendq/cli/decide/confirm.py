"""`mendq confirm`: let Mendq use a queue that it did not make as a DLQ or a quarantine.

Mendq finds such a queue by its name (`orders-dlq`, `orders-quarantine`), and anyone in the account
may have made it. So the operator sees who can reach its messages before they confirm it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec import to_builtins
from rich.text import Text

from mendq.cases.receivers import Receivers, read_receiver_facts
from mendq.cli.commands import CASE_LOOKUP_ACTIONS, QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, YesOption, confirm
from mendq.cli.queues import QueueName, find_queue, resolve_queue_arn
from mendq.cli.redrive.route import derive_source_arn
from mendq.model.dlq import arn_of_quarantine, why_unfit_as_quarantine
from mendq.model.facts import QueueFacts
from mendq.model.queue import is_quarantine, parse_queue_arn
from mendq.model.receiver import (
    ACCESS_TEXT_BY_ATTRIBUTE,
    Receiver,
    can_have_several_sources,
    find_receiver_objection,
    read_access,
    remove_aws_tags,
)
from mendq.notifications.commands import confirm_queue_command, revoke_confirmation_command
from mendq.notifications.links import list_json_lines

RevokeOption = Annotated[
    bool, typer.Option("--revoke", help="Remove the confirmation. Mendq then asks again.")
]
_SOURCE_OPTION = typer.Option(
    "--source", help="The source of a quarantine whose name has 80 characters."
)
SourceOption = Annotated[str | None, _SOURCE_OPTION]


@command(
    3,
    CommandKind.STEERING,
    CASE_LOOKUP_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS | {"sqs:ListQueueTags", "dynamodb:UpdateItem"},
)
def confirm_(
    call: Invocation,
    queue: QueueName,
    source: SourceOption = None,
    revoke: RevokeOption = False,
    yes: YesOption = False,
) -> None:
    """Let Mendq send messages to a DLQ or quarantine that it did not make.

    The confirmation ends if the queue is created again, or if its policy, encryption,
    RedrivePolicy, RedriveAllowPolicy or tags change.

    Examples:
      mendq confirm orders-quarantine
      mendq confirm orders-dlq --revoke
    """
    call.account.require_whole_stack("confirm")
    queue_arn = resolve_queue_arn(call.account, queue)
    receivers = call.account.open_store(Receivers)
    if revoke:
        _revoke(call, receivers, queue_arn, yes=yes)
        return
    facts = _read_existing_queue(call, queue_arn)
    former_receiver = receivers.load(queue_arn)
    source_arn = _find_source_arn(call, queue_arn, source, former_receiver)
    _require_fit_quarantine(call, facts, source_arn)
    _print_access(call, facts, former_receiver, source_arn)
    confirm(f"Let Mendq send messages to {facts.name}?", yes=yes)
    receiver = _make_receiver(call, facts, source_arn)
    if find_receiver_objection(receiver, _read_existing_queue(call, queue_arn)):
        problem = f"{facts.name} was changed while you looked, so nothing was recorded"
        remedy = f"run `{confirm_queue_command(queue_arn)}` again"
        raise CommandError(f"{problem}. Next: {remedy}", error_code="changed_meanwhile")
    receivers.put(receiver)
    call.out.print_json(to_builtins(receiver))
    call.out.say(f"confirmed: Mendq may send messages to {facts.name}", "green")
    call.out.say_indented(f"to undo: {revoke_confirmation_command(queue_arn)}")


def _revoke(call: Invocation, receivers: Receivers, queue_arn: str, *, yes: bool) -> None:
    """Remove the record of a queue. Raises CommandError if there is none."""
    confirm(f"Stop Mendq from sending messages to {queue_arn}?", yes=yes)
    if not receivers.remove(queue_arn):
        problem = f"there is no record of {queue_arn} to remove: nothing was changed"
        raise CommandError(problem, Exit.NOT_FOUND)
    call.out.print_json({"removed": queue_arn})
    call.out.say(
        "removed: Mendq sends nothing there until someone confirms the queue again", "cyan"
    )


def _read_existing_queue(call: Invocation, queue_arn: str) -> QueueFacts:
    """Return the queue with its attributes and tags. Raises CommandError if there is none."""
    facts = read_receiver_facts(call.account.clients, queue_arn)
    if not facts.exists:
        problem = f"there is no queue {queue_arn}, so there is nothing to confirm"
        remedy = "Mendq makes the queue when it needs one"
        raise CommandError(f"{problem}: {remedy}", Exit.NOT_FOUND)
    return facts


def _find_source_arn(
    call: Invocation, queue_arn: str, given_source: str | None, former_receiver: Receiver | None
) -> str:
    """Return the ARN of the quarantine's source; empty for a DLQ.

    The source is `given_source` (--source) if there is one, or else the source that the
    quarantine's name or the case store's record names. Raises CommandError if none is known, or if
    --source does not fit the queue.
    """
    queue_name = parse_queue_arn(queue_arn).name
    if given_source is not None:
        source_arn = resolve_queue_arn(call.account, given_source)
        if not is_quarantine(queue_name) or arn_of_quarantine(source_arn) != queue_arn:
            problem = f"{queue_name} is not the name of {given_source}'s quarantine"
            raise CommandError(f"{problem}: nothing was recorded; correct --source", Exit.USAGE)
        return source_arn
    if not is_quarantine(queue_name):
        return ""
    if not can_have_several_sources(queue_name):
        return derive_source_arn(queue_arn)
    if former_receiver is not None and former_receiver.source_arn:
        return former_receiver.source_arn
    problem = f"{queue_name} may be cut to 80 characters, so it does not tell its source"
    raise CommandError(f"{problem}. Next: add --source SOURCE", Exit.USAGE)


def _require_fit_quarantine(call: Invocation, facts: QueueFacts, source_arn: str) -> None:
    """Raise CommandError if messages of the source would not be safe in the queue as a quarantine.

    Nothing is checked if the source does not exist, or if `source_arn` is empty (for a DLQ).
    """
    source = find_queue(call.account, source_arn) if source_arn else None
    unfit_reason = why_unfit_as_quarantine(source, facts.attributes) if source else None
    if unfit_reason:
        problem = f"{facts.name} cannot be a quarantine: {unfit_reason}. Nothing was recorded"
        remedy = "change the queue, or delete it: then Mendq makes its own"
        raise CommandError(f"{problem}; {remedy}", error_code="receiver_unfit")


def _make_receiver(call: Invocation, facts: QueueFacts, source_arn: str) -> Receiver:
    """Return the record of a queue that the operator confirms now."""
    return Receiver.of_queue(
        facts,
        recorded_at=datetime.now(UTC),
        recorded_by=call.account.identity,
        is_made_by_mendq=False,
        source_arn=source_arn,
    )


def _print_access(
    call: Invocation, facts: QueueFacts, former_receiver: Receiver | None, source_arn: str
) -> None:
    """Print when the queue was created, who can reach its messages, and why Mendq asks."""
    out = call.out
    out.say_heading(f"Queue {facts.queue_arn}")
    if facts.created_at is not None:
        out.say(f"created {facts.created_at:%Y-%m-%d %H:%M} UTC")
    if source_arn:
        out.say(f"quarantine of {parse_queue_arn(source_arn).name}")
    access = read_access(facts.attributes)
    for name, text in ACCESS_TEXT_BY_ATTRIBUTE.items():
        _print_value(out, text, access.get(name))
    own_tags = remove_aws_tags(facts.tags)
    _print_value(out, "tags", json.dumps(own_tags) if own_tags else None)
    objection = find_receiver_objection(former_receiver, facts, source_arn)
    if objection:
        out.say(f"Mendq sends nothing there now: {objection}", "yellow")
    warning = "Anyone whom this policy or IAM allows to receive from the queue can read and delete"
    out.say(f"{warning} the messages that Mendq sends there.", "yellow")


def _print_value(out: Output, label: str, value: str | None) -> None:
    """Print a label and the whole value of an attribute, or all tags. Nothing is cut off."""
    if value is None:
        out.say(f"{label}: none")
        return
    out.say(f"{label}:")
    for line in list_json_lines(value):
        out.show(Text(f"  {line}"))
