"""`mendq quarantine`: the messages that came back after a redrive, kept until a person decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.text import Text

from mendq.aws.cloudwatch import build_query, queue_dimension, read_series
from mendq.aws.errors import translate_aws_errors
from mendq.aws.queue import list_queue_names
from mendq.catalogue.dlq.time_left import UNHURRIED, sort_by_urgency
from mendq.cli.account import Account
from mendq.cli.command_group import group
from mendq.cli.commands import (
    CASE_STORE,
    CLAIM,
    DROPPING,
    MANAGED,
    QUEUE,
    RETURNING,
    TAKING,
    Kind,
    command,
)
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, format_age, make_table
from mendq.cli.queues import find_queue, managed_queues, queue_argument
from mendq.cli.redrive.choice import Choice, choosing
from mendq.cli.redrive.dlq import Bodies
from mendq.cli.redrive.drop import Drop, document_of
from mendq.cli.redrive.redrive import send_back
from mendq.cli.redrive.route import Route, quarantine_named, route_out_of
from mendq.cli.redrive.work import look_at
from mendq.model.dlq import arn_of_quarantine
from mendq.model.evidence import to_text
from mendq.model.facts import Facts
from mendq.model.queue import parts_of
from mendq.notifications.text import plain, span, value
from mendq.redrive.messages import QUARANTINED, REDRIVEN, Message

_READS_BACK = timedelta(minutes=15)
_MOST_BODY = 4_096
_MOST_VALUE = 60
_SHOWN_APART = ("message_id", "attributes", "body")
Named = Annotated[str, queue_argument("The source or its quarantine:")]
File = Annotated[Path | None, typer.Option(help="Where they are written first; a new file here.")]

quarantine = group("quarantine", "See, send back or drop quarantined messages.")
_LISTING = MANAGED | QUEUE | {"cloudwatch:GetMetricData"}


class Quarantine(Struct, frozen=True):
    """One beside a managed source; `oldest_at` is None where CloudWatch does not say.

    The oldest message came then or before: SQS's metric leaves out what was received three times,
    and to look is to receive.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """

    queue: Facts
    source_arn: str
    oldest_at: datetime | None

    @property
    def messages(self) -> int:
        return self.queue.visible + self.queue.in_flight

    @property
    def expires_by(self) -> datetime | None:
        """When SQS has deleted the first message, at the latest."""
        return self.oldest_at and self.oldest_at + timedelta(seconds=self.queue.retention_seconds)

    def document(self) -> dict[str, object]:
        return {
            "queue_arn": self.queue.queue_arn,
            "source_arn": self.source_arn,
            "messages": self.messages,
            "in_flight": self.queue.in_flight,
            "oldest_at": self.oldest_at and to_text(self.oldest_at),
            "expires_by": self.expires_by and to_text(self.expires_by),
        }


@command(2, Kind.LOOKING, _LISTING, quarantine)
def list_(call: Invocation) -> None:
    """The quarantines beside the managed queues, what expires first at the top.

    Examples:
      mendq quarantine list
      mendq quarantine list --json
    """
    now = datetime.now(UTC)
    with call.out.show_waiting("looking for quarantines"):
        found = sort_by_urgency(
            _quarantines(call.account, now),
            lambda each: None if each.expires_by is None else each.expires_by.timestamp(),
        )
    call.out.print_json([each.document() for each in found])
    if not found:
        call.out.say("no managed queue has a quarantine")
        return
    shown = make_table("MESSAGES", "OLDEST", "EXPIRES", "QUARANTINE")
    for each in found:
        oldest = f"over {format_age(each.oldest_at, now)}" if each.oldest_at else "-"
        shown.add_row(f"{each.messages:,}", oldest, _expires(each, now), Text(each.queue.name))
    call.out.show(shown)


def _expires(found: Quarantine, now: datetime) -> Text:
    if found.expires_by is None:
        return Text("not known" if found.messages else "-")
    left = found.expires_by - now
    words = f"within {span(left)}" if left > timedelta() else "any moment"
    return Text(words, "yellow" if left < UNHURRIED else "")


def _quarantines(account: Account, now: datetime) -> Iterator[Quarantine]:
    """In order of their sources' names. Raises FactsUnavailable."""
    with translate_aws_errors("the queues of the account"):
        there = {*list_queue_names(account.clients)}
    for each in managed_queues(account):
        arn = arn_of_quarantine(each.queue_arn)
        if parts_of(arn).name in there and (queue := find_queue(account, arn)):
            yield Quarantine(queue, each.queue_arn, _oldest_at(account, queue, now))


