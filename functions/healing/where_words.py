"""The words of a `--where` expression, each with where it stands; total over any text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

LONGEST_EXPRESSION = 4_000
_TEXT = r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'"
_PART = rf"(?:[A-Za-z0-9_-]+|{_TEXT})"
# Each alternative begins with another character, so that no text is read twice.
_WORD = re.compile(
    rf"(?P<text>{_TEXT})"
    r"|(?P<number>-?[0-9]{1,30}(?:\.[0-9]{1,30})?[A-Za-z]{0,10}(?![A-Za-z0-9_.]))"
    rf"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.{_PART}|\[[0-9]{{1,6}}\])*)"
    r"|(?P<sign>!=|<=|>=|[=<>~()])",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_STEP = re.compile(rf"\.(?P<key>{_PART})|\[(?P<index>[0-9]+)\]", re.DOTALL)


class Kind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    NAME = "name"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True)
class Word:
    """One word as it was written, and at which character it begins."""

    kind: Kind
    text: str
    at: int

    def is_any(self, *spelled: str) -> bool:
        """Whether it is one of these, however large its letters are; a quoted text is none."""
        return self.kind in (Kind.NAME, Kind.SIGN) and self.text.lower() in spelled


@dataclass(frozen=True)
class Misread:
    """Why a text is no expression, and at which character that shows."""

    reason: str
    at: int


def words_of(expression: str) -> tuple[Word, ...] | Misread:
    """All of them, an END behind the last."""
    if len(expression) > LONGEST_EXPRESSION:
        return Misread(f"it is longer than {LONGEST_EXPRESSION:,} characters", LONGEST_EXPRESSION)
    words, at = [], _after_space(expression, 0)
    while at < len(expression):
        found = _WORD.match(expression, at)
        if found is None:
            return Misread(_why_not(expression[at]), at)
        words.append(Word(Kind(found.lastgroup or Kind.END), found.group(), at))
        if words[-1].is_any("in"):
            return Misread(_no_in(words[:-1]), at)
        at = _after_space(expression, found.end())
    return (*words, Word(Kind.END, "", at))


def _no_in(before: list[Word]) -> str:
    """Other languages have one, so it is asked for often."""
    names = [each.text for each in before if each.kind is Kind.NAME and not each.is_any("not")]
    asked = names[-1] if names else "NAME"
    return f"there is no `in`: say ({asked} = A or {asked} = B)"


def unquoted(text: str) -> str:
    """What stands between the quotes; a backslash lets the next character stand for itself."""
    return _ESCAPED.sub(r"\1", text[1:-1])


def steps_of(name: str) -> tuple[str, tuple[str | int, ...]]:
    """A name's first word, and the keys and places that lead on from it."""
    beginning, steps = re.split(r"[.\[]", name, maxsplit=1)[0], []
    for found in _STEP.finditer(name, len(beginning)):
        key, index = found.group("key"), found.group("index")
        plain = key is None or key[0] not in "\"'"
        steps.append(int(index) if key is None else key if plain else unquoted(key))
    return beginning, tuple(steps)


def _after_space(expression: str, at: int) -> int:
    found = _SPACE.match(expression, at)
    return found.end() if found else at


def _why_not(character: str) -> str:
    if character in "\"'":
        return "a text begins here and never ends: its closing quote is missing"
    if character in "0123456789-":
        return "this is no number: say 5, 2.5, 2h or 256KB"
    if character in "!&|":
        return "say and, or, not, or != here"
    return "nothing begins like this: a text stands in quotes, a key with other signs as well"
