"""Which messages somebody has asked for, and what of them is shown before: never a body."""

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
from mendq.notifications.text import format_count, plain, value
from mendq.redrive.first_in_group import GroupInDlq, UnclearGroup, find_unclear_groups
from mendq.redrive.message_filter import Judgement, MessageFilter, literal
from mendq.redrive.messages import REDRIVEN, Message

MOST_SAMPLES = 3
_WIDEST = 60


class Tally(Struct):
    """Counts of the messages seen so far and of the chosen ones, for the preview and the result.

    Ages are measured up to `now`. `others` counts messages that stay whatever the filter says,
    because they came from another queue or SQS does not say from which; the key is that queue, or
    an empty string. No part of a body is kept.

    With `leave_first` the first message of each FIFO group is never chosen. `groups_in_dlq` then
    holds all groups that were seen, and `matching_groups` those with a message that matches the
    filter.
    """

    route: Route
    chosen_by: MessageFilter
    now: datetime
    leave_first: bool = False
    groups_in_dlq: dict[str, GroupInDlq] = field(default_factory=dict)
    matching_groups: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    chosen: dict[str, None] = field(default_factory=dict)
    judged: int = 0
    others: Counter[str] = field(default_factory=Counter)
    oldest_at: datetime | None = None
    oldest_chosen_at: datetime | None = None
    unsigned: int = 0
    sent_back_before: int = 0
    groups: set[str] = field(default_factory=set)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message) -> None:
        """Count it: a mover gives each message once."""
        self.seen.add(message.message_id)
        self.oldest_at = min(self.oldest_at or message.sent_at, message.sent_at)
        source_arn = self.route.died_in(message)
        is_first = self.leave_first and self._is_first_of_its_group(message, source_arn)
        if self._stays(source_arn):
            self.others[source_arn or ""] += 1
            return
        judged = self.chosen_by.judge(message, self.now)
        self.judged += 1
        self.missing.update(name for name, found in judged.values.items() if found is None)
        self.errors.update([judged.error] if judged.error else [])
        if not judged.matches:
            return
        self.matching_groups.add(message.group_id)
        if not is_first:
            self._note_chosen(message, judged)

    def _is_first_of_its_group(self, message: Message, source_arn: str | None) -> bool:
        """Add the message to its group. Return True for the first: movers keep a group's order."""
        group = self.groups_in_dlq.get(message.group_id)
        is_first = group is None
        if group is None:
            group = GroupInDlq.begun_by(message)
            self.groups_in_dlq[message.group_id] = group
        group.add(message, is_from_source=source_arn == self.route.source.queue_arn)
        return is_first

    @property
    def staying_first(self) -> dict[str, str]:
        """The ids of the first messages that stay, by message group, where the filter takes any."""
        ids = {name: group.first_id for name, group in self.groups_in_dlq.items()}
        return {name: ids[name] for name in sorted(self.matching_groups & ids.keys())}

    @property
    def unclear_groups(self) -> list[UnclearGroup]:
        """The groups whose first message may not be the one that failed."""
        if not self.leave_first:
            return []
        return find_unclear_groups(self.groups_in_dlq, self.matching_groups, self.groups)

    def _stays(self, source_arn: str | None) -> bool:
        """Return True where the filter is not even asked.

        SQS does not say where one died that somebody has sent to the DLQ by hand: it goes to the
        source only where there is no other.
        """
        if source_arn is None:
            return bool(self.route.others)
        return not self.route.leads_nowhere and source_arn != self.route.source.queue_arn

    def _note_chosen(self, message: Message, judged: Judgement) -> None:
        self.chosen[message.message_id] = None
        self.oldest_chosen_at = min(self.oldest_chosen_at or message.sent_at, message.sent_at)
        self.unsigned += self.route.died_in(message) is None
        self.sent_back_before += message.redrive_count > 0
        self.groups.add(message.group_id)
        if self.route.takes_the_place:
            died_in = value(message.died_in.rpartition(":")[2])
            self.values.setdefault("died in", Counter())[died_in] += 1
        for name, found in judged.values.items():
            # What stands in a body is nobody's to be shown unasked.
            if name.startswith(("group_id", "attributes.")) and found is not None:
                shown = value(str(found), _WIDEST) or '""'
                self.values.setdefault(name, Counter())[shown] += 1


_MOST_ROWS = 10
_MOST_UNCLEAR = 3
_MOST_ERRORS = 3


