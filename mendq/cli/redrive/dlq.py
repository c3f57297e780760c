"""`mendq dlq QUEUE`: show which messages are in a DLQ, from a sample that is released at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from shlex import quote
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.dlqs import list_source_arns
from mendq.cli.commands import DLQ_SOURCES_ACTIONS, RECEIVE_MESSAGES_ACTIONS, CommandKind, command
from mendq.cli.invocation import Invocation
from mendq.cli.output import LabelledLine, Output, YesOption, confirm, format_minute, shorten_list
from mendq.cli.queues import find_queue, make_queue_argument, require_queue, resolve_queue_arn
from mendq.cli.redrive.route import Route, require_no_redrive_policy
from mendq.cli.redrive.work import look_at_messages
from mendq.model.facts import Facts
from mendq.model.queue import is_quarantine, parse_queue_arn, parse_redrive_policy
from mendq.model.time_text import format_time
from mendq.notifications.text import format_count, to_terminal_text
from mendq.redrive.message_groups import MessageGroup, SampledMessage, group_sample
from mendq.redrive.messages import Message

_MAXIMUM_LISTED_EXPIRY_TIMES = 3
DlqArgument = Annotated[str, make_queue_argument("The DLQ or its source:")]
SampleSizeOption = Annotated[
    int, typer.Option("--sample", help="The number of messages to look at.", min=1, max=500)
]
BodiesOption = Annotated[
    bool, typer.Option("--bodies", help="Show message bodies. They may contain secrets.")
]


@command(0, CommandKind.MESSAGES, RECEIVE_MESSAGES_ACTIONS | DLQ_SOURCES_ACTIONS)
def dlq(
    call: Invocation,
    queue: DlqArgument,
    sample: SampleSizeOption = 100,
    bodies: BodiesOption = False,
    yes: YesOption = False,
) -> None:
    """Show what is in a DLQ: groups, each with its command.

    Looking at a message is a receive: its receive count rises by one.

    Examples:
      mendq dlq orders
      mendq dlq orders-dlq --sample 500 --bodies
    """
    with call.out.show_waiting("looking at the queues"):
        account = call.account
        dlq = require_queue(account, resolve_queue_arn(account, queue))
        redrive_policy = parse_redrive_policy(dlq.attributes.get("RedrivePolicy", ""))
        if redrive_policy:
            # The operator has named the source.
            dlq = require_queue(account, redrive_policy.dlq_arn)
        require_no_redrive_policy(dlq)
        source_arns = list_source_arns(account.clients, dlq.queue_arn)
        source = find_queue(account, source_arns[0]) if len(source_arns) == 1 else None
    if not source_arns and not is_quarantine(dlq.name):
        hide_messages_question = (
            f"no queue names {dlq.name} as its DLQ: hide some of its messages for a look?"
        )
        confirm(hide_messages_question, yes=yes)
    sampled_messages: list[SampledMessage] = []
    now = datetime.now(UTC)

    def keep_message(message: Message) -> None:
        sampled_messages.append(SampledMessage.create(message, should_group_by_text=bodies))

    look_at_messages(call, Route(dlq, dlq), keep_message, sample)
    sampled_messages.sort(key=lambda sampled: sampled.message.sent_at)
    sample_of_dlq = _Sample(dlq, source_arns, source, sampled_messages, now)
    document = sample_of_dlq.document(with_bodies=bodies)
    call.out.print_json(document)
    _print_sample(call.out, document)


class _Sample(Struct, frozen=True):
    """A sample of the messages of a DLQ, the oldest first."""

    dlq: Facts
    source_arns: Sequence[str]
    # The only queue that names the DLQ. None if there are several or none.
    source: Facts | None
    sampled_messages: Sequence[SampledMessage]
    now: datetime

    @property
    def messages(self) -> list[Message]:
        """The messages of the sample. Long bodies are cut."""
        return [sampled.message for sampled in self.sampled_messages]

    def document(self, *, with_bodies: bool) -> dict[str, Any]:
        """Return the document that `mendq dlq --json` prints.

        Its field `messages` is SQS's approximate number of messages in the DLQ.
        """
        message_sent_times = [message.sent_at for message in self.messages]
        first_receive_times = [
            message.first_received_at for message in self.messages if message.first_received_at
        ]
        retention_period = timedelta(seconds=self.dlq.retention_seconds)
        expiry_by_message_id = {}
        for message in self.messages[:_MAXIMUM_LISTED_EXPIRY_TIMES]:
            expiry_by_message_id[message.message_id] = format_time(
                message.sent_at + retention_period
            )
        groups = group_sample(self.sampled_messages, self.now)
        return {
            "queue_arn": self.dlq.queue_arn,
            "source_arns": list(self.source_arns),
            "messages": self.dlq.visible + self.dlq.in_flight,
            "sampled": len(message_sent_times),
            "oldest_sent_at": format_time(message_sent_times[0]) if message_sent_times else None,
            "newest_sent_at": format_time(message_sent_times[-1]) if message_sent_times else None,
            "first_received_at": format_time(min(first_receive_times))
            if first_receive_times
            else None,
            "expire_first": expiry_by_message_id,
            "hints": list(self._describe_causes_of_failure()),
            "groups": [
                self._make_group_document(group, with_bodies=with_bodies) for group in groups
            ],
        }

    def _make_group_document(self, group: MessageGroup, *, with_bodies: bool) -> dict[str, Any]:
        """Return a group with its number of messages, its command, and an example."""
        first_message = group.messages[0]
        body = to_terminal_text(first_message.body, 400) if with_bodies else group.first_outline
        document = asdict(group)
        del document["first_outline"]
        document["messages"] = len(group.messages)
        document["command"] = self._make_send_back_command(group)
        document["example"] = (first_message.message_id, body)
        return document

    def _make_send_back_command(self, group: MessageGroup) -> str:
        """Return the command that sends back the messages of a group. Empty if there is none.

        For a quarantine, the command is `mendq quarantine return`. Otherwise it names the most
        frequent source of the messages. If SQS does not say that source, the command names the only
        queue that has this DLQ. If the DLQ is not that source's DLQ any more, the command names the
        DLQ and has `--to OTHER`. There is no command if no filter selects the group, or if the
        queue is not a quarantine and the source is not known.
        """
        source_counts = Counter(message.source_arn for message in group.messages)
        ((source_arn, _),) = source_counts.most_common(1)
        if not source_arn and self.source:
            source_arn = self.source.queue_arn
        if is_quarantine(self.dlq.name):
            command = f"quarantine return {self.dlq.name}"
        elif source_arn and source_arn in self.source_arns:
            command = f"redrive {parse_queue_arn(source_arn).name}"
        elif source_arn:
            command = f"redrive {self.dlq.name} --to OTHER"
        else:
            return ""
        if not group.where:
            return ""
        region = parse_queue_arn(self.dlq.queue_arn).region
        return f"mendq {command} --where {quote(group.where)} --region {region}"

    def _describe_causes_of_failure(self) -> Iterator[str]:
        """Yield sentences about why the messages failed, and what the sample cannot show."""
        if self.dlq.is_fifo:
            yield "of a FIFO queue's group ten at most are shown, and none while somebody holds one"
            return
        if not self.source or not self.source.max_receive_count:
            return
        max_receive_count_of_source = self.source.max_receive_count
        visibility_seconds = self.source.visibility_seconds
        shortest_time_until_dlq = timedelta(
            seconds=max_receive_count_of_source * visibility_seconds
        )
        early_death_count = 0
        late_death_count = 0
        for message in self.messages:
            # SQS keeps the receive count when it moves a message to the DLQ. Messages with fewer
            # receives were sent here by hand.
            if message.receive_count <= max_receive_count_of_source:
                continue
            if (message.first_received_at or message.sent_at) > self.now - shortest_time_until_dlq:
                early_death_count += 1
            else:
                late_death_count += 1
        shortest_time_text = f"{max_receive_count_of_source} x {visibility_seconds} s"
        if early_death_count:
            early_deaths_text = format_count(early_death_count, "message")
            cause_hint = (
                f"{early_deaths_text} died sooner than {shortest_time_text} after a receive"
            )
            yield f"{cause_hint}, maxReceiveCount visibility timeouts: they were given back early"
        if late_death_count:
            late_deaths_text = format_count(late_death_count, "message")
            cause_hint = f"{late_deaths_text} may have died for want of time or of errors"
            yield (
                f"{cause_hint}: more than {shortest_time_text} have passed; see `mendq scan "
                "--dry-run`"
            )


def _print_sample(out: Output, document: Mapping[str, Any]) -> None:
    """Print what `_Sample.document` returned: totals, times, hints, and the groups of messages."""
    dlq_name = parse_queue_arn(document["queue_arn"]).name
    source_names = [parse_queue_arn(source_arn).name for source_arn in document["source_arns"]]
    sources_text = shorten_list(source_names) or "no queue names it as its DLQ"
    out.say(f"{dlq_name} <- {sources_text}", "bold")
    message_count_text = f"about {format_count(document['messages'], 'message')}"
    sample_size_text = f"{document['sampled']:,} looked at"
    out.say(f"{message_count_text}, {sample_size_text}: given back at once, a receive more each")
    out.say_labelled(_list_time_lines(document))
    for hint in document["hints"]:
        out.say_indented(hint, "yellow")
    for grouping_way, groups in groupby(document["groups"], itemgetter("by")):
        out.say_heading(f"By {grouping_way}")
        for group in groups:
            _print_group(out, group)


def _list_time_lines(document: Mapping[str, Any]) -> Iterator[LabelledLine]:
    """Yield a labelled line for each known time of the sample, and for its first expiries."""
    time_text_by_label = {}
    for name, time_text in document.items():
        if name.endswith("_at"):
            time_text_by_label[name.removesuffix("_at").replace("_", " ")] = time_text
    for message_id, time_text in document["expire_first"].items():
        time_text_by_label[f"{message_id} expires"] = time_text
    for time_label, time_text in time_text_by_label.items():
        if time_text:
            yield time_label, "dim", format_minute(datetime.fromisoformat(time_text))


def _print_group(out: Output, group: Mapping[str, Any]) -> None:
    """Print a group of messages: their number, and the command that sends them back, if any.

    A group by body or by error also gets an example.
    """
    out.say_labelled([(f"{group['messages']:>6,}", "bold", group["what"])])
    if group["by"] in ("body", "error"):
        example_texts = [
            example_text for example_text in group["example"] if example_text != group["what"]
        ]
        out.say_indented("  ".join(example_texts), "dim", indent=10)
    if group["command"]:
        out.say_command(group["command"])
