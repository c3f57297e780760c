"""`--where`: a small language about one letter. No eval, no names but ours, bounded in depth.

or  = and {"or" and}    not  = "not" not | "(" or ")" | "exists" "(" FIELD ")" | compared
and = not {"and" not}   compared = FIELD ("=" | "!=" | "<" | "<=" | ">" | ">=" | "~") VALUE
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from functions.healing.letters import Letter
from functions.healing.where_reading import Asks, Field, Reading
from functions.healing.where_truth import (
    COMPARED,
    CONTAINS,
    Comparison,
    Condition,
    Everything,
    Exists,
    Joined,
    Not,
    Wanted,
)
from functions.healing.where_words import Kind, Misread, Word, unquoted, words_of

DEEPEST = 32
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
# As SQS counts: its 256 KB are 262,144 bytes.
BYTES = {"": 1, "b": 1, "kb": 1_024, "mb": 1_048_576}
_UNITS = {
    Asks.DURATION: (SECONDS, "with its unit: 90s, 15min, 2h or 3d"),
    Asks.SIZE: (BYTES, "in bytes: 900, 256KB or 1MB"),
    Asks.COUNT: ({"": 1}, "without a unit"),
    Asks.ANYTHING: ({"": 1}, "without a unit"),
}
_TRUTHS = {"true": True, "false": False}
_ORDERED = frozenset(COMPARED) - {CONTAINS, "=", "!="}


@dataclass(frozen=True)
class Where:
    """A condition on letters, and the fields that it names, each once."""

    condition: Condition

    def matches(self, letter: Letter, now: datetime) -> bool:
        """Whether it holds; never raises, takes time linear in the letter's size."""
        return self.condition.truth(Reading(letter, now)) is True

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(dict.fromkeys(self.condition.fields()))


EVERYTHING = Where(Everything())


def where(expression: str) -> Where | Misread:
    """What a person has written, or why it cannot be read; never raises."""
    words = words_of(expression)
    if isinstance(words, Misread):
        return words
    try:
        return Where(_Grammar(words).whole())
    except _Unexpected as wrong:
        return wrong.misread


class _Unexpected(Exception):
    """Ends the reading of an expression; never leaves this file."""

    def __init__(self, reason: str, word: Word) -> None:
        super().__init__(reason)
        self.misread = Misread(reason, word.at)


class _Grammar:
    """Reads the words from left to right, each once."""

    def __init__(self, words: tuple[Word, ...]) -> None:
        self._words = words
        self._next = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._or()
        if self._word.kind is not Kind.END:
            raise _Unexpected("and, or, or the end belongs here", self._word)
        return found

    @property
    def _word(self) -> Word:
        return self._words[self._next]

    def _take(self, *spelled: str) -> bool:
        """Whether the next word was one of these; then it is behind us."""
        is_one = self._word.is_any(*spelled)
        self._next += is_one
        return is_one

    def _or(self) -> Condition:
        return self._joined("or", self._and, decides=True)

    def _and(self) -> Condition:
        return self._joined("and", self._not, decides=False)

    def _joined(self, word: str, part: Callable[[], Condition], *, decides: bool) -> Condition:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), decides)

    def _not(self) -> Condition:
        if self._depth == DEEPEST:
            raise _Unexpected(f"more than {DEEPEST} levels deep", self._word)
        self._depth += 1
        try:
            return self._inner()
        finally:
            self._depth -= 1

    def _inner(self) -> Condition:
        if self._take("not"):
            return Not(self._not())
        if self._take("("):
            found = self._or()
            self._close()
            return found
        if self._take("exists"):
            if not self._take("("):
                raise _Unexpected("say exists(attr.NAME) or exists(body.KEY)", self._word)
            asked = self._field()
            self._close()
            return Exists(asked)
        return self._comparison()

    def _close(self) -> None:
        if not self._take(")"):
            raise _Unexpected("a closing ) belongs here", self._word)

    def _field(self) -> Field:
        word = self._word
        if word.kind is not Kind.NAME or word.is_any("and", "or", "not", *_TRUTHS):
            raise _Unexpected("what to ask belongs here: attr.NAME, body.KEY, age ...", word)
        found = Field.named(word.text)
        if isinstance(found, str):
            raise _Unexpected(found, word)
        self._next += 1
        return found

    def _comparison(self) -> Condition:
        asked, word = self._field(), self._word
        if not self._take(*COMPARED):
            raise _Unexpected(f"one of {' '.join(COMPARED)} belongs behind {asked.written}", word)
        value = self._word
        wanted = _wanted(asked, value)
        if isinstance(wanted, bool) and word.text in _ORDERED:
            raise _Unexpected("true and false are only = or !=", word)
        if word.text == CONTAINS and not isinstance(wanted, str):
            raise _Unexpected("~ looks for a text: write it in quotes", value)
        self._next += 1
        return Comparison(asked, word.text, wanted)


def _wanted(asked: Field, word: Word) -> Wanted:
    """What the field is compared with; it must be something that the field can be."""
    if word.kind is Kind.TEXT and asked.asks in (Asks.TEXT, Asks.ANYTHING):
        return unquoted(word.text)
    if word.kind is Kind.NUMBER and asked.asks is not Asks.TEXT:
        return _number(asked, word)
    if asked.asks is Asks.ANYTHING and word.is_any(*_TRUTHS):
        return _TRUTHS[word.text.lower()]
    if asked.asks is Asks.TEXT:
        raise _Unexpected(f"a text in quotes belongs behind {asked.written}", word)
    if asked.asks is Asks.ANYTHING:
        raise _Unexpected("a value belongs here: a text in quotes, a number, true or false", word)
    raise _Unexpected(f"{asked.written} is a number {_UNITS[asked.asks][1]}", word)


def _number(asked: Field, word: Word) -> Decimal:
    digits = word.text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    factors, in_words = _UNITS[asked.asks]
    factor = factors.get(word.text[len(digits) :].lower())
    if factor is None:
        raise _Unexpected(f"{asked.written} is compared with a number {in_words}", word)
    return Decimal(digits) * factor