def print_preview(out: Output, tally: Tally, limit: int | None) -> None:
    """What was seen, what of it goes, and what whoever says yes should know.

    A route that leads nowhere else is that of messages that are to be deleted.
    """
    route, chosen, seen = tally.route, len(tally.chosen), len(tally.seen)
    to = "deleted" if route.leads_nowhere else route.source.name
    out.say(f"{route.messages.name} -> {to}", "bold")
    first = "" if limit is None or limit >= chosen else f", the first {limit:,} go"
    out.say(
        f"{format_count(seen, 'message')} seen, {format_count(chosen, 'matches', 'match')}{first}"
    )
    if hidden := route.hidden(seen):
        # They may match as well, and nobody can look at them now.
        seconds = format_count(route.messages.visibility_seconds, "second")
        words = "more are hidden, in somebody else's hand, and can be seen again when that is over"
        out.say(f"{hidden:,} {words}, {seconds} after they were received as a rule", "yellow")
    if tally.oldest_at is not None:
        # In colour where there is no time to lose.
        left = time_left_of_message(tally.oldest_at, route.messages.retention_seconds, tally.now)
        words = f"expires {left}" if left.at_most else "may expire any moment"
        out.say(f"the oldest {words}", "yellow" if left.is_urgent else "dim")
    if chosen:
        _groups(out, tally)
        out.say("for example", "dim")
        for each in islice(tally.chosen, MOST_SAMPLES):
            out.say_unwrapped(each, indent=2)
    notes = (*_of_what_stays(tally), *_of_what_goes(tally))
    out.say_labelled(("-", "dim", each) for each in notes)
    takes_all = tally.chosen_by.tree is None and not tally.leave_first
    every = chosen and takes_all and not route.leads_nowhere
    if every and route.messages.queue_arn == route.dlq_arn:
        out.say("SQS's own redrive moves all of them, unmarked and not to be taken back:", "dim")
        region = parts_of(route.dlq_arn).region
        native = "aws sqs start-message-move-task"
        there = f" --destination-arn {route.source.queue_arn}" if route.takes_the_place else ""
        out.say_command(f"{native} --region {region} --source-arn {route.dlq_arn}{there}")


def _groups(out: Output, tally: Tally) -> None:
    shown = make_table("MESSAGES", "WHICH")
    for written, values in tally.values.items():
        for words, number in values.most_common(_MOST_ROWS):
            shown.add_row(Text(f"{number:>8,}"), Text(plain(f"{written} {words}", 160)))
        if (others := len(values) - _MOST_ROWS) > 0:
            shown.add_row("", f"{written}: {others:,} other values")
    if shown.rows:
        out.show(shown)


def _of_what_stays(tally: Tally) -> Iterable[str]:
    name, judged = tally.route.messages.name, format_count(tally.judged, "message")
    for group_id, first_id in islice(tally.staying_first.items(), _MOST_ROWS):
        yield f"the first message of group {value(group_id, _WIDEST)} stays here: {first_id}"
    if (more := len(tally.staying_first) - _MOST_ROWS) > 0:
        yield f"and the first message of {format_count(more, 'more group')}"
    for way, missing in tally.missing.items():
        yield f"{way} is missing in {missing:,} of {judged}"
    for error, failed in tally.errors.most_common(_MOST_ERRORS):
        yield f"the filter could not be evaluated for {failed:,} of {judged}: {plain(error, 200)}"
    for source_arn, others in tally.others.most_common(_MOST_ROWS):
        messages, stay = format_count(others, "message"), f"{_it(others)} here"
        if source_arn:
            queue = plain(source_arn.rpartition(":")[2], _WIDEST)
            why = "is there" if tally.route.takes_the_place else f"shares {name}"
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
        out.say(f"group {value(unclear.group_id, _WIDEST)}: {unclear.reason}", "yellow")
        its_own = f"group_id == {literal(unclear.group_id)}"
        if unclear.can_be_named:
            out.say_indented("if its first message is the one that failed, send back the others:")
            out.say_command(f"{redrive} --where {quote(its_own)} --leave-first")
        out.say_indented(
            "else put the id of the message that failed, from the consumer's log, for ID:"
        )
        all_but_one = f"{its_own} && message_id != 'ID'"
        out.say_command(f"{redrive} --where {quote(all_but_one)}")
    if (more := len(tally.unclear_groups) - _MOST_UNCLEAR) > 0:
        out.say(f"and {format_count(more, 'more group')}", "yellow")


def _it(messages: int, one: str = "stays", many: str = "stay") -> str:
    return f"it {one}" if messages == 1 else f"they {many}"


def _of_what_goes(tally: Tally) -> Iterable[str]:
    if not tally.chosen:
        return
    route, source, messages = (
        tally.route,
        tally.route.source,
        format_count(len(tally.chosen), "message"),
    )
    groups = format_count(len(tally.groups), "group")
    if route.leads_nowhere:
        yield "what is deleted is in the file alone: nothing brings it back into a queue by itself"
        if route.messages.is_fifo:
            yield f"they are {messages} of {groups}, and more may stand behind a group's first ten"
        return
    if tally.unsigned:
        yield (
            f"somebody sent {tally.unsigned:,} of them to {route.messages.name} by hand: its only "
            f"source is {source.name}, so {_it(tally.unsigned, 'goes', 'go')} there as well"
        )
    if tally.sent_back_before:
        yield (
            f"{tally.sent_back_before:,} of them were sent back before ({REDRIVEN}) and died "
            "again: see first whether their cause is fixed"
        )
    if not source.dlq_arn:
        yield f"{source.name} has no DLQ: what fails there comes again until it expires"
    yield "each gets a new message id and a new time of sending"
    if source.is_fifo:
        yield (
            f"their order mixes with newer messages: {messages} of {groups} go behind the "
            f"{source.visible:,} that wait in {source.name} and whatever is sent meanwhile"
        )
