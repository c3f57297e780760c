"""Every name, code and reason in a summary is somebody else's text.

It is cut, and what a reader cannot see is spelled out, before it goes anywhere. Markup is the
business of each sink: the page escapes, the mail's text breaks addresses.
"""

from __future__ import annotations

import unicodedata

# Control, format (bidi, zero width), surrogate, private, unassigned; line and paragraph ends.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LINE_SPACE = "\t\n\r"
CUT = "…"
MOST_NAME = 80
MOST_PRINCIPAL = 64
MOST_SENTENCE = 300


def visible(text: str, most: int = MOST_NAME) -> str:
    """`text` in at most `most` characters of its own, each of which can be seen."""
    shown = "".join(_shown(each) for each in text[:most])
    return f"{shown}{CUT}" if len(text) > most else shown


def unlinked(text: str) -> str:
    """`text` for a mail: no mail program makes a link of an address in it."""
    return text.replace("://", ":[//]").replace("www.", "www[.]")


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if character in _LINE_SPACE or category == "Zs":
        return " "
    return f"[U+{ord(character):04X}]" if category in _UNSEEN else character
