"""Mutes: a person accepts a symptom of a queue, with the reason and an end date.

`mendq scan` and `mendq lint` read their list from `mendq.toml`. The deployed scan and heal have the
list that the setting `mutes` holds. Rules:

- A mute names a queue, or the start of names with a `*`, and one symptom.
- It ends. On the day after `until` the finding counts again, and the mute is reported as ended.
- A mute that no finding needs is stale: the run checked all queues that it names, and none has the
  symptom. A mute about a queue that the run did not check, or not fully, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from mendq.model.mute_rule import has_ended, is_name_of_several_queues, is_queue_named

MUTE_SECTION = "mute"
MOST_MUTES = 500
_MOST_TEXT_CHARACTERS = 300
_FIELDS = ("queue", "symptom", "reason", "until")
# What to write for each field, and an example.
_CURE_BY_FIELD = {
    "queue": ("name a queue, or the start of names and a *", "orders-*"),
    "symptom": ("name one", "dlq_missing"),
    "reason": ("give the reason", "every record is kept by hand"),
    "until": ("give the last day of the mute (UTC)", "2027-06-30"),
}
_ARN_OR_URL_PATTERN = re.compile(r"(arn:|https?://).*[:/]([^:/]+)\Z", re.DOTALL)


class Mute(Struct, frozen=True, array_like=True):
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
        return is_queue_named(self.queue, *queue_names)

    @property
    def is_of_several_queues(self) -> bool:
        """True if the mute ends in a `*`."""
        return is_name_of_several_queues(self.queue)

    def has_ended(self, today: date) -> bool:
        """Return True if the mute does not hold any more."""
        return has_ended(self.until, today)

    @property
    def title(self) -> str:
        """The queue and the symptom, as people see them in a list of mutes."""
        return f"{self.symptom} on {self.queue}"

    @property
    def ended_text(self) -> str:
        """What to do about a mute that has ended."""
        return (
            f"the mute of {self.queue} ended on {self.until}: fix the fault, give the mute a later "
            "day, or remove it"
        )


class MuteUse(Struct, frozen=True):
    """What a scan says of one mute.

    Attributes:
        queue: The mute's queue.
        symptom: The mute's symptom.
        until: The last day on which the mute holds.
        findings: The number of findings that it names, also after it has ended.
        checked: The number of queues that it names and that were fully checked for the symptom.
        unchecked: The number of the other managed queues that it names.
    """

    queue: str
    symptom: str
    until: date
    findings: int = 0
    checked: int = 0
    unchecked: int = 0

    @property
    def stale_reason(self) -> str:
        """Why a mute that has not ended is not needed; empty if it may be needed.

        Right only if the scan has reached all managed queues.
        """
        if self.findings or self.unchecked:
            return ""
        if self.checked:
            return explain_stale_mute(self.queue, self.checked)
        return f"no managed queue has the name {self.queue}: correct the name, or remove the mute"


def explain_stale_mute(queue: str, checked_queue_count: int) -> str:
    """Return why a mute is not needed: its queues were checked, and none has the symptom."""
    queues_text = (
        "1 checked queue"
        if checked_queue_count == 1
        else (f"{checked_queue_count:,} checked queues")
    )
    return (
        f"{queue} names {queues_text}, and none has the symptom. If the fault is fixed, remove the "
        "mute, so that you hear of it if it comes back"
    )


def find_mute(
    mutes: Iterable[Mute], queue_name: str, symptom_name: str, today: date
) -> Mute | None:
    """Return the first mute that holds today for a symptom of a queue; None if there is none."""
    for mute in mutes:
        if (
            mute.symptom == symptom_name
            and mute.names_queue(queue_name)
            and not mute.has_ended(today)
        ):
            return mute
    return None


class MuteMistake(Struct, frozen=True):
    """A mistake in a list of mutes.

    Attributes:
        number: The place of the mute in the list, from 1 on.
        field: The field; empty if the mute as a whole is wrong.
        fault: What is wrong.
        cure: What to do.
    """

    number: int
    field: str
    fault: str
    cure: str


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
    mutes, mistakes = read_mute_entries(entries, known_symptoms, _format_toml)
    for mistake in mistakes:
        field_text = f", {mistake.field}" if mistake.field else ""
        problems.append(
            f"{MUTE_SECTION} {mistake.number}{field_text}: {mistake.fault}; {mistake.cure}"
        )
    if problems:
        raise MutesUnreadable("\n".join(problems))
    return mutes


def _format_toml(field: str, value: str) -> str:
    """Return a field as `mendq.toml` has it. A day has no quotes there."""
    return f"{field} = {value}" if field == "until" else f'{field} = "{value}"'


def read_mute_entries(
    entries: Sequence[Any],
    known_symptoms: Collection[str],
    format_example: Callable[[str, str], str],
) -> tuple[tuple[Mute, ...], list[MuteMistake]]:
    """Return the mutes of a decoded list, and its mistakes. If there are any, use no mute of it.

    Args:
        entries: The decoded list.
        known_symptoms: The names of all symptoms.
        format_example: Returns a field with a value as people write both in their file.
    """
    mutes = list[Mute]()
    mistakes = list[MuteMistake]()
    for number, entry in enumerate(entries, start=1):
        mistakes_of_entry = [
            MuteMistake(number, field, fault, cure)
            for field, fault, cure in _list_problems(entry, known_symptoms, format_example)
        ]
        mistakes += mistakes_of_entry
        if not mistakes_of_entry:
            until = entry["until"]
            mutes.append(
                Mute(
                    entry["queue"],
                    entry["symptom"],
                    entry["reason"],
                    until if isinstance(until, date) else date.fromisoformat(until),
                )
            )
    return tuple(mutes), mistakes


def _list_problems(
    entry: Any, known_symptoms: Collection[str], format_example: Callable[[str, str], str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the field, the fault and the cure of each mistake of one entry."""
    if not isinstance(entry, dict):
        yield "", "not a table", f"give it the fields {', '.join(_FIELDS)}"
        return
    for field, (sentence, example) in _CURE_BY_FIELD.items():
        cure = f"{sentence}, such as {format_example(field, example)}"
        if field not in entry:
            yield field, "is missing", cure
        elif field == "until":
            if not _is_day(entry[field]):
                yield field, "not a day", cure
        elif not _is_short_text(entry[field]):
            yield field, f"not a text of 1 to {_MOST_TEXT_CHARACTERS} characters", cure
    for field in sorted(entry.keys() - {*_FIELDS}):
        yield field[:80], "no such field", f"use {', '.join(_FIELDS)}"
    yield from _list_name_problems(entry.get("queue"), entry.get("symptom"), known_symptoms)


def _list_name_problems(
    queue: Any, symptom: Any, known_symptoms: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the mistakes in the names of the queue and the symptom, if they are texts."""
    if _is_short_text(queue):
        arn_or_url = _ARN_OR_URL_PATTERN.match(queue)
        if arn_or_url:
            yield "queue", "an ARN or URL is not a queue's name", f"write {arn_or_url[2]}"
        elif "*" in queue[:-1]:
            yield "queue", "a * stands before the end", "use one *, at the end, such as orders-*"
    if _is_short_text(symptom) and symptom not in known_symptoms:
        from difflib import get_close_matches  # noqa: PLC0415 - heal starts faster without it

        close_names = get_close_matches(symptom, known_symptoms, 1)
        cure = f"did you mean {close_names[0]}?" if close_names else "see docs/symptoms.md"
        yield "symptom", f"{symptom[:80]!r} is not a symptom", cure


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
