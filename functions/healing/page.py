"""The page about one case: plain text, for a phone at night."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from functions.healing.case import Case
from functions.healing.change_lines import change, template, undo
from functions.healing.next_lines import next_lines
from functions.healing.plain_text import Section, body, command_line, first_of, plain
from functions.healing.queue_lines import (
    Change,
    Known,
    changed_last_lines,
    evidence_lines,
    facts_lines,
    since_lines,
)
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# SNS takes 262,144 bytes and a subject of less than 100 characters, ASCII where it goes by mail:
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_BYTES = 8_000
MOST_SUBJECT = 99
MOST_FIRST_LINE = 120
_MOST_NAMED = 5
_MOST_FIRST = 2
_MOST_WHY = 1_000

# What is asked of the reader: in full, and where the queue's name is long.
_ASKS: dict[State, tuple[str, str]] = {
    State.PROPOSED: ("Mendq proposes a change: approve it or decline it.", "Approve?"),
    State.APPROVED: ("It was approved and is held up: please look at it.", "Look at it"),
    State.INEFFECTIVE: ("Mendq's next step is held up: please look at it.", "Look at it"),
    State.EXPIRED: ("You approved it, and it was not done: please look at it.", "Look at it"),
    State.REFUSED: ("Mendq changed nothing: please look at it.", "Look at it"),
    State.ESCALATED: ("Mendq cannot mend this: please act.", "Please act"),
    State.CONTESTED: ("Two values for one setting: please choose one.", "Choose one"),
}
PAGED = frozenset(_ASKS)


@dataclass(frozen=True)
class Page:
    """What SNS is given: printable ASCII, within its limits whatever went in."""

    subject: str
    body: str


def of_case(  # noqa: PLR0913 - each is one thing that a reader asks
    case: Case,
    *,
    sentence: str,
    runbook: str,
    attributes: Mapping[str, str],
    tags: Mapping[str, str],
    event_names: Iterable[str],
    known: Known | None,
    last_change: Change | str | None,
    next_command: str,
    first: Iterable[str] = (),
    beyond: Iterable[str] = (),
    shown: Iterable[str] = (),
) -> Page:
    """The page of a case in one of the states of PAGED; anything else raises ValueError.

    `sentence` is the symptom's; `attributes` the queue's now, empty where it is gone;
    `last_change` is None where CloudTrail knows of none, a text where it could not be asked.
    `shown` names attributes to show whole, set or not. `first` has to be done before the change,
    `beyond` after it; they and `next_command` (empty: look at the queue) stand as they are given:
    their maker quotes what is not its own.
    """
    if case.state not in PAGED:
        raise ValueError(f"a case that is {case.state} is never paged: {case.case_id}")
    sections = (
        Section("EVIDENCE", evidence_lines(case.evidence, event_names)),
        Section("QUEUE NOW", facts_lines(case.steps, attributes, tags, tuple(shown))),
        Section("FIRST", first_of((_advice(each) for each in first), _MOST_FIRST), cut=False),
        Section("CHANGE", change(case, attributes), cut=False),
        Section("UNDO", undo(case, attributes), cut=False),
        *template(case, attributes, tags),
        Section("BEYOND THAT", first_of((_advice(each) for each in beyond), _MOST_NAMED)),
        Section("SINCE LAST KNOWN", since_lines(known, attributes)),
        Section("CHANGED LAST BY", changed_last_lines(last_change)),
        Section("NEXT", next_lines(case, runbook, next_command), cut=False),
    )
    name = parts_of(case.queue_arn).name
    words = plain(case.symptom.replace("_", " "), 26)
    opening = (
        first_line(f"{name}: {words}.", *_ASKS[case.state]),
        f"What: {plain(sentence, 300)}",
        f"Why: {plain(case.reason, _MOST_WHY)}",
    )
    return Page(
        subject_of(f"Mendq {case.state}: {words} on", name),
        body(opening, [each for each in sections if each.lines], MOST_BYTES),
    )


def first_line(what: str, *asks: str) -> str:
    """What a locked phone shows, with the first of `asks` that fits beside it."""
    fitting = [each for each in asks if len(what) + 1 + len(each) <= MOST_FIRST_LINE]
    return f"{what} {fitting[0] if fitting else asks[-1]}"[:MOST_FIRST_LINE]


def subject_of(what: str, where: str) -> str:
    """A long name keeps its beginning and its end, where names differ."""
    room = MOST_SUBJECT - len(what) - 1
    end = (room - 3) // 2
    shown = where if len(where) <= room else f"{where[: room - 3 - end]}...{where[-end:]}"
    return f"{what} {shown}"


def place(account: str, region: str) -> str:
    """An account and its region, in words that are theirs alone."""
    return f"{plain(account, 12)} {plain(region, 32)}"


def _advice(text: str) -> str:
    return text if command_line(text) == text else plain(text, 300)
