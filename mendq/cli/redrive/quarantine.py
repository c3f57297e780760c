"""`mendq quarantine`: commands about messages that failed again after a redrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct, field
from msgspec.structs import replace
from rich.text import Text

from mendq.aws.cloudwatch import build_query, make_queue_dimension, read_metric_series
from mendq.aws.errors import CaseStoreUnavailable, translate_aws_errors
from mendq.aws.queue import list_queue_names, read_queue_tags
from mendq.cases.seal_keys import SEAL_TABLE_OUTPUT
from mendq.catalogue.dlq.time_left import URGENT_BELOW_TIME_LEFT, sort_by_urgency
from mendq.catalogue.dlq.unconfirmed_receiver import (
    advise_shorter_source_name,
    confirm_receiver_command,
)
from mendq.cli.account import Account
from mendq.cli.command_group import group
from mendq.cli.commands import (
    CASE_LOOKUP_ACTIONS,
    CLAIM_ACTION,
    DELETE_MESSAGES_ACTIONS,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES,
    QUEUE_ATTRIBUTES_ACTIONS,
    RECEIVE_MESSAGES_ACTIONS,
    SEND_BACK_MESSAGES_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation, describe_error
from mendq.cli.output import Output, format_age, make_table
from mendq.cli.queues import find_queue, make_queue_argument, read_managed_queues
from mendq.cli.redrive.choice import MessageChoice, with_choice_options
from mendq.cli.redrive.dlq import BodiesOption
from mendq.cli.redrive.drop import DropWork, make_message_document
from mendq.cli.redrive.redrive import UnsealedOption, send_back
from mendq.cli.redrive.route import (
    QuarantineSourceFinder,
    Route,
    find_given_source_arn,
    find_quarantine,
    find_quarantine_objection,
    find_route_from_quarantine,
    find_unchanged_quarantine_objection,
    make_quarantine_source_finder,
    require_recorded_quarantine,
)
from mendq.cli.redrive.work import look_at_messages
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.queue import parse_queue_arn
from mendq.model.receiver import OtherSourceObjection
from mendq.model.time_text import format_time
from mendq.notifications.text import (
    format_count,
    format_duration,
    format_value,
    to_terminal_text,
)
from mendq.redrive.kept_messages import KeptLength, KeptMessage
from mendq.redrive.messages import QUARANTINE_MARK_NAME, REDRIVE_MARK_NAME, Message
from mendq.redrive.mover import MOST_BATCH_BYTES

_METRIC_READ_PERIOD = timedelta(minutes=15)
_MOST_BODY_CHARACTERS = 4_096
_MOST_VALUE_CHARACTERS = 60
# `peek` keeps messages whole up to this size in all: ten of the largest.
MOST_WHOLE_BYTES = 10 * MOST_BATCH_BYTES
# What `peek` keeps of each message beyond that.
_KEPT_LENGTH = KeptLength(body_characters=_MOST_BODY_CHARACTERS, attribute_characters=256)
_SEPARATELY_PRINTED_FIELDS = ("message_id", "is_sealed", "attributes", "body", "cut")
QuarantineArgument = Annotated[str, make_queue_argument("The source or its quarantine:")]
FileOption = Annotated[
    Path | None,
    typer.Option(help="The file to write the messages to first. Default: a new file here."),
]

quarantine = group("quarantine", "See, send back or drop quarantined messages.")
_LISTING_IAM_ACTIONS = (
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES
    | CASE_LOOKUP_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | {"cloudwatch:GetMetricData", "sqs:ListQueueTags"}
)


class Quarantine(Struct, frozen=True):
    """The quarantine of a managed queue: the queue for messages that failed after a redrive."""

    queue: Facts
    source_arn: str
    # When the oldest message was sent, as CloudWatch knows; None if CloudWatch does not say. A
    # message may be even older: the metric leaves out messages that were received three times, and
    # each look at a message is a receive.
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    oldest_at: datetime | None
    # Why Mendq sends no messages there until a person confirms the queue; empty if it does.
    objection: str = ""

    @property
    def message_count(self) -> int:
        """Approximate number of messages in the quarantine."""
        return self.queue.visible + self.queue.in_flight

    @property
    def expires_by(self) -> datetime | None:
        """Latest time at which SQS deletes the oldest message. None if it is not known."""
        return self.oldest_at and self.oldest_at + timedelta(seconds=self.queue.retention_seconds)

    def document(self) -> dict[str, object]:
        """Return the quarantine as `mendq quarantine list --json` prints it."""
        return {
            "queue_arn": self.queue.queue_arn,
            "source_arn": self.source_arn,
            "messages": self.message_count,
            "in_flight": self.queue.in_flight,
            "oldest_at": self.oldest_at and format_time(self.oldest_at),
            "expires_by": self.expires_by and format_time(self.expires_by),
            "objection": self.objection or None,
        }


@command(2, CommandKind.LOOKING, _LISTING_IAM_ACTIONS, quarantine)
def list_(call: Invocation) -> None:
    """List the managed queues' quarantines; the first to expire is on top.

    Examples:
      mendq quarantine list
      mendq quarantine list --json
    """
    now = datetime.now(UTC)
    with call.out.show_waiting("looking for quarantines"):
        quarantines = sort_by_urgency(_list_quarantines(call.account, now), _find_expiry_seconds)
    call.out.print_json([quarantine.document() for quarantine in quarantines])
    if not quarantines:
        call.out.say("no managed queue has a quarantine")
        return
    table = make_table("MESSAGES", "OLDEST", "EXPIRES", "QUARANTINE")
    for quarantine in quarantines:
        oldest_message_age_text = "-"
        if quarantine.oldest_at:
            oldest_message_age_text = f"over {format_age(quarantine.oldest_at, now)}"
        expiry_text = _describe_expiry(quarantine, now)
        table.add_row(
            f"{quarantine.message_count:,}",
            oldest_message_age_text,
            expiry_text,
            Text(quarantine.queue.name),
        )
    call.out.show(table)
    for quarantine in quarantines:
        if quarantine.objection:
            _print_objection(call.out, quarantine)


def _print_objection(out: Output, quarantine: Quarantine) -> None:
    """Print why Mendq does not use the quarantine for this source, and what to do."""
    problem = f"Mendq sends nothing to {quarantine.queue.name}: {quarantine.objection}"
    if isinstance(quarantine.objection, OtherSourceObjection):
        out.say(f"{problem}. {advise_shorter_source_name(quarantine.source_arn)}", "yellow")
        return
    out.say(f"{problem}. See who can read it, then confirm it:", "yellow")
    out.say_command(confirm_receiver_command(quarantine.queue.queue_arn, quarantine.source_arn))


def _find_expiry_seconds(quarantine: Quarantine) -> float | None:
    """Return `expires_by` of the quarantine in seconds since 1970. None if it is not known."""
    expires_by = quarantine.expires_by
    return None if expires_by is None else expires_by.timestamp()


def _describe_expiry(quarantine: Quarantine, now: datetime) -> Text:
    """Return the text that says when the oldest message expires, yellow if that is soon."""
    if quarantine.expires_by is None:
        return Text("not known" if quarantine.message_count else "-")
    time_left = quarantine.expires_by - now
    expiry_text = (
        f"within {format_duration(time_left)}" if time_left > timedelta() else "any moment"
    )
    return Text(expiry_text, "yellow" if time_left < URGENT_BELOW_TIME_LEFT else "")


def _list_quarantines(account: Account, now: datetime) -> Iterator[Quarantine]:
    """Yield the quarantines of the managed queues, sorted by the names of these queues.

    Raises FactsUnavailable if AWS cannot be read, and QueueRefusesUs if the policy of a quarantine
    denies it.
    """
    with translate_aws_errors("the queues of the account"):
        existing_queue_names = {*list_queue_names(account.clients)}
    for source in read_managed_queues(account):
        quarantine_arn = arn_of_quarantine(source.queue_arn)
        if parse_queue_arn(quarantine_arn).name not in existing_queue_names:
            continue
        queue = find_queue(account, quarantine_arn)
        if queue:
            tags = read_queue_tags(account.clients, quarantine_arn) or {}
            objection = find_unchanged_quarantine_objection(
                account, dataclasses.replace(queue, tags=tags), source.queue_arn
            )
            oldest_at = _read_oldest_at(account, queue, now)
            yield Quarantine(queue, source.queue_arn, oldest_at, objection or "")


def _read_oldest_at(account: Account, queue: Facts, now: datetime) -> datetime | None:
    """Return when the oldest message was sent, as CloudWatch reports it.

    None if no message is visible, or if CloudWatch has no datapoint of the last 15 minutes.
    """
    metric = build_query(
        "age", make_queue_dimension(queue.queue_arn), "ApproximateAgeOfOldestMessage", "Maximum", 60
    )
    points_by_key = read_metric_series(
        account.clients, [metric], now - _METRIC_READ_PERIOD, now, subject=queue.name
    )
    message_age_points = points_by_key.get("age", ())
    if not message_age_points or not queue.visible:
        return None
    measured_at, age_seconds = message_age_points[-1]
    return measured_at.astimezone(UTC) - timedelta(seconds=age_seconds)


@command(2, CommandKind.MESSAGES, CASE_LOOKUP_ACTIONS | RECEIVE_MESSAGES_ACTIONS, quarantine)
def peek(
    call: Invocation,
    queue: QuarantineArgument,
    limit: Annotated[int, typer.Option(help="The most messages to take.", min=1, max=1_000)] = 10,
    bodies: BodiesOption = False,
) -> None:
    """Show quarantined messages: why, since when, attributes.

    To look at a message is to receive it, so its receive count rises.

    Examples:
      mendq quarantine peek orders --limit 3
      mendq quarantine peek orders --bodies
    """
    quarantine_facts = find_quarantine(call.account, queue)
    given_source_arn = find_given_source_arn(call.account, queue)
    objection = find_quarantine_objection(call.account, quarantine_facts, given_source_arn)
    if objection:
        warning = f"{quarantine_facts.name} may be another person's queue: {objection}"
        call.out.say(warning, "yellow")
    route = Route(quarantine_facts, quarantine_facts)
    source_finder = _find_peek_source_finder(call, quarantine_facts)
    shown_messages = _ShownMessages(source_finder, with_bodies=bodies)
    look_at_messages(call, route, shown_messages.add, limit)
    call.out.print_json(shown_messages.documents)
    for message, document in zip(shown_messages.messages, shown_messages.documents, strict=True):
        _print_message(call.out, message, document)
    shown_count = len(shown_messages.messages)
    total_message_count = max(shown_count, quarantine_facts.visible)
    summary = (
        f"{shown_count:,} of about {total_message_count:,} messages in {quarantine_facts.name}"
    )
    hidden_count = route.count_hidden_messages(shown_count)
    if hidden_count:
        summary += f", and {hidden_count:,} more held by another consumer"
    call.out.say(summary, "dim")
    cut_count = sum("cut" in document for document in shown_messages.documents)
    # For people each body and each attribute is cut anyway.
    if cut_count and call.out.as_json:
        whole_text = f"whole messages are shown up to {MOST_WHOLE_BYTES:,} bytes in all"
        remedy = "a smaller --limit shows them whole"
        cut_text = f"{format_count(cut_count, 'message is', 'messages are')} shown in part"
        call.out.say(f"{cut_text}, because {whole_text}: {remedy}", "yellow")


def _find_peek_source_finder(call: Invocation, quarantine: Facts) -> QuarantineSourceFinder | None:
    """Return the finder that checks seals. Warn and return None if the key cannot be read."""
    try:
        return make_quarantine_source_finder(call.account, quarantine)
    except CaseStoreUnavailable as error:
        call.out.say(
            "Mendq could not check who sent these messages, because it could not read the seal "
            f"key: {describe_error(error)}. You need dynamodb:GetItem on the stack's table "
            f"{SEAL_TABLE_OUTPUT}",
            "yellow",
        )
        return None


class _ShownMessages(Struct):
    """The messages that `peek` shows, with their documents. A body is kept only if it is shown.

    Messages are kept whole up to MOST_WHOLE_BYTES in all. Of each further message, only the
    beginning of the body and of its attributes is kept, so that large messages cannot fill the
    memory.
    """

    # None if the key of the seals cannot be read.
    source_finder: QuarantineSourceFinder | None
    with_bodies: bool
    messages: list[Message] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)
    # Bytes of the messages that are kept whole.
    whole_bytes: int = 0

    def add(self, message: Message) -> None:
        """Keep a message and its document. If parts were cut, the document's `cut` lists them."""
        shown_message = message if self.with_bodies else replace(message, body="")
        kept = KeptMessage(shown_message)
        if self.whole_bytes + shown_message.size_bytes > MOST_WHOLE_BYTES:
            kept = KeptMessage.keep(shown_message, _KEPT_LENGTH)
        else:
            self.whole_bytes += shown_message.size_bytes
        document = make_message_document(kept.message, with_body=self.with_bodies)
        document["bytes"] = message.size_bytes
        document["is_sealed"] = self.source_finder and self.source_finder.is_origin_proven(message)
        cut_parts = kept.list_cut_parts()
        if cut_parts:
            document["cut"] = cut_parts
        self.messages.append(kept.message)
        self.documents.append(document)


