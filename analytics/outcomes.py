"""What became of a case, in the word of its incidents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from functions.healing.advance import GONE, UNMANAGED
from functions.healing.case import Case
from functions.healing.signs import PROVING
from functions.healing.states import FINAL, State

NOT_SEEN = "not_seen"
HEALED = "healed"
# Healed, after a person had approved it.
APPROVED = "approved"
APPLIED = "applied"
# The report's words for them are these too.
MENDED = frozenset({HEALED, APPROVED})

_STANDING = frozenset({State.CLOSED, State.WATCHING, State.VERIFIED})
# Closed, and not because the symptom stayed away.
_ENDED_UNSEEN = frozenset({GONE, UNMANAGED})
_SAME_WORD = frozenset(
    {
        State.OBSERVED,
        State.REFUSED,
        State.PROPOSED,
        State.DECLINED,
        State.EXPIRED,
        State.ESCALATED,
        State.CONTESTED,
        State.ROLLED_BACK,
        State.INEFFECTIVE,
    }
)


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
    """Mended, but not without a page: a person may have closed it, so healing is not claimed."""
    if not any(each.paged for each in transitions):
        return None
    states = [each.state for each in transitions if each.state in _SAME_WORD]
    return str(states[-1]) if states else str(State.ESCALATED)


def ended_at(transitions: Sequence[Case]) -> datetime | None:
    """When a case, its transitions in order, ended: from then on new failures open another.

    None where it goes on. What is rolled back once it was closed had ended when it was closed.
    """
    ended: datetime | None = None
    for each in transitions:
        if each.state not in FINAL:
            ended = None
        elif ended is None:
            ended = each.at
    return ended
