"""Text for people's phones: one line per thing said, printable ASCII only, bounded.

Every field of an event, a tag or a policy is somebody else's text. It never opens a line, ends
one or hides a character; a link is broken where it says that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from mendq.model.json_text import to_json

MOST_VALUE = 160
MOST_COMMAND = 1_200
_MOST_READ = 4_096
_LINK = re.compile(r"(?<=:)//|(?<=www)\.", re.IGNORECASE)
_PRINTABLE = re.compile(r"[ -~]+")
_RUNBOOK = re.compile(r"^( *[Rr]unbook: )docs/(runbooks/[a-z_]{1,64})\.md$", re.MULTILINE)


def plain(text: object, most: int = MOST_VALUE) -> str:
    """`text` on one line of at most `most` printable ASCII characters, without `://` and `www.`.

    What is not printable ASCII is spelled out (`\\u202e`), so that it is seen and does nothing. A
    bare domain stays, and a mail program may link it: `orders.fifo`, `sqs.amazonaws.com` and many a
    role's path look like one, and people have to read those as they are.
    """
    return _cut(_LINK.sub(lambda found: f"[{found.group()}]", _escape(text)), most)


def visible(text: object, most: int = MOST_VALUE) -> str:
    """As `plain`, but links stay as they are written: for a terminal, which opens none."""
    return _cut(_escape(text), most)


def _escape(text: object) -> str:
    one_line = " ".join(str(text)[:_MOST_READ].split())
    spelled = one_line.encode("ascii", "backslashreplace").decode()
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in spelled)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def value(text: object, most: int = MOST_VALUE) -> str:
    """`plain`, in quotes where it holds a space, so that its end is seen."""
    shown = plain(text, most - 2)
    return shown if shown and " " not in shown else '"' + shown.replace('"', "'") + '"'


def link_runbooks(text: str, docs_url: str | None) -> str:
    """`text` with its runbooks where the docs are read; as it is where nobody said where.

    A page's path takes the place of the `*` in `docs_url`.
    """
    url = docs_url or "docs/*.md"
    return _RUNBOOK.sub(lambda it: it[1] + url.replace("*", it[2]), text)


def format_count(number: int, one: str, many: str = "") -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(at: datetime) -> str:
    """To the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(time: timedelta) -> str:
    """`3 d 4 h`, `4 h 10 min`, `50 s`: the two largest units, cut off."""
    seconds = int(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60))
    first = next(n for n, (_, size) in enumerate(units) if seconds >= size)
    parts = list[str]()
    for name, size in units[first : first + 2]:
        count, seconds = divmod(seconds, size)
        parts += [f"{count} {name}"] if count else []
    return " ".join(parts)


def compact_json(document: Any, most: int = MOST_VALUE) -> str:
    """A parsed document as compact JSON, cut at `most` characters."""
    return plain(to_json(document, is_compact=True), most)


def exact_json(document: Any) -> str:
    """A document to be typed: every value exact, every character visible, and no link."""
    return to_json(document, is_compact=True).replace("://", ":\\u002f/")


def command_line(command: str) -> str:
    """`command` as it stands or not at all: a command that was cut or cleaned does other things."""
    if len(command) <= MOST_COMMAND and _PRINTABLE.fullmatch(command):
        return command.strip()
    return "(not shown: too long or not printable; the runbook and the case have what it takes)"


def first_of(lines: Iterable[str], most: int) -> tuple[str, ...]:
    """The first `most` of `lines`, with a line that counts the others where there are more."""
    rest = iter(lines)
    taken = tuple(islice(rest, most))
    more = sum(1 for _ in rest)
    return (*taken, f"and {more} more") if more else taken


@dataclass(frozen=True)
class Section:
    """A heading at the start of its line, and indented lines under it.

    What may be `cut` gives way, last line first, where a page grows too long.
    """

    heading: str
    lines: tuple[str, ...]
    cut: bool = True

    def text(self, dropped: int = 0) -> str:
        """The section without its last `dropped` lines; says how many."""
        lines = list(self.lines[: len(self.lines) - dropped])
        lines += [f"(cut: {dropped} more lines)"] * bool(dropped)
        return "\n".join((self.heading, *(f"  {each}" for each in lines)))

    def droppable(self, dropped: int) -> int:
        """The bytes that can still be dropped."""
        return sum(map(len, self.lines[: len(self.lines) - dropped])) if self.cut else 0


def body(opening: Sequence[str], sections: Sequence[Section], most_bytes: int) -> str:
    """The whole text in at most `most_bytes`, as long as what may not be cut leaves room."""
    dropped = [0] * len(sections)
    while True:
        texts = [each.text(lost) for each, lost in zip(sections, dropped, strict=True)]
        whole = "\n\n".join(("\n".join(opening), *texts)) + "\n"
        left = [each.droppable(lost) for each, lost in zip(sections, dropped, strict=True)]
        if len(whole.encode()) <= most_bytes or not any(left):
            return whole
        dropped[left.index(max(left))] += 1
