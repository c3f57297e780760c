"""Count the messages that an operator has chosen, and print a preview. It never shows a body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from shlex import quote

from msgspec import Struct, field
from rich.text import Text

from mendq.catalogue.dlq.time_left import time_left_of_message
from mendq.cli.output import Output, make_table
from mendq.cli.redrive.route import Route
from mendq.model.queue import parts_of
from mendq.notifications.text import format_count, format_value, plain
from mendq.redrive.first_in_group import GroupInDlq, UnclearGroup, find_unclear_groups
from mendq.redrive.message_filter import FilterResult, MessageFilter, spell_literal
from mendq.redrive.messages import REDRIVE_MARK_NAME, Message

MOST_SAMPLES = 3
_WIDEST = 60


class Tally(Struct):
    """Counts of the messages seen so far and of the chosen ones, for the preview and the result.

    No part of a body is kept.
    """

    route: Route
    chosen_by: MessageFilter
    # Ages are measured up to this time.
    now: datetime
    # True if the first message of each FIFO group is never chosen. Then `groups_in_dlq` has all
    # groups that were seen, and `matching_groups` those with a message that matches the filter.
    leave_first: bool = False
    groups_in_dlq: dict[str, GroupInDlq] = field(default_factory=dict)
    matching_groups: set[str] = field(default_factory=set)
    # Ids of all messages, and of the chosen ones in the order in which they were seen.
    seen: set[str] = field(default_factory=set)
    chosen: dict[str, None] = field(default_factory=dict)
    # Messages to which the filter was applied.
    judged: int = 0
    # Messages that stay whatever the filter says, because they came from another queue. The key is
    # that queue's ARN, or an empty string if SQS does not say from which queue.
    others: Counter[str] = field(default_factory=Counter)
    # When the oldest message was sent, of all and of the chosen ones.
    oldest_at: datetime | None = None
    oldest_chosen_at: datetime | None = None
    # Chosen messages whose source is not known, and chosen messages that were sent back before.
    unsigned: int = 0
    sent_back_before: int = 0
    # Ids of the message groups of the chosen messages.
    groups: set[str] = field(default_factory=set)
    # For each name in the filter, how often the chosen messages have each value.
    values: dict[str, Counter[str]] = field(default_factory=dict)
    # For each name in the filter, how many messages lack it.
    missing: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message) -> None:
        """Count a message, and choose it if it may go and matches the filter.

        Call this only once for each message.
        """
        self.seen.add(message.message_id)
        self.oldest_at = min(self.oldest_at or message.sent_at, message.sent_at)
        source_arn = self.route.died_in(message)
        is_first = self.leave_first and self._is_first_of_its_group(message, source_arn)
        if self._must_stay(source_arn):
            self.others[source_arn or ""] += 1
            return
        judgement = self.chosen_by.match_message(message, self.now)
        self.judged += 1
        for name, found_value in judgement.values.items():
            if found_value is None:
                self.missing[name] += 1
        if judgement.error:
            self.errors[judgement.error] += 1
        if not judgement.matches:
            return
        self.matching_groups.add(message.group_id)
        if not is_first:
            self._add_chosen(message, judgement)

    def _is_first_of_its_group(self, message: Message, source_arn: str | None) -> bool:
        """Add the message to its group. Return True for the first: movers keep a group's order."""
        group = self.groups_in_dlq.get(message.group_id)
        is_first = group is None
        if group is None:
            group = GroupInDlq.begin_with(message)
            self.groups_in_dlq[message.group_id] = group
        group.add_message(message, is_from_source=source_arn == self.route.source.queue_arn)
        return is_first

    @property
    def staying_first(self) -> dict[str, str]:
        """Ids of the first messages that stay in the DLQ, by message group.

        Only groups with a message that matches the filter are included.
        """
        group_ids = sorted(self.matching_groups & self.groups_in_dlq.keys())
        return {group_id: self.groups_in_dlq[group_id].first_message_id for group_id in group_ids}

    @property
    def unclear_groups(self) -> list[UnclearGroup]:
        """The groups whose first message may not be the one that failed."""
        if not self.leave_first:
            return []
        return find_unclear_groups(self.groups_in_dlq, self.matching_groups, self.groups)

    def _must_stay(self, source_arn: str | None) -> bool:
        """Return True if the message stays whatever the filter says.

        If a person sent a message to the DLQ by hand, SQS does not say in which queue it failed.
        Such a message goes only if the DLQ has no other source.
        """
        if source_arn is None:
            return bool(self.route.others)
        return not self.route.is_deletion and source_arn != self.route.source.queue_arn

    def _add_chosen(self, message: Message, judgement: FilterResult) -> None:
        """Count a chosen message and the values that the filter has read from it."""
        self.chosen[message.message_id] = None
        self.oldest_chosen_at = min(self.oldest_chosen_at or message.sent_at, message.sent_at)
        if self.route.died_in(message) is None:
            self.unsigned += 1
        if message.redrive_count > 0:
            self.sent_back_before += 1
        self.groups.add(message.group_id)
        if self.route.is_replacement:
            self._count_value("died in", format_value(message.failed_queue_arn.rpartition(":")[2]))
        for name, found_value in judgement.values.items():
            # A body may hold secrets, so its values are not shown.
            if name.startswith(("group_id", "attributes.")) and found_value is not None:
                self._count_value(name, format_value(str(found_value), _WIDEST) or '""')

    def _count_value(self, name: str, text: str) -> None:
        self.values.setdefault(name, Counter())[text] += 1