def _oldest_at(account: Account, queue: Facts, now: datetime) -> datetime | None:
    asked = build_query(
        "age", queue_dimension(queue.queue_arn), "ApproximateAgeOfOldestMessage", "Maximum", 60
    )
    series = read_series(account.clients, [asked], now - _READS_BACK, now, of=queue.name)
    ages = series.get("age", ())
    if not ages or not queue.visible:
        return None
    at, age_seconds = ages[-1]
    return at.astimezone(UTC) - timedelta(seconds=age_seconds)


@command(2, Kind.MESSAGES, CASE_STORE | TAKING, quarantine)
def peek(
    call: Invocation,
    queue: Named,
    limit: Annotated[int, typer.Option(help="Show at most so many.", min=1, max=1_000)] = 10,
    bodies: Bodies = False,
) -> None:
    """Why messages are there, since when, and their attributes.

    To look at a message is to receive it, so its receive count rises.

    Examples:
      mendq quarantine peek orders --limit 3
      mendq quarantine peek orders --bodies
    """
    found = quarantine_named(call.account, queue)
    route, messages = Route(found, found), list[Message]()
    look_at(call, route, messages.append, limit)
    documents = [document_of(each, with_body=bodies) for each in messages]
    call.out.print_json(documents)
    for each, document in zip(messages, documents, strict=True):
        _show(call.out, each, document)
    shown, hidden = len(messages), route.hidden(len(messages))
    more = f", and {hidden:,} more hidden in somebody else's hand" if hidden else ""
    there = f"{shown:,} of about {max(shown, found.visible):,} messages in {found.name}"
    call.out.say(f"{there}{more}", "dim")


def _show(out: Output, message: Message, document: Mapping[str, Any]) -> None:
    out.say(message.message_id, "bold")
    if document["why"] is None:
        out.say_indented("why it is here is not known: it bears no mark of Mendq's", "yellow")
    said = {name: found for name, found in document.items() if name not in _SHOWN_APART and found}
    out.say_labelled((name.replace("_", " "), "dim", str(found)) for name, found in said.items())
    for name, each in message.attributes.items():
        if name not in (REDRIVEN, QUARANTINED):
            out.say_indented(
                f"{plain(name, _MOST_VALUE)} = {value(str(each.value), _MOST_VALUE)}", "dim"
            )
    if body := document.get("body"):
        out.say_unwrapped(plain(body, _MOST_BODY), "", indent=2)


@command(2, Kind.MESSAGES, CASE_STORE | RETURNING | {CLAIM}, quarantine)
@choosing
def return_(call: Invocation, queue: Named, choice: Choice) -> Exit:
    """Send messages back to the queue they failed in.

    Examples:
      mendq quarantine return orders --where "attributes.type == 'order'"
      mendq quarantine return orders --all --dry-run
    """
    return send_back(call, choice, partial(route_out_of, call.account, queue))


@command(2, Kind.MESSAGES, CASE_STORE | DROPPING, quarantine)
@choosing
def drop(call: Invocation, queue: Named, choice: Choice, file: File = None) -> Exit:
    """Delete messages, once a file holds them.

    Examples:
      mendq quarantine drop orders --where 'age_seconds > `86400`' --dry-run
      mendq quarantine drop orders --all --file dropped.jsonl
    """
    now, found = datetime.now(UTC), quarantine_named(call.account, queue)
    path = file or Path(f"{found.name}-{now:%Y%m%dT%H%M%SZ}.jsonl")
    return Drop(call, Route(found, found), choice, now, path).carry_out()
