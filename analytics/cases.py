"""Cases out of the case bucket's transitions: what became of each, for incidents and weeks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from analytics.days import Days, microseconds
from analytics.storage import Storage
from mendq.model.case import FINAL, Case, State
from mendq.model.lifecycle import GONE, UNMANAGED

# Cases older than this say nothing about an incident any more.
MEMORY_DAYS = 7
WEEK_MICROSECONDS = MEMORY_DAYS * 86_400 * 1_000_000
# A change that stands is said again each week for so long: nothing tells what a template says.
STANDING_DAYS = 91
MAXIMUM_BYTES = 1_000_000
MOST_NAME = 200
MOST_COUNTED = 10**12
MOST_TEXT = 1_000

NOT_SEEN = "not_seen"
HEALED = "healed"
# Healed, after a person had approved it.
APPROVED = "approved"
APPLIED = "applied"
# The report's words for them are these too.
FIXED = frozenset({HEALED, APPROVED})

_STANDING = frozenset({State.CLOSED, State.WATCHING, State.VERIFIED})
# Closed, and not because the symptom stayed away.
_ENDED_UNSEEN = frozenset({GONE, UNMANAGED})
_CHANGED = frozenset({State.APPLIED, State.UNVERIFIED})
_SAME_WORD = frozenset(State) - _STANDING - _CHANGED - {State.APPROVED}
_WORDS = {
    **{each: str(each) for each in _SAME_WORD},
    **dict.fromkeys(_CHANGED, APPLIED),
    # What waits to be carried out has changed nothing yet: it is still a proposal.
    State.APPROVED: str(State.PROPOSED),
}


# As the case bucket holds it.
Transition = Case


def read_transition(content: bytes) -> Transition | None:
    """None where `content` is no transition of ours; nothing is raised."""
    if len(content) > MAXIMUM_BYTES:
        return None
    try:
        document = json.loads(content)
        case = Transition.from_document(document)
        _evidence(case)
        microseconds(_aware(case.at))
        _require_text(case)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return case


def _evidence(case: Case) -> tuple[int, int]:
    """The times of its first and last failed call, in microseconds since 1970."""
    times = (datetime.fromisoformat(case.evidence[name]) for name in ("first_at", "last_at"))
    first, last = (microseconds(_aware(moment)) for moment in times)
    return first, last


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} does not say where its clock hangs")
    return moment.astimezone(UTC)


def _require_text(case: Case) -> None:
    """Spark's rows hold the names, and no half of a character; the reason is compared alone."""
    for each in (case.case_id, case.queue_arn, case.symptom):
        each.encode()
    if not isinstance(case.reason, str):
        raise TypeError(f"{case.reason!r} is no text")


@dataclass(frozen=True)
class Life:
    """A case's transitions, in order; a case older than what was read lacks its first ones."""

    transitions: tuple[Transition, ...]

    @classmethod
    def of(cls, transitions: Iterable[Transition]) -> Life:
        """By n; the later of two that claim the same."""
        by_age = sorted(transitions, key=lambda each: (each.n, each.at))
        return cls(tuple({each.n: each for each in by_age}.values()))

    @property
    def newest(self) -> Transition:
        return self.transitions[-1]

    @property
    def last_said(self) -> Transition:
        """The newest, or what was verified where since then it was only watched."""
        newest = self.newest
        verified = [each for each in self.transitions if each.state is State.VERIFIED]
        was_watched = State.WATCHING in (newest.state, newest.came_from)
        is_well = newest.state in _STANDING and newest.reason not in _ENDED_UNSEEN
        return verified[-1] if verified and was_watched and is_well else newest

    @cached_property
    def begins(self) -> int:
        """When the first transition that was read happened, in microseconds since 1970."""
        return microseconds(self.transitions[0].at)

    @cached_property
    def evidence(self) -> list[tuple[int, int]]:
        """What each transition stood on: first and last failed call, in microseconds."""
        return [_evidence(each) for each in self.transitions]

    @cached_property
    def outcome(self) -> str:
        """Its word (docs/incidents.md): the newest transition's, unless what it did stands."""
        newest = self.newest
        # Nobody listened any more: it is as it was then; what had been verified was healed.
        is_left = newest.state in _STANDING and newest.reason in _ENDED_UNSEEN
        state = newest.came_from if is_left else newest.state
        if state in _WORDS:
            return _WORDS[state]
        # What opens as approved, settings let through, and nobody was asked.
        if any(each.state is State.APPROVED and each.n > 1 for each in self.transitions):
            return APPROVED
        if not self.is_notified:
            return HEALED
        # Not without a page: a person may have closed it, so healing is not claimed.
        words = [str(each.state) for each in self.transitions if each.state in _SAME_WORD]
        return words[-1] if words else str(State.ESCALATED)

    @property
    def seconds_to_heal(self) -> float | None:
        """From the first failed call to the first time that the fix was seen to hold.

        None as well where a case contradicts itself: nothing is fixed before it fails.
        """
        verified = next((each for each in self.transitions if each.state is State.VERIFIED), None)
        if verified is None:
            return None
        seconds = (microseconds(verified.at) - _evidence(verified)[0]) / 1_000_000
        return seconds if seconds >= 0 else None

    @property
    def opening(self) -> Transition | None:
        """None where it was opened before what was read."""
        return self.transitions[0] if self.transitions[0].n == 1 else None

    @property
    def opened_at(self) -> datetime:
        """Where the opening was not read, the first thing that speaks for it."""
        if self.opening:
            return self.opening.at
        return datetime.fromisoformat(self.transitions[0].evidence["first_at"]).astimezone(UTC)

    @property
    def since(self) -> datetime:
        """When it came into its state, however often it said so since."""
        before = takewhile(lambda each: each.state is self.newest.state, self.transitions[::-1])
        return [each.at for each in before][-1]

    @cached_property
    def ended_at(self) -> datetime | None:
        """When it ended: from then on new failures open another; None where it goes on.

        What is rolled back once it was closed had ended when it was closed.
        """
        ended: datetime | None = None
        for each in self.transitions:
            ended = (ended or each.at) if each.state in FINAL else None
        return ended

    @property
    def is_scanned(self) -> bool:
        """Whether no failed call opened it."""
        failed_calls = self.transitions[0].evidence.get("failed_calls")
        return failed_calls == 0 and not isinstance(failed_calls, bool)

    @property
    def is_notified(self) -> bool:
        return any(each.notified is True for each in self.transitions)

    @property
    def is_urgent(self) -> bool:
        return any(each.urgent is True for each in self.transitions)

    def overlaps(self, first: int, last: int) -> bool:
        """Whether its evidence does, in microseconds since 1970."""
        return any(since <= last and until >= first for since, until in self.evidence)

    @property
    def is_opened_by_scan(self) -> bool:
        return self.opening is not None and self.is_scanned

    @cached_property
    def near_evidence(self) -> list[tuple[int, int]]:
        """Its evidence of a week around its opening."""
        earliest, latest = self.begins - WEEK_MICROSECONDS, self.begins + WEEK_MICROSECONDS
        near = [(max(since, earliest), min(until, latest)) for since, until in self.evidence]
        return [(since, until) for since, until in near if since <= until]

    def pages(self, days: Days) -> list[Transition]:
        """The transitions of `days` that paged somebody."""
        return [each for each in self.within(days) if each.notified is True]

    def within(self, days: Days) -> Iterator[Transition]:
        return (each for each in self.transitions if is_within(each.at, days))