_MOST_ROWS = 10
_MOST_UNCLEAR = 3
_MOST_ERRORS = 3


def print_preview(out: Output, tally: Tally, limit: int | None) -> None:
    """Print how many messages were seen and chosen, and what to know before saying yes."""
    route = tally.route
    chosen = len(tally.chosen)
    seen = len(tally.seen)
    destination = "deleted" if route.is_deletion else route.source.name
    out.say(f"{route.messages.name} -> {destination}", "bold")
    first = "" if limit is None or limit >= chosen else f", the first {limit:,} go"
    out.say(
        f"{format_count(seen, 'message')} seen, {format_count(chosen, 'matches', 'match')}{first}"
    )
    hidden = route.count_hidden(seen)
    if hidden:
        # Hidden messages may match as well, and cannot be looked at now.
        seconds = format_count(route.messages.visibility_seconds, "second")
        words = "more are hidden, in somebody else's hand, and can be seen again when that is over"
        out.say(f"{hidden:,} {words}, {seconds} after they were received as a rule", "yellow")
    if tally.oldest_at is not None:
        left = time_left_of_message(tally.oldest_at, route.messages.retention_seconds, tally.now)
        words = f"expires {left}" if left.at_most else "may expire any moment"
        out.say(f"the oldest {words}", "yellow" if left.is_urgent else "dim")
    if chosen:
        _print_values(out, tally)
        out.say("for example", "dim")
        for message_id in islice(tally.chosen, MOST_SAMPLES):
            out.say_unwrapped(message_id, indent=2)
    notes = (*_describe_staying(tally), *_describe_going(tally))
    out.say_labelled(("-", "dim", note) for note in notes)
    takes_all = tally.chosen_by.tree is None and not tally.leave_first
    is_from_dlq = route.messages.queue_arn == route.dlq_arn
    if chosen and takes_all and not route.is_deletion and is_from_dlq:
        out.say("SQS's own redrive moves all of them, unmarked and not to be taken back:", "dim")
        region = parts_of(route.dlq_arn).region
        command = "aws sqs start-message-move-task"
        command += f" --region {region} --source-arn {route.dlq_arn}"
        if route.is_replacement:
            command += f" --destination-arn {route.source.queue_arn}"
        out.say_command(command)


def _print_values(out: Output, tally: Tally) -> None:
    """Print how many chosen messages have each of the values that the filter reads."""
    rows = make_table("MESSAGES", "WHICH")
    for name, values in tally.values.items():
        for text, number in values.most_common(_MOST_ROWS):
            rows.add_row(Text(f"{number:>8,}"), Text(plain(f"{name} {text}", 160)))
        others = len(values) - _MOST_ROWS
        if others > 0:
            rows.add_row("", f"{name}: {others:,} other values")
    if rows.rows:
        out.show(rows)


