"""`mendq dlq QUEUE`: what lies in a DLQ, by a sample that is given back at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from shlex import quote
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.dlqs import list_source_arns
from mendq.cli.commands import SOURCES, TAKING, Kind, command
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, Yes, confirm, format_minute, shorten_list
from mendq.cli.queues import find_queue, queue_argument, require_queue, resolve_queue_arn
from mendq.cli.redrive.route import Route, require_last
from mendq.cli.redrive.work import look_at
from mendq.model.evidence import to_text
from mendq.model.facts import Facts
from mendq.model.queue import is_quarantine, parse_redrive_policy, parts_of
from mendq.notifications.text import format_count, plain
from mendq.redrive.message_groups import MessageGroup, group_messages, outline
from mendq.redrive.messages import Message

_MOST_EXPIRING = 3
Named = Annotated[str, queue_argument("The DLQ or its source:")]
Size = Annotated[int, typer.Option("--sample", help="Look at so many.", min=1, max=500)]
Bodies = Annotated[bool, typer.Option("--bodies", help="Show bodies: they may hold secrets.")]


@command(0, Kind.MESSAGES, TAKING | SOURCES)
def dlq(
    call: Invocation, queue: Named, sample: Size = 100, bodies: Bodies = False, yes: Yes = False
) -> None:
    """See what is in a DLQ: groups, each with its command.

    Looking at a message is a receive: its receive count rises by one.

    Examples:
      mendq dlq orders
      mendq dlq orders-dlq --sample 500 --bodies
    """
    with call.out.show_waiting("looking at the queues"):
        account = call.account
        messages = require_queue(account, resolve_queue_arn(account, queue))
        if own := parse_redrive_policy(messages.attributes.get("RedrivePolicy", "")):
            messages = require_queue(account, own.dlq_arn)
        require_last(messages)
        arns = list_source_arns(account.clients, messages.queue_arn)
        source = find_queue(account, arns[0]) if len(arns) == 1 else None
    if not arns and not is_quarantine(messages.name):
        line = f"no queue names {messages.name} as its DLQ: hide some of its messages for a look?"
        confirm(line, yes=yes)
    seen, now = list[Message](), datetime.now(UTC)
    look_at(call, Route(messages, messages), seen.append, sample)
    seen.sort(key=lambda each: each.sent_at)
    found = _Sample(messages, arns, source, seen, now).found(bodies=bodies)
    call.out.print_json(found)
    _show(call.out, found)


class _Sample(Struct, frozen=True):
    """Messages of a DLQ, the oldest first; `source` is the only queue that names it."""

    dlq: Facts
    source_arns: Sequence[str]
    source: Facts | None
    messages: Sequence[Message]
    now: datetime

    def found(self, *, bodies: bool) -> dict[str, Any]:
        """What scripts are told; `messages` is SQS's own approximate count."""
        sent = [each.sent_at for each in self.messages]
        firsts = [each.first_received_at for each in self.messages if each.first_received_at]
        retained = timedelta(seconds=self.dlq.retention_seconds)
        expiring = self.messages[:_MOST_EXPIRING]
        groups = group_messages(self.messages, self.now, bodies=bodies)
        return {
            "queue_arn": self.dlq.queue_arn,
            "source_arns": list(self.source_arns),
            "messages": self.dlq.visible + self.dlq.in_flight,
            "sampled": len(sent),
            "oldest_sent_at": to_text(sent[0]) if sent else None,
            "newest_sent_at": to_text(sent[-1]) if sent else None,
            "first_received_at": to_text(min(firsts)) if firsts else None,
            "expire_first": {e.message_id: to_text(e.sent_at + retained) for e in expiring},
            "hints": list(self._hints()),
            "groups": [self._group(each, bodies=bodies) for each in groups],
        }

    def _group(self, group: MessageGroup, *, bodies: bool) -> dict[str, Any]:
        (first, *_), many = group.messages, len(group.messages)
        example = first.message_id, plain(first.body, 400) if bodies else outline(first.body)
        more = {"messages": many, "command": self._command(group), "example": example}
        return asdict(group) | more

    def _command(self, group: MessageGroup) -> str:
        """What sends most of them back; empty where nobody knows how, or where to."""
        ((died, _),) = Counter(each.source_arn for each in group.messages).most_common(1)
        died = died or (self.source.queue_arn if self.source else "")
        words = f"redrive {self.dlq.name} --to OTHER" if died else ""
        if died in self.source_arns:
            words = f"redrive {parts_of(died).name}"
        if is_quarantine(self.dlq.name):
            words = f"quarantine return {self.dlq.name}"
        where = f"--where {quote(group.where)} --region {parts_of(self.dlq.queue_arn).region}"
        return f"mendq {words} {where}" if words and group.where else ""

    def _hints(self) -> Iterator[str]:
        """What the messages show of why they died, and what they cannot."""
        if self.dlq.is_fifo:
            yield "of a FIFO queue's group ten at most are shown, and none while somebody holds one"
        elif self.source and (receives := self.source.max_receive_count):
            # SQS counts on where a message dies: those alone have their receives at the source.
            died = [each for each in self.messages if each.receive_count > receives]
            times = f"{receives} x {self.source.visibility_seconds} s"
            since = self.now - timedelta(seconds=receives * self.source.visibility_seconds)
            if early := sum((each.first_received_at or each.sent_at) > since for each in died):
                said = f"{format_count(early, 'message')} died sooner than {times} after a receive"
                yield f"{said}, maxReceiveCount visibility timeouts: they were given back early"
            if late := len(died) - early:
                said = (
                    f"{format_count(late, 'message')} may have died for want of time or of errors"
                )
                yield f"{said}: more than {times} have passed; see `mendq scan --dry-run`"


def _show(out: Output, found: dict[str, Any]) -> None:
    dlq, *sources = (parts_of(each).name for each in (found["queue_arn"], *found["source_arns"]))
    out.say(f"{dlq} <- {shorten_list(sources) or 'no queue names it as its DLQ'}", "bold")
    about, said = (
        format_count(found["messages"], "message"),
        "given back at once, a receive more each",
    )
    out.say(f"about {about}, {found['sampled']:,} looked at: {said}")
    times = {name[:-3].replace("_", " "): at for name, at in found.items() if name.endswith("_at")}
    times |= {f"{each} expires": at for each, at in found["expire_first"].items()}
    known = {words: datetime.fromisoformat(at) for words, at in times.items() if at}
    out.say_labelled((words, "dim", format_minute(at)) for words, at in known.items())
    for hint in found["hints"]:
        out.say_indented(hint, "yellow")
    for by, groups in groupby(found["groups"], itemgetter("by")):
        out.say_heading(f"By {by}")
        for each in groups:
            out.say_labelled([(f"{each['messages']:>6,}", "bold", each["what"])])
            if by in ("body", "error"):
                shown = (one for one in each["example"] if one != each["what"])
                out.say_indented("  ".join(shown), "dim", indent=10)
            if each["command"]:
                out.say_command(each["command"])