def _print_message(out: Output, message: Message, document: Mapping[str, Any]) -> None:
    """Print one message: why it is in quarantine, its fields, attributes, and maybe its body."""
    out.say(message.message_id, "bold")
    if document["why"] is None:
        out.say_indented("why it is here is not known: it bears no mark of Mendq's", "yellow")
    elif document["is_sealed"] is False:
        warning = "its mark has no seal of Mendq: anyone who may send here can have written it"
        out.say_indented(warning, "yellow")
    labelled_fields = []
    for name, field_value in document.items():
        if field_value and name not in _SEPARATELY_PRINTED_FIELDS:
            labelled_fields.append((name.replace("_", " "), "dim", str(field_value)))
    out.say_labelled(labelled_fields)
    for name, attribute in message.attributes.items():
        if name not in (REDRIVE_MARK_NAME, QUARANTINE_MARK_NAME):
            attribute_value_text = format_value(str(attribute.value), _MOST_VALUE_CHARACTERS)
            out.say_indented(
                f"{to_terminal_text(name, _MOST_VALUE_CHARACTERS)} = {attribute_value_text}", "dim"
            )
    body = document.get("body")
    if body:
        out.say_unwrapped(to_terminal_text(body, _MOST_BODY_CHARACTERS), "", indent=2)


