"""Make text safe and short for notifications: printable ASCII, one line per value, limited length.

Another party may have written any field of an event, a tag or a policy. Its text cannot begin or
end a line, cannot hide a character, and a link in it is broken by brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from mendq.model.json_text import to_json

# The largest numbers of characters of a value, of a command, and of a text that is read at all.
MOST_VALUE = 160
MOST_COMMAND = 1_200
_MOST_READ = 4_096
# Units of time with their seconds, the largest first.
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))
_LINK = re.compile(r"(?<=:)//|(?<=www)\.", re.IGNORECASE)
_PRINTABLE = re.compile(r"[ -~]+")
_RUNBOOK = re.compile(r"^( *[Rr]unbook: )docs/(runbooks/[a-z_]{1,64})\.md$", re.MULTILINE)


def plain(text: object, most: int = MOST_VALUE) -> str:
    """Return `text` as one line of at most `most` printable ASCII characters, without links.

    Other characters are escaped (`\\u202e`), so that people see them and they have no effect. `://`
    and `www.` get brackets. A bare domain stays, although a mail program may make a link of it:
    `orders.fifo`, `sqs.amazonaws.com` and the paths of many roles look like domains, and people
    must be able to read them.
    """
    return _cut(_LINK.sub(lambda link: f"[{link.group()}]", _escape(text)), most)


def visible(text: object, most: int = MOST_VALUE) -> str:
    """Return `text` like `plain`, but with unchanged links. For terminals, which open no links."""
    return _cut(_escape(text), most)


def _escape(text: object) -> str:
    """Return the text on one line, with everything escaped that is not printable ASCII."""
    one_line = " ".join(str(text)[:_MOST_READ].split())
    ascii_text = one_line.encode("ascii", "backslashreplace").decode()
    characters = [
        character if character.isprintable() else f"\\x{ord(character):02x}"
        for character in ascii_text
    ]
    return "".join(characters)


def _cut(text: str, most: int) -> str:
    """Return at most `most` characters of the text; three dots replace the rest."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def value(text: object, most: int = MOST_VALUE) -> str:
    """Return `text` like `plain`, in quotes if it is empty or contains a space.

    The quotes show where the value ends.
    """
    shown = plain(text, most - 2)
    return shown if shown and " " not in shown else '"' + shown.replace('"', "'") + '"'


def link_runbooks(text: str, docs_url: str | None) -> str:
    """Return `text` with the addresses of its runbooks.

    A page's path replaces the `*` in `docs_url`. Without `docs_url` the text stays the same, with
    paths such as `docs/runbooks/dlq_missing.md`.
    """
    url = docs_url or "docs/*.md"
    return _RUNBOOK.sub(lambda runbook: runbook[1] + url.replace("*", runbook[2]), text)


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as `1 message` or `1,204 messages`.

    `many` is the plural; by default, `one` with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(at: datetime) -> str:
    """Return a time in UTC to the second, such as `2026-11-28 08:00:03 UTC`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(time: timedelta) -> str:
    """Return a duration in its two largest units: `3 d 4 h`, `4 h 10 min`, `50 s`.

    The rest is cut off, not rounded. A unit that is 0 is left out.
    """
    seconds = int(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    units = [(name, size) for name, size in _UNITS if size <= seconds]
    parts: list[str] = []
    for name, size in units[:2]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def compact_json(document: Any, most: int = MOST_VALUE) -> str:
    """Return a parsed document as compact JSON, made printable and cut to `most` characters.

    `plain` does this. The result may not be valid JSON any more.
    """
    return plain(to_json(document, is_compact=True), most)


def exact_json(document: Any) -> str:
    """Return a document as JSON for a command: exact values, visible characters, no links."""
    return to_json(document, is_compact=True).replace("://", ":\\u002f/")


def command_line(command: str) -> str:
    """Return a command without spaces at its ends.

    If it is too long or not printable ASCII, return a note instead. It is not cut or escaped,
    because then it would do something else.
    """
    if len(command) <= MOST_COMMAND and _PRINTABLE.fullmatch(command):
        return command.strip()
    return "(not shown: too long or not printable; the runbook and the case have what it takes)"


def first_of(lines: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the first `most` lines, and a line that counts the others if there are more."""
    rest = iter(lines)
    first_lines = tuple(islice(rest, most))
    more = sum(1 for _ in rest)
    return (*first_lines, f"and {more} more") if more else first_lines


@dataclass(frozen=True)
class Section:
    """A part of a notification: a heading at the start of a line, and indented lines below it.

    If a notification is too long, the last lines of its sections are dropped, unless `cut` is
    False.
    """

    heading: str
    lines: tuple[str, ...]
    cut: bool = True

    def text(self, dropped: int = 0) -> str:
        """Return the section without its last `dropped` lines, with a line that says how many."""
        lines = list(self.lines[: len(self.lines) - dropped])
        if dropped:
            lines.append(f"(cut: {dropped} more lines)")
        return "\n".join((self.heading, *(f"  {line}" for line in lines)))

    def droppable(self, dropped: int) -> int:
        """Return how many characters can still be dropped after `dropped` lines were."""
        if not self.cut:
            return 0
        return sum(len(line) for line in self.lines[: len(self.lines) - dropped])


def body(opening: Sequence[str], sections: Sequence[Section], most_bytes: int) -> str:
    """Return the text of a notification, with at most `most_bytes` bytes.

    Lines are dropped until it fits: each time the last one of the section with most characters. The
    text is longer than `most_bytes` only if no line is left that may be dropped.
    """
    dropped = [0] * len(sections)
    while True:
        texts = ["\n".join(opening)]
        droppable: list[int] = []
        for section, count in zip(sections, dropped, strict=True):
            texts.append(section.text(count))
            droppable.append(section.droppable(count))
        text = "\n\n".join(texts) + "\n"
        if len(text.encode()) <= most_bytes or not any(droppable):
            return text
        dropped[droppable.index(max(droppable))] += 1