def _describe_staying(tally: Tally) -> Iterable[str]:
    """Yield sentences about the messages that stay in the queue, and why."""
    name = tally.route.messages.name
    judged = format_count(tally.judged, "message")
    for group_id, first_id in islice(tally.staying_first.items(), _MOST_ROWS):
        yield f"the first message of group {format_value(group_id, _WIDEST)} stays here: {first_id}"
    more = len(tally.staying_first) - _MOST_ROWS
    if more > 0:
        yield f"and the first message of {format_count(more, 'more group')}"
    for field_name, missing in tally.missing.items():
        yield f"{field_name} is missing in {missing:,} of {judged}"
    for error, failed in tally.errors.most_common(_MOST_ERRORS):
        yield f"the filter could not be evaluated for {failed:,} of {judged}: {plain(error, 200)}"
    for source_arn, count in tally.others.most_common(_MOST_ROWS):
        messages = format_count(count, "message")
        stay = f"{_they(count, 'stays', 'stay')} here"
        if source_arn:
            queue = plain(source_arn.rpartition(":")[2], _WIDEST)
            why = "is there" if tally.route.is_replacement else f"shares {name}"
            yield f"{messages} died in {queue}, which {why}: {stay}"
        else:
            yield (
                f"somebody sent {messages} to {name} by hand: SQS does not say for which source, "
                f"so {stay}. Whoever knows receives them and sends them there"
            )


def print_unclear_groups(out: Output, tally: Tally, command: str) -> None:
    """Print for each group why its first message may not be the one that failed, and what to do.

    Every printed command begins with `command`.
    """
    redrive = f"{command} --region {parts_of(tally.route.messages.queue_arn).region}"
    for unclear in islice(tally.unclear_groups, _MOST_UNCLEAR):
        out.say(f"group {format_value(unclear.group_id, _WIDEST)}: {unclear.reason}", "yellow")
        own_group = f"group_id == {spell_literal(unclear.group_id)}"
        if unclear.can_person_confirm:
            out.say_indented("if its first message is the one that failed, send back the others:")
            out.say_command(f"{redrive} --where {quote(own_group)} --leave-first")
        out.say_indented(
            "else put the id of the message that failed, from the consumer's log, for ID:"
        )
        all_but_one = f"{own_group} && message_id != 'ID'"
        out.say_command(f"{redrive} --where {quote(all_but_one)}")
    more = len(tally.unclear_groups) - _MOST_UNCLEAR
    if more > 0:
        out.say(f"and {format_count(more, 'more group')}", "yellow")


def _they(messages: int, one: str, many: str) -> str:
    """Return the pronoun and the verb for a number of messages: `it stays`, `they stay`."""
    return f"it {one}" if messages == 1 else f"they {many}"


def _describe_going(tally: Tally) -> Iterable[str]:
    """Yield sentences about the chosen messages that an operator should know before saying yes."""
    if not tally.chosen:
        return
    route = tally.route
    source = route.source
    messages = format_count(len(tally.chosen), "message")
    groups = format_count(len(tally.groups), "group")
    if route.is_deletion:
        yield "what is deleted is in the file alone: nothing brings it back into a queue by itself"
        if route.messages.is_fifo:
            yield f"they are {messages} of {groups}, and more may stand behind a group's first ten"
        return
    if tally.unsigned:
        they_go = _they(tally.unsigned, "goes", "go")
        yield (
            f"somebody sent {tally.unsigned:,} of them to {route.messages.name} by hand: its only "
            f"source is {source.name}, so {they_go} there as well"
        )
    if tally.sent_back_before:
        yield (
            f"{tally.sent_back_before:,} of them were sent back before ({REDRIVE_MARK_NAME}) and "
            "died again: see first whether their cause is fixed"
        )
    if not source.dlq_arn:
        yield f"{source.name} has no DLQ: what fails there comes again until it expires"
    yield "each gets a new message id and a new time of sending"
    if source.is_fifo:
        yield (
            f"their order mixes with newer messages: {messages} of {groups} go behind the "
            f"{source.visible:,} that wait in {source.name} and whatever is sent meanwhile"
        )