@command(
    2,
    CommandKind.MESSAGES,
    CASE_LOOKUP_ACTIONS | SEND_BACK_MESSAGES_ACTIONS | {CLAIM_ACTION},
    quarantine,
)
@with_choice_options
def return_(
    call: Invocation,
    queue: QuarantineArgument,
    choice: MessageChoice,
    unsealed: UnsealedOption = False,
) -> Exit:
    """Send messages back to the queue they failed in.

    Messages without Mendq's seal stay, because anyone may have sent them there.

    Examples:
      mendq quarantine return orders --where "attributes.type == 'order'"
      mendq quarantine return orders --all --dry-run
    """
    find_route = partial(find_route_from_quarantine, call.account, queue, takes_unsealed=unsealed)
    return send_back(call, choice, find_route)


@command(2, CommandKind.MESSAGES, CASE_LOOKUP_ACTIONS | DELETE_MESSAGES_ACTIONS, quarantine)
@with_choice_options
def drop(
    call: Invocation, queue: QuarantineArgument, choice: MessageChoice, file: FileOption = None
) -> Exit:
    """Write messages to a file, then delete them.

    Examples:
      mendq quarantine drop orders --where 'age_seconds > `86400`' --dry-run
      mendq quarantine drop orders --all --file dropped.jsonl
    """
    now = datetime.now(UTC)
    quarantine_facts = find_quarantine(call.account, queue)
    given_source_arn = find_given_source_arn(call.account, queue)
    require_recorded_quarantine(call.account, quarantine_facts, given_source_arn)
    file_path = file or Path(f"{quarantine_facts.name}-{now:%Y%m%dT%H%M%SZ}.jsonl")
    route = Route(quarantine_facts, quarantine_facts)
    return DropWork(call, route, choice, now, file_path).carry_out()