def lives(transitions: Iterable[Transition]) -> list[Life]:
    """One per case, by its id."""
    found = defaultdict[str, list[Transition]](list)
    for each in transitions:
        found[each.case_id].append(each)
    return [Life.of(found[case_id]) for case_id in sorted(found)]


class Step(NamedTuple):
    """One change as a transition holds it."""

    attribute: str
    before: str
    after: str


def steps_of(case: Case) -> list[Step]:
    """Its steps, without what is none: a file in the bucket may hold anything."""
    documents = [each for each in case.steps if isinstance(each, Mapping)]
    read = [Step._make(each.get(name) for name in Step._fields) for each in documents]
    return [step for step in read if all(isinstance(each, str) for each in step)]


def is_within(moment: datetime, days: Days) -> bool:
    return days.from_microseconds <= microseconds(moment) < days.before_microseconds


def is_count(value: object) -> bool:
    """Whether it is a whole number that sums of many still hold."""
    return type(value) is int and 0 <= value <= MOST_COUNTED


def shortened(text: Any, most: int = MOST_TEXT) -> str:
    """`text` in at most `most` characters that every encoding can spell; empty where it is none."""
    if not isinstance(text, str):
        return ""
    spelled = text[: most + 1].encode(errors="backslashreplace").decode()
    return spelled if len(spelled) <= most else f"{spelled[: most - 3]}..."


@dataclass(frozen=True)
class CaseFiles:
    """The cases that were written on `since` and later, from their beginning where it is there.

    `unreadable` files held no transition; `found` are queue, symptom and sentence of what the last
    scan found, `queues` the backlog and oldest age of those that were measured last.
    """

    since: date
    lives: list[Life]
    unreadable: int = 0
    found: Sequence[tuple[str, str, str]] = ()
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def case_files(cases: Storage, days: Days, memory_days: int = MEMORY_DAYS + 1) -> CaseFiles:
    """All that may speak for incidents of `days`: from so long before them to the newest.

    A case tells when it opened, and that it paged, at its beginning: it is read whole, so that a
    night says the same of it as a backfill that starts earlier.
    """
    since = days.widened(memory_days, 0).first
    names = [each for each in cases.folders("") if each.startswith("dt=")]
    later = [each for each in names if each >= f"dt={since}"]
    read = [_read(cases, path) for name in later for path in cases.files(name)]
    found = [each for each in read if each]
    for name in reversed(names[: len(names) - len(later)]):
        begun_before = {each.case_id for each in found} - {
            each.case_id for each in found if each.n == 1
        }
        if not begun_before:
            break
        paths = [each for each in cases.files(name) if _case_id(each) in begun_before]
        found += filter(None, (_read(cases, each) for each in paths))
    return CaseFiles(since, lives(found), read.count(None))


def _read(cases: Storage, path: str) -> Transition | None:
    return read_transition(cases.read(path, MAXIMUM_BYTES + 1) or b"")


def _case_id(path: str) -> str:
    """Out of `dt=.../CASE_ID-N.json`."""
    return PurePosixPath(path).stem.rpartition("-")[0]
