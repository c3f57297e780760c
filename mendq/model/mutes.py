"""Mutes: a person accepts a symptom of a queue, with the reason and an end date.

One list serves `mendq scan` and `mendq lint`, which read it from `mendq.toml`. The deployed scan
does not read it. Rules:

- A mute names a queue, or the start of names with a `*`, and one symptom.
- It ends. On the day after `until` the finding counts again, and the mute is reported as ended.
- A mute that no finding needs is stale: the run checked all queues that it names, and none has the
  symptom. A mute about a queue that the run did not check, or not fully, is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

MUTE_SECTION = "mute"
MOST_MUTES = 500
_MOST_TEXT_CHARACTERS = 300
_FIELDS = ("queue", "symptom", "reason", "until")
_CURE_BY_FIELD = {
    "queue": 'name a queue, or the start of names and a *, such as queue = "orders-*"',
    "symptom": 'name one, such as symptom = "dlq_missing"',
    "reason": 'give the reason, such as reason = "every record is kept by hand"',
    "until": "give the last day of the mute (UTC), such as until = 2027-06-30",
}


@dataclass(frozen=True)
class Mute:
    """One symptom that a person mutes on the queues of a name, or of a start of names.

    Attributes:
        queue: The queue's name, or the start of names and a `*`.
        symptom: The symptom's name.
        reason: The person's reason.
        until: The last day on which the mute holds, in UTC.
    """

    queue: str
    symptom: str
    reason: str
    until: date

    def names_queue(self, *queue_names: str) -> bool:
        """Return True if one of these names is the mute's, or begins with its start of names."""
        if self.is_of_several_queues:
            return any(name.startswith(self.queue[:-1]) for name in queue_names)
        return self.queue in queue_names

    @property
    def is_of_several_queues(self) -> bool:
        """True if the mute ends in a `*`."""
        return self.queue.endswith("*")

    def has_ended(self, today: date) -> bool:
        """Return True if the mute does not hold any more."""
        return today > self.until

    @property
    def title(self) -> str:
        """The queue and the symptom, as people see them in a list of mutes."""
        return f"{self.symptom} on {self.queue}"


class MutesUnreadable(Exception):
    """A list of mutes has mistakes. There is one line for each, with the field and the cure."""


def read_mutes(document: Mapping[str, Any], known_symptoms: Collection[str]) -> tuple[Mute, ...]:
    """Return the mutes of a decoded `mendq.toml`.

    Args:
        document: The content of the file.
        known_symptoms: The names of all symptoms.

    Raises:
        MutesUnreadable: The list has mistakes. The text names all of them.
    """
    problems = [
        f"{name[:80]}: no such section; write [[{MUTE_SECTION}]]"
        for name in sorted(document)
        if name != MUTE_SECTION
    ]
    entries = document.get(MUTE_SECTION, [])
    if not isinstance(entries, list):
        problems.append(f"{MUTE_SECTION}: not a list; write [[{MUTE_SECTION}]] before each mute")
        entries = []
    if len(entries) > MOST_MUTES:
        problems.append(f"{MUTE_SECTION}: {len(entries)} are too many; keep at most {MOST_MUTES}")
        entries = []
    mutes = list[Mute]()
    for number, entry in enumerate(entries, start=1):
        path = f"{MUTE_SECTION} {number}"
        problems_of_entry = list(_list_problems(path, entry, known_symptoms))
        problems.extend(problems_of_entry)
        if not problems_of_entry:
            until = entry["until"]
            mutes.append(
                Mute(
                    entry["queue"],
                    entry["symptom"],
                    entry["reason"],
                    until if isinstance(until, date) else date.fromisoformat(until),
                )
            )
    if problems:
        raise MutesUnreadable("\n".join(problems))
    return tuple(mutes)


def _list_problems(path: str, entry: Any, known_symptoms: Collection[str]) -> Iterator[str]:
    """Yield the mistakes of one entry, each with the field and the cure."""
    if not isinstance(entry, dict):
        yield f"{path}: not a table; write [[{MUTE_SECTION}]] and its fields below"
        return
    for field in _FIELDS:
        if field not in entry:
            yield f"{path}, {field}: is missing; {_CURE_BY_FIELD[field]}"
        elif field == "until":
            if not _is_day(entry[field]):
                yield f"{path}, until: not a day; {_CURE_BY_FIELD[field]}"
        elif not _is_short_text(entry[field]):
            yield (
                f"{path}, {field}: not a text of 1 to {_MOST_TEXT_CHARACTERS} characters; "
                f"{_CURE_BY_FIELD[field]}"
            )
    for field in sorted(entry.keys() - {*_FIELDS}):
        yield f"{path}, {field[:80]}: no such field; use {', '.join(_FIELDS)}"
    yield from _list_name_problems(path, entry.get("queue"), entry.get("symptom"), known_symptoms)


def _list_name_problems(
    path: str, queue: Any, symptom: Any, known_symptoms: Collection[str]
) -> Iterator[str]:
    """Yield the mistakes in the names of the queue and the symptom, if they are texts."""
    if _is_short_text(queue) and "*" in queue[:-1]:
        yield f"{path}, queue: use one *, at the end, such as orders-*"
    if _is_short_text(symptom) and symptom not in known_symptoms:
        close_names = get_close_matches(symptom, known_symptoms, 1)
        cure = f"did you mean {close_names[0]}?" if close_names else "see docs/symptoms.md"
        yield f"{path}, symptom: {symptom[:80]!r} is not a symptom; {cure}"


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= _MOST_TEXT_CHARACTERS


def _is_day(value: object) -> bool:
    """Return True if a value is a day of TOML, or a text such as 2027-06-30."""
    if isinstance(value, str):
        try:
            date.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, date) and not isinstance(value, datetime)
