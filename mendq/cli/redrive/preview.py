"""Which messages somebody has asked for, and what of them is shown before: never a body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from itertools import islice
from operator import attrgetter

from rich.text import Text

from mendq.catalogue._time_left import left_of
from mendq.cli.output import Output, table
from mendq.cli.redrive.route import Route
from mendq.notifications.text import counted, plain, value
from mendq.redrive.message_filter import Judgement, MessageFilter
from mendq.redrive.messages import REDRIVE_COUNT, Message

MOST_SAMPLES = 3
_WIDEST = 60


class Standing(Enum):
    """What a message is to the question."""

    CHOSEN = auto()
    NOT_MATCHING = auto()
    OF_ANOTHER_SOURCE = auto()
    OF_NO_SOURCE = auto()


@dataclass(frozen=True)
class Selection:
    """`now` is the moment that ages are counted to; `died_in` says where a message failed.

    SQS does not say that of one that somebody has sent to the DLQ by hand: it goes to
    the source only where there is no other (`is_sole_source`).
    """

    chosen_by: MessageFilter
    source_arn: str
    is_sole_source: bool
    now: datetime
    died_in: Callable[[Message], str | None] = attrgetter("source_arn")

    def excluded(self, message: Message) -> Standing | None:
        """Why it stays whatever the filter says; None where the filter decides."""
        source_arn = self.died_in(message)
        if source_arn is None and not self.is_sole_source:
            return Standing.OF_NO_SOURCE
        return Standing.OF_ANOTHER_SOURCE if source_arn not in (None, self.source_arn) else None


@dataclass
class Tally:
    """What was seen so far. No body is kept, and of no body a part."""

    selection: Selection
    seen: set[str] = field(default_factory=set)
    chosen: dict[str, None] = field(default_factory=dict)
    standings: Counter[Standing] = field(default_factory=Counter)
    oldest_at: datetime | None = None
    oldest_chosen_at: datetime | None = None
    unsigned: int = 0
    sent_back_before: int = 0
    groups: set[str] = field(default_factory=set)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message) -> Standing:
        """Count it; once, however often it is seen."""
        judged = self.selection.chosen_by.judge(message, self.selection.now)
        matching = Standing.CHOSEN if judged.matches else Standing.NOT_MATCHING
        standing = self.selection.excluded(message) or matching
        if message.message_id in self.seen:
            return standing
        self.seen.add(message.message_id)
        self.oldest_at = min(self.oldest_at or message.sent_at, message.sent_at)
        self.standings[standing] += 1
        if standing is matching:
            self.missing.update(name for name, found in judged.values.items() if found is None)
            self.errors.update([judged.error] if judged.error else [])
        if standing is Standing.CHOSEN:
            self._note_chosen(message, judged)
        return standing

    def _note_chosen(self, message: Message, judged: Judgement) -> None:
        self.chosen[message.message_id] = None
        self.oldest_chosen_at = min(self.oldest_chosen_at or message.sent_at, message.sent_at)
        self.unsigned += self.selection.died_in(message) is None
        self.sent_back_before += message.redrive_count > 0
        self.groups.add(message.group_id)
        for name, found in judged.values.items():
            # What stands in a body is nobody's to be shown unasked.
            if name.startswith(("group_id", "attributes.")) and found is not None:
                self.values.setdefault(name, Counter())[_shown(found)] += 1


def _shown(found: object) -> str:
    if isinstance(found, bytes):
        return f"({len(found)} bytes)"
    return value(str(found), _WIDEST) or '""'


_MOST_ROWS = 10
_MOST_ERRORS = 3


def print_preview(out: Output, route: Route, tally: Tally, limit: int | None) -> None:
    """What was seen, what of it goes, and what whoever says yes should know.

    A route that leads nowhere else is that of messages that are to be deleted.
    """
    chosen, seen = len(tally.chosen), len(tally.seen)
    to = "deleted" if route.leads_nowhere else route.source.name
    out.say(f"{route.messages.name} -> {to}", "bold")
    first = "" if limit is None or limit >= chosen else f", the first {limit:,} go"
    out.say(f"{counted(seen, 'message')} seen, {counted(chosen, 'matches', 'match')}{first}")
    if hidden := route.messages.unseen(seen):
        # They may match as well, and nobody can look at them now.
        seconds = counted(int(route.messages.attributes["VisibilityTimeout"]), "second")
        words = "more are hidden, in somebody else's hand, and can be seen again when that is over"
        out.say(f"{hidden:,} {words}, {seconds} after they were received as a rule", "yellow")
    if tally.oldest_at is not None:
        # In colour where there is no time to lose.
        retained = int(route.messages.attributes["MessageRetentionPeriod"])
        left = left_of(tally.oldest_at, retained, tally.selection.now)
        words = f"expires {left}" if left.at_most else "may expire any moment"
        out.say(f"the oldest {words}", "yellow" if left.is_urgent else "dim")
    if chosen:
        _groups(out, tally)
        out.say("for example", "dim")
        for each in islice(tally.chosen, MOST_SAMPLES):
            out.whole(each, indent=2)
    notes = (*_of_what_stays(route, tally), *_of_what_goes(route, tally))
    out.lines(("-", "dim", each) for each in notes)


def _groups(out: Output, tally: Tally) -> None:
    shown = table("MESSAGES", "WHICH")
    for written, values in tally.values.items():
        for words, number in values.most_common(_MOST_ROWS):
            shown.add_row(Text(f"{number:>8,}"), Text(plain(f"{written} {words}", 160)))
        if (others := len(values) - _MOST_ROWS) > 0:
            shown.add_row("", f"{written}: {others:,} other values")
    if shown.rows:
        out.show(shown)


def _of_what_stays(route: Route, tally: Tally) -> Iterable[str]:
    name = route.messages.name
    found = tally.standings
    judged = counted(found[Standing.CHOSEN] + found[Standing.NOT_MATCHING], "message")
    for way, missing in tally.missing.items():
        yield f"{way} is missing in {missing:,} of {judged}"
    for error, failed in tally.errors.most_common(_MOST_ERRORS):
        yield f"the filter could not be evaluated for {failed:,} of {judged}: {plain(error, 200)}"
    if others := found[Standing.OF_ANOTHER_SOURCE]:
        stay = f"{_it(others)} here"
        yield f"{counted(others, 'message')} died in another queue that shares {name}: {stay}"
    if unsaid := found[Standing.OF_NO_SOURCE]:
        yield (
            f"somebody sent {counted(unsaid, 'message')} to {name} by hand: SQS does not say for "
            f"which of its {len(route.others) + 1} sources, so {_it(unsaid)} here. Whoever knows "
            "receives them and sends them there by hand"
        )


def _it(messages: int, one: str = "stays", many: str = "stay") -> str:
    return f"it {one}" if messages == 1 else f"they {many}"


def _of_what_goes(route: Route, tally: Tally) -> Iterable[str]:
    if not tally.chosen:
        return
    source, messages = route.source, counted(len(tally.chosen), "message")
    groups = counted(len(tally.groups), "group")
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
            f"{tally.sent_back_before:,} of them were sent back before ({REDRIVE_COUNT}) and died "
            "again: see first whether their cause is fixed"
        )
    if tally.selection.chosen_by.tree is None and route.messages.arn == route.dlq_arn:
        yield (
            "SQS's own redrive moves them too, unfiltered, unmarked and not to be taken back: "
            f"aws sqs start-message-move-task --source-arn {route.messages.arn}"
        )
    yield "each gets a new message id and a new time of sending"
    if source.is_fifo:
        yield (
            f"their order mixes with newer messages: {messages} of {groups} go behind the "
            f"{source.waiting:,} that wait in {source.name} and whatever is sent meanwhile"
        )
