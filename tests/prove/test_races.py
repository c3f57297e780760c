"""The race explorer finds each planted fault, and none in the unchanged product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mendq.cases import transactions
from mendq.cases.table import CaseStore
from mendq.heal import apply, gather, guardrails
from mendq.heal.recover import AbandonedClaim
from mendq.model.mode import Mode
from tests.prove.races import racing

RACES = 200
MOST_RACES = 400


def _list_faults(first: int, last: int) -> list[str]:
    found = list[str]()
    with racing() as race:
        for seed in range(first, last):
            try:
                race(seed)
            except AssertionError as fault:
                return [*found, str(fault)]
    return found


def test_race_explorer_finds_no_fault_in_the_unchanged_product() -> None:
    assert _list_faults(0, RACES) == []


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


_KEY = {"pk": {"S": "any"}, "sk": {"S": "any"}}
_ANY = {
    "ConditionCheck": {"Key": _KEY, "ConditionExpression": "attribute_not_exists(pk)"},
}
PLANTED = (
    (
        "a new queue is taken for the old one",
        apply,
        "refuse_if_changed_meanwhile",
        None,
        "it planned on",
    ),
    (
        "a freeze just before the claim is not seen",
        transactions,
        "_make_freeze_check_part",
        _ANY,
        "frozen",
    ),
    (
        "a write that landed is taken for none",
        AbandonedClaim,
        "is_surely_not_written",
        True,
        "nobody was told",
    ),
    ("a refused write leaves its claim", CaseStore, "release", None, "a claim is left"),
    (
        "whose value stands is not asked",
        guardrails,
        "_refuse_overridden_step",
        None,
        "person's value",
    ),
    ("the mode is not asked", gather, "find_mode", Mode.HEAL, "is overruled"),
)


@pytest.mark.long
@pytest.mark.parametrize(("hurts", "place", "name", "answer", "says"), PLANTED)
def test_race_explorer_finds_each_planted_fault(  # noqa: PLR0917 - a row of a table
    hurts: str, place: Any, name: str, answer: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, _always(answer))
    (found,) = _list_faults(0, MOST_RACES)
    assert says in found, hurts
