"""Count the messages that an operator has chosen, and print a preview. It never shows a body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import islice

from msgspec import Struct, field
from rich.text import Text

from mendq.catalogue.dlq.time_left import compute_time_left
from mendq.cli.output import Output, format_minute, make_table
from mendq.cli.redrive.choice import MessageChoice
from mendq.cli.redrive.route import Route
from mendq.model.queue import is_quarantine, parse_queue_arn
from mendq.model.time_text import format_time
from mendq.notifications.commands import peek_quarantine_command
from mendq.notifications.text import (
    format_count,
    format_value,
    to_terminal_text,
)
from mendq.redrive.first_in_group import GroupInDlq, UnclearGroup, find_unclear_groups
from mendq.redrive.message_filter import FilterResult, MessageFilter, format_literal
from mendq.redrive.messages import REDRIVE_MARK_NAME, Message

MOST_EXAMPLE_IDS = 3
_MAXIMUM_VALUE_CHARACTERS = 60


class MessageTally(Struct):
    """Counts of the messages seen so far and of the chosen ones, for the preview and the result.

    No part of a body is kept.
    """

    route: Route
    message_filter: MessageFilter
    # Ages are measured up to this time.
    now: datetime
    # True if the first message of each FIFO group is never chosen. Then `groups_in_dlq` has all
    # groups that were seen, and `matching_group_ids` those with a message that matches the filter.
    leave_first: bool = False
    groups_in_dlq: dict[str, GroupInDlq] = field(default_factory=dict)
    matching_group_ids: set[str] = field(default_factory=set)
    # True if the look ended before all messages were seen, because more than SQS had counted came.
    is_look_bounded: bool = False
    # Ids of all messages, and of the chosen ones in the order in which they were seen.
    seen_message_ids: set[str] = field(default_factory=set)
    chosen_message_ids: dict[str, None] = field(default_factory=dict)
    # Number of messages to which the filter was applied.
    filtered_message_count: int = 0
    # Number of messages that stay even if the filter matches, because they came from another queue.
    # The key is that queue's ARN, or an empty string if SQS does not say from which queue.
    message_count_by_other_source: Counter[str] = field(default_factory=Counter)
    # Number of messages that stay because they have no seal of Mendq, and of those that were chosen
    # all the same (--unsealed).
    unsealed_staying_count: int = 0
    unsealed_chosen_count: int = 0
    # Number of matching messages that stay because they are older than the source. The second
    # number counts those of which SQS does not say in which queue they failed.
    older_message_count: int = 0
    older_unknown_source_count: int = 0
    # When the oldest message was sent, of all and of the chosen ones.
    oldest_sent_at: datetime | None = None
    oldest_chosen_sent_at: datetime | None = None
    # Number of chosen messages whose source is not known, and of those that were sent back before.
    unknown_source_message_count: int = 0
    earlier_sent_back_message_count: int = 0
    # Ids of the message groups of the chosen messages.
    chosen_group_ids: set[str] = field(default_factory=set)
    # For each name in the filter, how often the chosen messages have each value.
    count_by_value_by_field_name: dict[str, Counter[str]] = field(default_factory=dict)
    # For each name in the filter, how many messages lack it.
    message_count_by_missing_field_name: Counter[str] = field(default_factory=Counter)
    # How often the filter could not be evaluated, by the error.
    message_count_by_filter_error: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message) -> None:
        """Count a message, and choose it if it may go and matches the filter.

        Call this only once for each message.
        """
        self.seen_message_ids.add(message.message_id)
        self.oldest_sent_at = min(self.oldest_sent_at or message.sent_at, message.sent_at)
        source_arn = self.route.find_source_arn(message)
        is_first = self.leave_first and self._add_to_group(message, source_arn)
        is_unsealed = not self.route.source_finder.is_origin_proven(message)
        if is_unsealed and not self.route.takes_unsealed:
            self.unsealed_staying_count += 1
            return
        if self._must_stay_in_queue(source_arn):
            self.message_count_by_other_source[source_arn or ""] += 1
            return
        filter_result = self.message_filter.match_message(message, self.now)
        self.filtered_message_count += 1
        for name, value in filter_result.value_by_path.items():
            if value is None:
                self.message_count_by_missing_field_name[name] += 1
        if filter_result.error:
            self.message_count_by_filter_error[filter_result.error] += 1
        if not filter_result.matches:
            return
        self.matching_group_ids.add(message.group_id)
        if is_first:
            return
        if self.route.is_older_than_source(message):
            self.older_message_count += 1
            self.older_unknown_source_count += source_arn is None
            return
        self._add_chosen_message(message, filter_result)
        self.unsealed_chosen_count += is_unsealed

    def _add_to_group(self, message: Message, source_arn: str | None) -> bool:
        """Add the message to its group, and return True if it is the group's first message.

        The caller adds the messages in the order of the receives, which is the order of a group.
        """
        group = self.groups_in_dlq.get(message.group_id)
        is_first = group is None
        if group is None:
            group = GroupInDlq.begin_with(message)
            self.groups_in_dlq[message.group_id] = group
        group.add_message(message, is_from_source=source_arn == self.route.source.queue_arn)
        return is_first

    @property
    def first_message_id_by_group_id(self) -> dict[str, str]:
        """Ids of the first messages that stay in the DLQ, by message group.

        Only groups with a message that matches the filter are included. Empty without
        `leave_first`.
        """
        group_ids = sorted(self.matching_group_ids & self.groups_in_dlq.keys())
        return {group_id: self.groups_in_dlq[group_id].first_message_id for group_id in group_ids}

    @property
    def unclear_groups(self) -> list[UnclearGroup]:
        """The groups whose first message may not be the one that failed.

        Groups are compared with all others, except if the filter names groups by their id: then the
        operator says which group was blocked. Empty without `leave_first`.
        """
        if not self.leave_first:
            return []
        compared_group_ids: Collection[str] = self.groups_in_dlq
        if "group_id" in self.message_filter.node_by_path_text:
            compared_group_ids = self.matching_group_ids
        return find_unclear_groups(self.groups_in_dlq, compared_group_ids, self.chosen_group_ids)

    def _must_stay_in_queue(self, source_arn: str | None) -> bool:
        """Return True if the message stays even if the filter matches.

        A message that failed in another queue stays. If a person sent a message to the DLQ by hand,
        SQS does not say in which queue it failed. It goes only if the DLQ has no other source. In a
        deletion no message stays.
        """
        if source_arn is None:
            return bool(self.route.other_source_arns)
        return not self.route.is_deletion and source_arn != self.route.source.queue_arn

    def _add_chosen_message(self, message: Message, filter_result: FilterResult) -> None:
        """Count a chosen message, and those values in the filter that may be shown."""
        self.chosen_message_ids[message.message_id] = None
        self.oldest_chosen_sent_at = min(
            self.oldest_chosen_sent_at or message.sent_at, message.sent_at
        )
        if self.route.find_source_arn(message) is None:
            self.unknown_source_message_count += 1
        if message.redrive_count > 0:
            self.earlier_sent_back_message_count += 1
        self.chosen_group_ids.add(message.group_id)
        if self.route.is_replacement:
            self._count_field_value(
                "died in", format_value(message.failed_queue_arn.rpartition(":")[2])
            )
        for name, value in filter_result.value_by_path.items():
            # A body may hold secrets, so its values are not shown.
            if name.startswith(("group_id", "attributes.")) and value is not None:
                self._count_field_value(
                    name, format_value(str(value), _MAXIMUM_VALUE_CHARACTERS) or '""'
                )

    def _count_field_value(self, name: str, value_text: str) -> None:
        self.count_by_value_by_field_name.setdefault(name, Counter())[value_text] += 1


_MAXIMUM_LISTED_ITEMS = 10
_MOST_LISTED_UNCLEAR_GROUPS = 3
_MOST_LISTED_ERRORS = 3


def print_preview(out: Output, tally: MessageTally, choice: MessageChoice) -> None:
    """Print how many messages were seen and chosen, and what to know before the confirmation."""
    _print_counts(out, tally, choice.limit)
    if tally.chosen_message_ids:
        _print_value_counts(out, tally)
        out.say("for example", "dim")
        for message_id in islice(tally.chosen_message_ids, MOST_EXAMPLE_IDS):
            out.say_unwrapped(message_id, indent=2)
    message_notes = (
        *_describe_staying_messages(tally),
        *_describe_chosen_messages(tally),
    )
    out.say_labelled(("-", "dim", note) for note in message_notes)
    _print_older_messages(out, tally, choice)
    if _would_sqs_move_the_same(tally, choice.limit):
        _print_sqs_redrive(out, tally.route)


def _print_counts(out: Output, tally: MessageTally, limit: int | None) -> None:
    """Print the queues, the numbers of messages, and when the oldest message expires."""
    route = tally.route
    chosen_count = len(tally.chosen_message_ids)
    seen_count = len(tally.seen_message_ids)
    destination_text = "deleted" if route.is_deletion else route.source.name
    out.say(f"{route.messages_queue.name} -> {destination_text}", "bold")
    seen_count_text = format_count(seen_count, "message")
    chosen_count_text = format_count(chosen_count, "matches", "match")
    limit_text = "" if limit is None or limit >= chosen_count else f", the first {limit:,} go"
    out.say(f"{seen_count_text} seen, {chosen_count_text}{limit_text}")
    if tally.is_look_bounded:
        out.say(
            f"the look ended there: SQS had counted {route.messages_queue.visible:,} waiting "
            "messages, and more keep coming. The others were not looked at",
            "yellow",
        )
    hidden_message_count = route.count_hidden_messages(seen_count)
    if hidden_message_count:
        # Hidden messages may match as well, and cannot be looked at now.
        visibility_timeout_text = format_count(route.messages_queue.visibility_seconds, "second")
        out.say(
            f"{hidden_message_count:,} more are held by another consumer, as a rule until "
            f"{visibility_timeout_text} after they were received",
            "yellow",
        )
    if tally.oldest_sent_at is not None:
        retention_seconds = route.messages_queue.retention_seconds
        time_left = compute_time_left(tally.oldest_sent_at, retention_seconds, tally.now)
        expiry_text = f"expires {time_left}" if time_left.upper_bound else "may expire any moment"
        out.say(f"the oldest {expiry_text}", "yellow" if time_left.is_urgent else "dim")


def _would_sqs_move_the_same(tally: MessageTally, limit: int | None) -> bool:
    """Return True if SQS's own redrive would move the chosen messages, and no others.

    SQS's redrive moves every message. So return False if a message that was seen stays, if the look
    did not see all messages, or if hidden messages could belong to another source. Also return
    False for a quarantine, because SQS does not check seals.
    """
    route = tally.route
    chosen_count = len(tally.chosen_message_ids)
    seen_count = len(tally.seen_message_ids)
    if tally.is_look_bounded:
        return False
    if is_quarantine(route.messages_queue.name):
        return False
    if route.is_deletion or route.messages_queue.queue_arn != route.dlq_arn:
        return False
    if tally.message_filter.tree is not None or tally.leave_first:
        return False
    if limit is not None and limit < chosen_count:
        return False
    is_everything_chosen = 0 < chosen_count == seen_count
    return is_everything_chosen and route.count_hidden_messages(seen_count) == 0


def _print_sqs_redrive(out: Output, route: Route) -> None:
    """Print the AWS command that moves all messages of the DLQ."""
    out.say("SQS's own redrive moves all of them, unmarked and not to be taken back:", "dim")
    region = parse_queue_arn(route.dlq_arn).region
    sqs_command = "aws sqs start-message-move-task"
    sqs_command += f" --region {region} --source-arn {route.dlq_arn}"
    if route.is_replacement:
        sqs_command += f" --destination-arn {route.source.queue_arn}"
    out.say_command(sqs_command)


def _print_value_counts(out: Output, tally: MessageTally) -> None:
    """Print how many chosen messages have each value: the most frequent ones of each name."""
    table = make_table("MESSAGES", "WHICH")
    for name, count_by_value in tally.count_by_value_by_field_name.items():
        for value_text, message_count in count_by_value.most_common(_MAXIMUM_LISTED_ITEMS):
            table.add_row(
                Text(f"{message_count:>8,}"), Text(to_terminal_text(f"{name} {value_text}", 160))
            )
        unprinted_value_count = len(count_by_value) - _MAXIMUM_LISTED_ITEMS
        if unprinted_value_count > 0:
            table.add_row("", f"{name}: {unprinted_value_count:,} other values")
    if table.rows:
        out.show(table)


def _describe_staying_messages(tally: MessageTally) -> Iterable[str]:
    """Yield sentences about the messages that stay in the queue, and why."""
    queue_name = tally.route.messages_queue.name
    filtered_count_text = format_count(tally.filtered_message_count, "message")
    for group_id, first_message_id in islice(
        tally.first_message_id_by_group_id.items(), _MAXIMUM_LISTED_ITEMS
    ):
        group_text = format_value(group_id, _MAXIMUM_VALUE_CHARACTERS)
        yield f"the first message of group {group_text} stays here: {first_message_id}"
    unprinted_group_count = len(tally.first_message_id_by_group_id) - _MAXIMUM_LISTED_ITEMS
    if unprinted_group_count > 0:
        yield f"and the first message of {format_count(unprinted_group_count, 'more group')}"
    for field_name, missing_count in tally.message_count_by_missing_field_name.items():
        yield f"{field_name} is missing in {missing_count:,} of {filtered_count_text}"
    for error, unevaluated_message_count in tally.message_count_by_filter_error.most_common(
        _MOST_LISTED_ERRORS
    ):
        unevaluated_count_text = f"{unevaluated_message_count:,} of {filtered_count_text}"
        yield (
            f"the filter could not be evaluated for {unevaluated_count_text}: "
            f"{to_terminal_text(error, 200)}"
        )
    yield from _describe_unsealed_messages(tally)
    for source_arn, count in tally.message_count_by_other_source.most_common(_MAXIMUM_LISTED_ITEMS):
        message_text = format_count(count, "message")
        staying_clause = f"{_join_pronoun_and_verb(count, 'stays', 'stay')} here"
        if source_arn:
            source_name = to_terminal_text(source_arn.rpartition(":")[2], _MAXIMUM_VALUE_CHARACTERS)
            reason = "is there" if tally.route.is_replacement else f"shares {queue_name}"
            yield f"{message_text} died in {source_name}, which {reason}: {staying_clause}"
        else:
            yield (
                f"somebody sent {message_text} to {queue_name} by hand: "
                f"SQS does not say for which source, so {staying_clause}. "
                "Whoever knows receives them and sends them there"
            )


def _describe_unsealed_messages(tally: MessageTally) -> Iterable[str]:
    """Yield a sentence about the messages of a quarantine that stay without a seal of Mendq."""
    count = tally.unsealed_staying_count
    if count:
        quarantine_name = tally.route.messages_queue.name
        peek_command = peek_quarantine_command(tally.route.messages_queue.queue_arn)
        message_text = format_count(count, "message has", "messages have")
        yield (
            f"{message_text} no valid seal of Mendq: anyone who may send to {quarantine_name} can "
            f"have put {'it' if count == 1 else 'them'} there, or a version of Mendq before the "
            f"seal did. {'It stays' if count == 1 else 'They stay'} here. See which "
            f"with `{peek_command}`; --unsealed sends those too"
        )


def _print_older_messages(out: Output, tally: MessageTally, choice: MessageChoice) -> None:
    """Print why messages stay that are older than the source, and how to send them anyway.

    The printed command has the operator's filter, limit and rate. So it sends only messages that
    the operator chose.
    """
    route = tally.route
    source = route.source
    if source.created_at is None:
        return
    since_text = f"older than {source.name}, which was created {format_minute(source.created_at)}"
    unknown_source_count = tally.older_unknown_source_count
    count = tally.older_message_count - unknown_source_count
    if unknown_source_count:
        message_text = format_count(
            unknown_source_count, "matching message is", "matching messages are"
        )
        staying_clause = _join_pronoun_and_verb(unknown_source_count, "stays", "stay")
        note = (
            f"{message_text} {since_text}, and somebody sent "
            f"{'it' if unknown_source_count == 1 else 'them'} to {route.messages_queue.name} by "
            f"hand: SQS does not say for which queue, so {staying_clause} here. "
            "Whoever knows receives them and sends them there"
        )
        out.say_labelled([("-", "dim", note)])
    if not count:
        return
    message_text = format_count(count, "matching message is", "matching messages are")
    note = (
        f"{message_text} {since_text}, and died in an earlier queue of that name, maybe another "
        f"person's: {_join_pronoun_and_verb(count, 'stays', 'stay')} here. Only if "
        f"{_join_pronoun_and_verb(count, 'belongs', 'belong')} to {source.name}, send "
        f"{'it' if count == 1 else 'them'} with:"
    )
    out.say_labelled([("-", "dim", note)])
    options = choice.format_options(f"sent_at < '{format_time(source.created_at)}'")
    if route.takes_unsealed:
        options += " --unsealed"
    if choice.leave_first:
        options += " --leave-first"
    options += f" --region {parse_queue_arn(source.queue_arn).region}"
    dlq_name = route.messages_queue.name
    out.say_command(
        f"mendq redrive {dlq_name} --to {source.name} --from {source.name}" + f" {options}"
    )


def print_unclear_groups(out: Output, tally: MessageTally, choice: MessageChoice) -> None:
    """Print why the first message of a group may not be the one that failed, and what to do.

    At most _MOST_LISTED_UNCLEAR_GROUPS groups are printed. Each printed command extends the given
    command, and keeps its filter and limit.
    """
    redrive_command = (
        f"{choice.command} --region {parse_queue_arn(tally.route.messages_queue.queue_arn).region}"
    )
    for unclear_group in islice(tally.unclear_groups, _MOST_LISTED_UNCLEAR_GROUPS):
        group_text = format_value(unclear_group.group_id, _MAXIMUM_VALUE_CHARACTERS)
        out.say(f"group {group_text}: {unclear_group.reason}", "yellow")
        group_filter = f"group_id == {format_literal(unclear_group.group_id)}"
        if unclear_group.can_person_confirm:
            out.say_indented("if its first message is the one that failed, send back the others:")
            out.say_command(
                f"{redrive_command} {choice.format_options(group_filter)} --leave-first"
            )
        out.say_indented(
            "else put the id of the message that failed, from the consumer's log, for ID:"
        )
        filter_without_failed_message = f"{group_filter} && message_id != 'ID'"
        options = choice.format_options(filter_without_failed_message)
        out.say_command(f"{redrive_command} {options}")
    unprinted_group_count = len(tally.unclear_groups) - _MOST_LISTED_UNCLEAR_GROUPS
    if unprinted_group_count > 0:
        out.say(f"and {format_count(unprinted_group_count, 'more group')}", "yellow")


def _join_pronoun_and_verb(message_count: int, singular_verb: str, plural_verb: str) -> str:
    """Return pronoun and verb for a number of messages, such as `it stays` or `they stay`."""
    return f"it {singular_verb}" if message_count == 1 else f"they {plural_verb}"


def _describe_chosen_messages(tally: MessageTally) -> Iterable[str]:
    """Yield what the operator should know about the chosen messages before the confirmation."""
    if not tally.chosen_message_ids:
        return
    route = tally.route
    source = route.source
    message_text = format_count(len(tally.chosen_message_ids), "message")
    group_text = format_count(len(tally.chosen_group_ids), "group")
    if route.is_deletion:
        yield "what is deleted is in the file alone: nothing brings it back into a queue by itself"
        if route.messages_queue.is_fifo:
            counts_text = f"{message_text} of {group_text}"
            yield f"they are {counts_text}, and more may stand behind a group's first ten"
        return
    if tally.unknown_source_message_count:
        pronoun_and_verb = _join_pronoun_and_verb(tally.unknown_source_message_count, "goes", "go")
        yield (
            f"somebody sent {tally.unknown_source_message_count:,} of them to "
            f"{route.messages_queue.name} by hand: its only source is {source.name}, "
            f"so {pronoun_and_verb} there as well"
        )
    if tally.unsealed_chosen_count:
        yield (
            f"{tally.unsealed_chosen_count:,} of them have no valid seal of Mendq: anyone who may "
            f"send to {route.messages_queue.name} can have written them"
        )
    if tally.earlier_sent_back_message_count:
        yield (
            f"{tally.earlier_sent_back_message_count:,} of them were sent back before "
            f"({REDRIVE_MARK_NAME}) and died again: see first whether their cause is fixed"
        )
    if not source.dlq_arn:
        yield f"{source.name} has no DLQ: what fails there comes again until it expires"
    yield "each gets a new message id and a new time of sending"
    if source.is_fifo:
        yield (
            f"their order mixes with newer messages: {message_text} of {group_text} go behind the "
            f"{source.visible:,} that wait in {source.name} and whatever is sent meanwhile"
        )
