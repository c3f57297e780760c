"""Make text safe and short for notifications: printable ASCII, one line per value, limited length.

Another party may have written any field of an event, a tag or a policy. A text made safe cannot
begin a new line, shows every character, and contains no working link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from mendq.model.json_text import to_json
from mendq.notifications.links import (
    break_links,
    break_terminal_links,
    escape_links_in_json,
    has_link,
    has_terminal_link,
    quote_links,
    quote_terminal_links,
)

# The largest numbers of characters of a value, of a command, and of a text that is read at all.
MOST_VALUE_CHARACTERS = 160
MOST_COMMAND_CHARACTERS = 1_200
_MOST_INPUT_CHARACTERS = 4_096
# Units of time with their numbers of seconds, the largest first.
_TIME_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))
_COMMAND_NOTE = (
    "(not shown: too long, not printable or with a link; the runbook and the case have what it "
    "takes)"
)
_PRINTABLE_PATTERN = re.compile(r"[ -~]+")
_RUNBOOK_LINE_PATTERN = re.compile(
    r"^( *[Rr]unbook: )docs/(runbooks/[a-z_]{1,64})\.md$", re.MULTILINE
)


def to_plain_text(text: object, most_characters: int = MOST_VALUE_CHARACTERS) -> str:
    """Return `text` as one line of printable ASCII, without links, cut at `most_characters`.

    Other characters are escaped (`\\u202e`), so that people see them and they have no effect.
    Brackets break links, those of bare domains too: `:[//]`, `evil[.]com`. Names that only AWS can
    own (`sns.amazonaws.com`) and names that end in `.fifo` stay unchanged.
    """
    return _cut_text(break_links(_escape_text(text)), most_characters)


def to_terminal_text(text: object, most_characters: int = MOST_VALUE_CHARACTERS) -> str:
    """Return `text` for a terminal, as `to_plain_text` does, but with unchanged bare domains.

    Terminals make links only of what has a scheme or begins with `www.`. Addresses of SQS queues
    and of the local account stay unchanged too. This is for error lines as well.
    """
    return _cut_text(break_terminal_links(_escape_text(text)), most_characters)


def to_markdown_text(text: object, most_characters: int = MOST_VALUE_CHARACTERS) -> str:
    """Return `text` as `to_plain_text` does, with the links of Markdown broken too.

    SARIF has such links, `[text](target)`, and code scanning shows messages as Markdown. The
    opening bracket of the target is escaped.
    https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
    """
    text_without_targets = break_links(_escape_text(text)).replace("](", "]\\(")
    return _cut_text(text_without_targets, most_characters)


def _escape_text(text: object) -> str:
    """Return the text on one line. Characters that are not printable ASCII are escaped."""
    whole_text = str(text)
    one_line_text = " ".join(whole_text[:_MOST_INPUT_CHARACTERS].split())
    if len(whole_text) > _MOST_INPUT_CHARACTERS:
        one_line_text += "..."
    ascii_text = one_line_text.encode("ascii", "backslashreplace").decode()
    printable_characters = [
        character if character.isprintable() else f"\\x{ord(character):02x}"
        for character in ascii_text
    ]
    return "".join(printable_characters)


def _cut_text(text: str, most_characters: int) -> str:
    """Return the text. A longer text than `most_characters` is cut and ends with three dots."""
    return text if len(text) <= most_characters else f"{text[: most_characters - 3]}..."


def format_value(value: object, most_characters: int = MOST_VALUE_CHARACTERS) -> str:
    """Return `value` as `to_plain_text` does, in quotes if it is empty or contains a space.

    The quotes show where the value ends.
    """
    plain_text = to_plain_text(value, most_characters - 2)
    if plain_text and " " not in plain_text:
        return plain_text
    return '"' + plain_text.replace('"', "'") + '"'


def link_runbooks(text: str, docs_url: str | None) -> str:
    """Return `text` with web addresses in place of the paths of runbooks.

    An address is `docs_url` with the page's path, such as `runbooks/dlq_missing`, in place of `*`.
    Without `docs_url`, the text keeps the paths, such as `docs/runbooks/dlq_missing.md`.
    """
    url_pattern = docs_url or "docs/*.md"
    return _RUNBOOK_LINE_PATTERN.sub(
        lambda runbook: runbook[1] + url_pattern.replace("*", runbook[2]), text
    )


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 message` or `1,204 messages`.

    If `plural` is empty, the plural is `singular` with an s.
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_utc_time(time: datetime) -> str:
    """Return a time in UTC to the second, such as `2026-11-28 08:00:03 UTC`."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_duration(duration: timedelta) -> str:
    """Return a duration in its two largest units: `3 d 4 h`, `4 h 10 min`, `50 s`.

    Smaller units are cut off, not rounded. A unit whose number is 0 is left out.
    """
    seconds = int(duration.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    fitting_units = [
        (unit_name, unit_seconds)
        for unit_name, unit_seconds in _TIME_UNITS
        if unit_seconds <= seconds
    ]
    unit_texts: list[str] = []
    for unit_name, unit_seconds in fitting_units[:2]:
        unit_count, seconds = divmod(seconds, unit_seconds)
        if unit_count:
            unit_texts.append(f"{unit_count} {unit_name}")
    return " ".join(unit_texts)


def to_printable_json(document: Any, most_characters: int = MOST_VALUE_CHARACTERS) -> str:
    """Return a document as compact JSON, made printable and cut by `to_plain_text`.

    The result may not be valid JSON any more.
    """
    return to_plain_text(to_json(document, is_compact=True), most_characters)


def format_exact_json(document: Any) -> str:
    """Return a document as JSON for a command: exact values, only ASCII characters, no links."""
    return escape_links_in_json(to_json(document, is_compact=True))


def command_or_note(command: str) -> str:
    """Return a command for a notification, without the spaces at its beginning and end.

    Every command and every policy to paste goes through this function. If a name in the command
    would become a link, it is quoted for the shell, which reads the same words. If that is not
    possible, or if the command is too long or not printable ASCII, return a note instead. A command
    is never cut or escaped, because it would then do something else.
    """
    shown_command = quote_links(command.strip())
    if (
        len(shown_command) <= MOST_COMMAND_CHARACTERS
        and _PRINTABLE_PATTERN.fullmatch(shown_command)
        and not has_link(shown_command)
    ):
        return shown_command
    return _COMMAND_NOTE


def terminal_command_or_note(command: str) -> str:
    """Return a command for a terminal. Return a note if it has a link or is not printable.

    A name that would become a link is quoted, as in `command_or_note`. Terminals make links only of
    what has a scheme or begins with `www.`. The command may have any length, and any printable
    character.
    """
    shown_command = quote_terminal_links(command)
    if shown_command.isprintable() and not has_terminal_link(shown_command):
        return shown_command
    return _COMMAND_NOTE


def limit_lines(lines: Iterable[str], most_lines: int) -> tuple[str, ...]:
    """Return the first `most_lines` lines. If there are more, a last line says how many more."""
    remaining_lines = iter(lines)
    first_lines = tuple(islice(remaining_lines, most_lines))
    left_out_line_count = sum(1 for _ in remaining_lines)
    if not left_out_line_count:
        return first_lines
    return (*first_lines, f"and {left_out_line_count} more")


@dataclass(frozen=True)
class Section:
    """A part of a notification: a heading at the start of a line, and indented lines below it.

    If a notification is too long, the last lines of its sections are dropped, unless
    `can_be_cut` is False.
    """

    heading: str
    lines: tuple[str, ...]
    can_be_cut: bool = True

    def text(self, dropped_count: int = 0) -> str:
        """Return the section without its last `dropped_count` lines; a new line counts them."""
        lines = list(self.lines[: len(self.lines) - dropped_count])
        if dropped_count:
            lines.append(f"(cut: {dropped_count} more lines)")
        return "\n".join((self.heading, *(f"  {line}" for line in lines)))

    def count_droppable_characters(self, dropped_count: int) -> int:
        """Return how many characters are left if the last `dropped_count` lines are dropped.

        These characters can still be dropped. Return 0 if the section cannot be cut.
        """
        if not self.can_be_cut:
            return 0
        return sum(len(line) for line in self.lines[: len(self.lines) - dropped_count])


def make_body(opening_lines: Sequence[str], sections: Sequence[Section], most_bytes: int) -> str:
    """Return the text of a notification, with at most `most_bytes` bytes.

    If the text is too long, lines are dropped one by one, each time the last line of the longest
    section. The text is longer than `most_bytes` only if no line is left that may be dropped.
    """
    dropped_line_counts = [0] * len(sections)
    while True:
        paragraph_texts = ["\n".join(opening_lines)]
        droppable_characters: list[int] = []
        for section, dropped_line_count in zip(sections, dropped_line_counts, strict=True):
            paragraph_texts.append(section.text(dropped_line_count))
            droppable_characters.append(section.count_droppable_characters(dropped_line_count))
        body = "\n\n".join(paragraph_texts) + "\n"
        if len(body.encode()) <= most_bytes or not any(droppable_characters):
            return body
        dropped_line_counts[droppable_characters.index(max(droppable_characters))] += 1
