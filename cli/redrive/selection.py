"""Which letters somebody has asked for, and the counts of what was seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from operator import attrgetter

from functions.healing.letters import Letter
from functions.healing.message_filter import Judgement, MessageFilter
from functions.healing.plain_text import value

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

    chosen_by: MessageFilter
    source_arn: str
    is_sole_source: bool
    now: datetime
    died_in: Callable[[Letter], str | None] = attrgetter("source_arn")

    def excluded(self, letter: Letter) -> Standing | None:
        """Why it stays whatever the filter says; None where the filter decides."""
        source_arn = self.died_in(letter)
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
    unsigned: int = 0
    sent_back_before: int = 0
    ages: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, letter: Letter) -> Standing:
        """Count it; once, however often it is seen."""
        judged = self.selection.chosen_by.judge(letter, self.selection.now)
        matching = Standing.CHOSEN if judged.matches else Standing.NOT_MATCHING
        standing = self.selection.excluded(letter) or matching
        if letter.message_id in self.seen:
            return standing
        self.seen.add(letter.message_id)
        self.oldest_at = min(self.oldest_at or letter.sent_at, letter.sent_at)
        self.standings[standing] += 1
        if standing is matching:
            self.missing.update(name for name, found in judged.values.items() if found is None)
            self.errors.update([judged.error] if judged.error else [])
        if standing is Standing.CHOSEN:
            self._note_chosen(letter, judged)
        return standing

    def _note_chosen(self, letter: Letter, judged: Judgement) -> None:
        self.chosen[letter.message_id] = None
        self.unsigned += self.selection.died_in(letter) is None
        self.sent_back_before += letter.hops > 0
        self.groups.add(letter.group_id)
        hours = (self.selection.now - letter.sent_at).total_seconds() / 3_600
        self.ages[next((words for end, words in AGES if hours < end), _OLDER)] += 1
        for name, found in judged.values.items():
            if _may_be_shown(name) and found is not None:
                shown, counted = _shown(found), self.values.setdefault(name, Counter())
                counted[shown if shown in counted or len(counted) < MOST_VALUES else "others"] += 1


def _may_be_shown(name: str) -> bool:
    """What stands in a body is nobody's to be shown unasked."""
    return name == "group_id" or name.startswith("attributes.")


def _shown(found: object) -> str:
    if isinstance(found, bytes):
        return f"({len(found)} bytes)"
    return value(str(found), _WIDEST) or '""'
