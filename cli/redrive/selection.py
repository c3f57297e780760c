"""Which letters somebody has asked for, and the counts of what was seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from operator import attrgetter

from functions.healing.letters import Letter, MessageAttribute
from functions.healing.plain_text import value
from functions.healing.where import Where
from functions.healing.where_reading import MISSING, Field, Reading

MOST_SAMPLES = 3
_WIDEST = 60
# Values by which letters are counted apart; what has more is counted in one line.
MOST_VALUES = 200
# Upper ends, in hours.
AGES = ((1, "under 1 h"), (24, "1 h to 1 d"), (96, "1 d to 4 d"))
_OLDER = "over 4 d"


class Standing(Enum):
    """What a letter is to the question."""

    CHOSEN = auto()
    NOT_MATCHING = auto()
    OF_ANOTHER_SOURCE = auto()
    OF_NO_SOURCE = auto()


@dataclass(frozen=True)
class Selection:
    """`now` is the moment that ages are counted to; `died_in` says where a letter failed.

    SQS does not say that of one that somebody has sent to the dead-letter queue by hand: it goes to
    the source only where there is no other (`is_sole_source`).
    """

    where: Where
    source_arn: str
    is_sole_source: bool
    now: datetime
    died_in: Callable[[Letter], str | None] = attrgetter("source_arn")

    def standing_of(self, letter: Letter) -> Standing:
        source_arn = self.died_in(letter)
        if source_arn is None and not self.is_sole_source:
            return Standing.OF_NO_SOURCE
        if source_arn not in (None, self.source_arn):
            return Standing.OF_ANOTHER_SOURCE
        matches = self.where.matches(letter, self.now)
        return Standing.CHOSEN if matches else Standing.NOT_MATCHING


@dataclass
class Tally:
    """What was seen so far. No body is kept, and of no body a part."""

    selection: Selection
    seen: set[str] = field(default_factory=set)
    chosen: dict[str, None] = field(default_factory=dict)
    standings: Counter[Standing] = field(default_factory=Counter)
    oldest_at: datetime | None = None
    unsigned: int = 0
    sent_back_before: int = 0
    ages: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, letter: Letter) -> Standing:
        """Count it; once, however often it is seen."""
        standing = self.selection.standing_of(letter)
        if letter.message_id in self.seen:
            return standing
        self.seen.add(letter.message_id)
        self.oldest_at = min(self.oldest_at or letter.sent_at, letter.sent_at)
        self.standings[standing] += 1
        if standing in (Standing.CHOSEN, Standing.NOT_MATCHING):
            self._note_missing(letter)
        if standing is Standing.CHOSEN:
            self._note_chosen(letter)
        return standing

    def _note_missing(self, letter: Letter) -> None:
        reading = Reading(letter, self.selection.now)
        for each in self.selection.where.fields:
            self.missing[each.written] += reading.value(each) is MISSING

    def _note_chosen(self, letter: Letter) -> None:
        self.chosen[letter.message_id] = None
        self.unsigned += self.selection.died_in(letter) is None
        self.sent_back_before += letter.hops > 0
        self.groups.add(letter.group_id)
        hours = (self.selection.now - letter.sent_at).total_seconds() / 3_600
        self.ages[next((words for end, words in AGES if hours < end), _OLDER)] += 1
        for each in self.selection.where.fields:
            if shown := _value_of(each, letter):
                counted = self.values.setdefault(each.written, Counter())
                counted[shown if shown in counted or len(counted) < MOST_VALUES else "others"] += 1


def _value_of(asked: Field, letter: Letter) -> str:
    """By attribute and group alone: what stands in a body is nobody's to be shown unasked."""
    if asked.name == "group":
        return value(letter.group_id, _WIDEST)
    found = letter.attributes.get(str(asked.steps[0])) if asked.name == "attr" else None
    return "" if found is None else _shown(found)


def _shown(found: MessageAttribute) -> str:
    if isinstance(found.value, bytes):
        return f"({len(found.value)} bytes)"
    return value(found.value, _WIDEST) or '""'
