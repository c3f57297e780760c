"""`case ended in` -> `incident outcome`, line by line of the contract."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from analytics.cases import case_rows, ended_at, in_order, outcome
from mendq.model.case import Case, State
from mendq.model.lifecycle import GONE, UNMANAGED
from tests.analytics.authored import transition

SAME_WORD = (
    "observed", "refused", "proposed", "declined", "expired",
    "escalated", "overridden", "rolled_back", "ineffective",
)  # fmt: skip


def went(*states: str, notified: tuple[str, ...] = ()) -> list[Case]:
    """A case that went through `states`, notifying at those of `notified`."""
    return [
        Case.from_document(
            transition(
                n,
                state,
                f"11-10 10:{n:02}",
                first_at="11-10 09:00",
                last_at="11-10 09:05",
                notified=state in notified,
            )
        )
        for n, state in enumerate(states, 1)
    ]


@pytest.mark.parametrize(
    ("transitions", "word"),
    [
        *((went(state), state) for state in SAME_WORD),
        *((went(state, notified=(state,)), state) for state in SAME_WORD),
        (went("applied"), "applied"),
        (went("applied", "unverified"), "applied"),
        (went("applied", "verified"), "healed"),
        (went("applied", "verified", "watching"), "healed"),
        (went("applied", "verified", "watching", "closed"), "healed"),
        (went("proposed", "approved", "applied", "verified", notified=("proposed",)), "approved"),
        (went("proposed", "approved", "applied", "verified", "watching", "closed"), "approved"),
        (went("proposed", "approved", "applied", "rolled_back"), "rolled_back"),
        (went("applied", "verified", "rolled_back"), "rolled_back"),
        (went("escalated", "closed", notified=("escalated",)), "escalated"),
        (went("applied", "ineffective", "closed", notified=("ineffective",)), "ineffective"),
        (went("applied", "verified", notified=("applied",)), "escalated"),
        # Approved and not carried out: nothing was written, so nothing is healed.
        (went("proposed", "approved"), "proposed"),
        (went("proposed", "approved", notified=("proposed",)), "proposed"),
        (went("proposed", "approved", "applied", "verified", "watching"), "approved"),
        (went("proposed", "approved", "applied"), "applied"),
        (went("proposed", "approved", "applied", "unverified"), "applied"),
        (went("proposed", "approved", "applied", "ineffective"), "ineffective"),
        (went("proposed", "approved", "applied", "verified", "overridden"), "overridden"),
        (went("proposed", "approved", "expired", notified=("proposed",)), "expired"),
        # What opens as approved, settings let through: nobody was asked.
        (went("approved"), "proposed"),
        (went("approved", "applied", "verified"), "healed"),
        (went("approved", "applied", "verified", "watching", "closed"), "healed"),
        (went("approved", "applied", "verified", notified=("verified",)), "escalated"),
        (went("applied", "ineffective", "escalated", notified=("escalated",)), "escalated"),
        (
            went("applied", "ineffective", "escalated", "closed", notified=("escalated",)),
            "escalated",
        ),
        (went("applied", "ineffective", "applied", "verified"), "healed"),
        (went("applied", "verified", "watching", "escalated"), "escalated"),
        (went("applied", "overridden", "closed", notified=("overridden",)), "overridden"),
        (went("overridden", "closed", notified=("overridden",)), "overridden"),
    ],
)
def test_the_latest_transition_decides(transitions: list[Case], word: str) -> None:
    assert outcome(transitions) == word


@pytest.mark.parametrize("because", [GONE, UNMANAGED])
@pytest.mark.parametrize(
    ("states", "word"),
    [
        (("applied",), "applied"),
        (("applied", "unverified"), "applied"),
        (("proposed", "approved", "applied"), "applied"),
        (("escalated",), "escalated"),
        (("proposed", "approved"), "proposed"),
        (("applied", "overridden"), "overridden"),
        (("applied", "verified", "watching"), "healed"),
    ],
)
def test_what_nobody_listens_for_any_more_is_not_called_healed(
    states: tuple[str, ...], word: str, because: str
) -> None:
    *before, closed = went(*states, "closed")
    left = replace(closed, came_from=before[-1].state, reason=because)
    assert outcome([*before, left]) == word


def test_every_state_has_a_word() -> None:
    words = {outcome(went(state)) for state in State}
    assert words == {*SAME_WORD, "healed", "applied"}


def test_n_decides_and_not_the_order_of_the_files() -> None:
    first, second = went("applied", "verified")
    assert in_order([second, first]) == (first, second)


def test_a_case_is_one_row_with_the_first_fix() -> None:
    cases = went("applied", "verified", "watching")
    [row] = case_rows([cases[2], cases[0], cases[1]])
    assert row["case_outcome"] == "healed"
    assert row["case_seconds_to_heal"] == 3720
    assert row["ended_at"] is None
    assert case_rows(went("observed"))[0]["case_seconds_to_heal"] is None
    early = replace(cases[1], at=cases[1].at - timedelta(days=1))
    assert case_rows([cases[0], early])[0]["case_seconds_to_heal"] is None


@pytest.mark.parametrize(
    ("states", "ended_by"),
    [
        (("applied", "verified", "watching"), None),
        (("observed",), 1),
        (("applied", "verified", "watching", "closed"), 4),
        (("applied", "verified", "watching", "closed", "rolled_back"), 4),
        (("applied", "rolled_back"), 2),
        (("applied", "verified", "watching", "closed", "overridden"), None),
        (("applied", "verified", "watching", "closed", "overridden", "closed"), 6),
    ],
)
def test_a_case_has_ended_when_new_failures_open_another(
    states: tuple[str, ...], ended_by: int | None
) -> None:
    transitions = went(*states)
    assert ended_at(transitions) == (ended_by and transitions[ended_by - 1].at)
