"""Cases out of their transitions: what became of each, as incidents and weeks look for it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from analytics.days import Days, microseconds
from mendq.model.case import FINAL, PROVING, Case, State
from mendq.model.lifecycle import GONE, UNMANAGED

# Times are microseconds since 1970.
SPARK_CASE = (
    "case_id string, case_queue_arn string, case_symptom string, case_outcome string, "
    "case_seconds_to_heal double, case_notified boolean, opened_at bigint, ended_at bigint, "
    "evidence array<struct<first_at: bigint, last_at: bigint>>"
)
MAXIMUM_BYTES = 1_000_000
MOST_NAME = 200
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


def read_transition(content: bytes) -> Case | None:
    """None where `content` is no transition of ours; nothing is raised."""
    if len(content) > MAXIMUM_BYTES:
        return None
    try:
        case = Case.from_document(json.loads(content))
        _evidence(case)
        microseconds(_aware(case.at))
        _require_text(case)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return case


def case_rows(transitions: Iterable[Case]) -> list[dict[str, Any]]:
    """One row per case, by its id."""
    return [_row(each) for each in lives(transitions)]


def _row(life: Life) -> dict[str, Any]:
    case = life.newest
    return {
        "case_id": case.case_id,
        "case_queue_arn": case.queue_arn,
        "case_symptom": case.symptom,
        "case_outcome": life.outcome,
        "case_seconds_to_heal": seconds_to_heal(life.transitions),
        "case_notified": life.is_notified,
        "opened_at": microseconds(life.transitions[0].at),
        "ended_at": microseconds(life.ended_at) if life.ended_at else None,
        "evidence": [_evidence(each) for each in life.transitions],
    }


def seconds_to_heal(transitions: Sequence[Case]) -> float | None:
    """From the first failed call to the first time that the fix was seen to hold.

    None as well where a case contradicts itself: nothing is fixed before it fails.
    """
    verified = [each for each in transitions if each.state is State.VERIFIED]
    if not verified:
        return None
    first_at = _evidence(verified[0])["first_at"]
    seconds = (microseconds(verified[0].at) - first_at) / 1_000_000
    return seconds if seconds >= 0 else None


def _evidence(case: Case) -> dict[str, int]:
    times = {name: datetime.fromisoformat(case.evidence[name]) for name in ("first_at", "last_at")}
    return {name: microseconds(_aware(moment)) for name, moment in times.items()}


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


def in_order(transitions: Sequence[Case]) -> tuple[Case, ...]:
    """A case's transitions by n; the later of two that claim the same."""
    by_n = {each.n: each for each in sorted(transitions, key=lambda each: (each.n, each.at))}
    return tuple(by_n.values())


def outcome(transitions: Sequence[Case]) -> str:
    """The word for a case whose transitions are `transitions`, in order; the latest decides."""
    state = transitions[-1].state
    if word := _same_word(state):
        return word
    if state not in _STANDING:
        return APPLIED
    if transitions[-1].reason in _ENDED_UNSEEN and (word := _left_behind(transitions[-1])):
        return word
    if any(map(_by_a_person, transitions)):
        return APPROVED
    return _reached_a_person(transitions) or HEALED


def _same_word(state: State) -> str | None:
    """What waits to be carried out has changed nothing yet: it is still a proposal."""
    if state is State.APPROVED:
        return str(State.PROPOSED)
    return str(state) if state in _SAME_WORD else None


def _left_behind(closed: Case) -> str | None:
    """Nobody listened any more: it is as it was then; what had been verified was healed."""
    if closed.came_from in PROVING:
        return APPLIED
    return _same_word(closed.came_from) if closed.came_from else None


def _by_a_person(transition: Case) -> bool:
    """What opens as approved, settings let through, and nobody was asked."""
    return transition.state is State.APPROVED and transition.n > 1


def _reached_a_person(transitions: Sequence[Case]) -> str | None:
    """Fixed, but not without a page: a person may have closed it, so healing is not claimed."""
    if not any(each.notified for each in transitions):
        return None
    states = [each.state for each in transitions if each.state in _SAME_WORD]
    return str(states[-1]) if states else str(State.ESCALATED)


@dataclass(frozen=True)
class Life:
    """A case's transitions, in order; a case older than what was read lacks its first ones."""

    transitions: tuple[Case, ...]

    @property
    def newest(self) -> Case:
        return self.transitions[-1]

    @property
    def outcome(self) -> str:
        return outcome(self.transitions)

    @property
    def opening(self) -> Case | None:
        """None where it was opened before what was read."""
        return self.transitions[0] if self.transitions[0].n == 1 else None

    @property
    def opened_at(self) -> datetime:
        """Where the opening was not read, the first thing that speaks for it."""
        if self.opening:
            return self.opening.at
        return datetime.fromisoformat(self.transitions[0].evidence["first_at"]).astimezone(UTC)

    @property
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

    def pages(self, days: Days) -> list[Case]:
        """The transitions of `days` that paged somebody."""
        return [each for each in self.within(days) if each.notified is True]

    def within(self, days: Days) -> Iterator[Case]:
        return (each for each in self.transitions if is_within(each.at, days))


class Step(NamedTuple):
    """One change as a transition holds it."""

    attribute: str
    before: str
    after: str


def lives(transitions: Iterable[Case]) -> list[Life]:
    """One per case, by its id."""
    found = defaultdict[str, list[Case]](list)
    for each in transitions:
        found[each.case_id].append(each)
    return [Life(in_order(found[case_id])) for case_id in sorted(found)]


def steps_of(case: Case) -> list[Step]:
    """Its steps, without what is none: a file in the bucket may hold anything."""
    documents = [each for each in case.steps if isinstance(each, Mapping)]
    read = [Step._make(each.get(name) for name in Step._fields) for each in documents]
    return [step for step in read if all(isinstance(each, str) for each in step)]


def is_within(moment: datetime, days: Days) -> bool:
    return days.from_microseconds <= microseconds(moment) < days.before_microseconds


def shortened(text: Any, most: int = MOST_TEXT) -> str:
    """`text` in at most `most` characters that every encoding can spell; empty where it is none."""
    if not isinstance(text, str):
        return ""
    spelled = text[: most + 1].encode(errors="backslashreplace").decode()
    return spelled if len(spelled) <= most else f"{spelled[: most - 3]}..."
