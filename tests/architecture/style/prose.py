"""Find turns of phrase that make English hard to read for people who learned it as adults.

The patterns are an aid. A text with two hits is almost always hard to read, one hit is often fine,
and a text without a hit may still be obscure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Phrase:
    """A pattern that hits a text at most once, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


def _phrase(pattern: str, instead: str) -> Phrase:
    return Phrase(re.compile(pattern), instead)


PHRASES = (
    # How the text begins.
    _phrase(
        r"^(What|Why|How|Whose|Which|Who|When|Whatever|Whoever|Where)\b",
        "begin with a verb or a noun",
    ),
    _phrase(
        r"^(Of|By|As|From|To|Out|Beyond|So|At|Among|Beside|Up)\b",
        "begin with a verb or a noun",
    ),
    _phrase(
        r"^(It|Its|They|Their|Those|These|One|Two|Nothing|Nobody|The same|The rest|The others"
        r"|Neither|Both|Also|Once|Twice|Each)\b",
        "name the thing, not a pronoun",
    ),
    _phrase(r"^None\b(?! (if|when|unless|for|by default))", "None if ..."),
    _phrase(r"^Whether\b", "True if ..."),
    # Conditions and nouns.
    _phrase(
        r"\b(None|empty|False|True|0|nothing|zero|it|[Rr]aises?) where\b"
        r"|\bwhere (there|it|that|nobody|none|nothing|no|neither|its|their|one|they)\b",
        "if, when",
    ),
    _phrase(
        r"\b[Ww]hat (is|was|are|were|has|it|they|he|she|this|that|nobody|somebody|people|others"
        r"|had|stands|lies|comes|came|went|cannot|may|belongs)\b",
        "a noun",
    ),
    _phrase(r"\b(who|what|which)(so)?ever\b", "anyone who, any, all"),
    # Verbs.
    _phrase(
        r"\b(is|are|was|were) (not )?to (be|come|have|go|see|say|do|hold|stay|end|take|get|fail"
        r"|know|hear|read|stand|learn|show|ask|look|decide)\b",
        "must, should, will",
    ),
    _phrase(
        r"\b(stands?|stood|lies|lay) (in|there|at|on|below|behind|beside|before|as|for)\b",
        "is, is stored",
    ),
    _phrase(
        r"\b(tells?|told|says?|said|hears?|heard|knows?|known|speaks?|asks?|asked) of\b",
        "report, mention, record",
    ),
    _phrase(
        r"\b(becomes?|became) of\b|\b(takes?|taken|took) up\b|\blets? go of\b",
        "result, handle, release",
    ),
    _phrase(r"\b(is|are|was|were) gone\b", "was deleted"),
    # Owners and actors.
    _phrase(r"\b(is|are|was|were) none\b|\bnone of (ours|it|theirs|its)\b", "is not a"),
    _phrase(
        r"\bof (ours|theirs|its own|their own|our own|Mendq's|AWS's|SQS's)\b", "our X, Mendq's X"
    ),
    _phrase(r"\b(nobody|anybody|somebody|everybody)('s)?\b", "name the actor"),
    _phrase(r"\b(by|of|for) (itself|themselves)\b", "alone, automatically"),
    # Amounts and exceptions.
    _phrase(r"\b[Ss]o (many|often|long|much|few|soon)\b(?! (as|that))", "the number"),
    _phrase(r"\bbeside\b|\bbut for\b", "besides, next to, except"),
    _phrase(
        r"\bas far as\b|\bas (it|they) (is|are|stands?|stood|may|was|were)\b", "say it directly"
    ),
)


def find_phrases(text: str) -> list[Phrase]:
    """Return the phrases that the text contains."""
    return [phrase for phrase in PHRASES if phrase.pattern.search(text)]
