"""What a case says of itself: the contract's table of outcomes, line by line."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from analytics.cases import Life, case_rows, lives, shortened, steps_of
from analytics.days import days_of
from mendq.model.case import Case, State
from mendq.model.lifecycle import GONE, UNMANAGED
from tests.analytics.authored import at, transition
from tests.analytics.week_authored import WEEK, life

DAYS = days_of(WEEK)
WENT = yaml.safe_load(Path(__file__).with_name("outcomes.yaml").read_text())
SAME_WORD = WENT["same_word"].split()


def went(words: str) -> list[Case]:
    """A case that went through these states, paging somebody at those that end in `!`."""
    return [
        Case.from_document(
            transition(
                n,
                state.removesuffix("!"),
                f"11-10 10:{n:02}",
                first_at="11-10 09:00",
                last_at="11-10 09:05",
                notified=state.endswith("!"),
            )
        )
        for n, state in enumerate(words.split(), 1)
    ]


def outcome(transitions: list[Case]) -> str:
    return Life(tuple(transitions)).outcome


@pytest.mark.parametrize(
    ("states", "word"),
    [
        *((f"{state}{paging}", state) for state in SAME_WORD for paging in ("", "!")),
        *WENT["outcomes"].items(),
    ],
)
def test_the_latest_transition_decides(states: str, word: str) -> None:
    assert outcome(went(states)) == word


@pytest.mark.parametrize("because", [GONE, UNMANAGED])
@pytest.mark.parametrize(("states", "word"), WENT["left_behind"].items())
def test_what_nobody_listens_for_any_more_is_not_called_healed(
    states: str, word: str, because: str
) -> None:
    *before, closed = went(f"{states} closed")
    left = replace(closed, came_from=before[-1].state, reason=because)
    assert outcome([*before, left]) == word


def test_every_state_has_a_word() -> None:
    assert {outcome(went(state)) for state in State} == {*SAME_WORD, "healed", "applied"}


def test_a_case_is_one_row_with_the_first_fix_whatever_the_order_of_its_files() -> None:
    cases = went("applied verified watching")
    [row] = case_rows([cases[2], cases[0], cases[1]])
    assert lives([cases[2], *cases[:2]])[0].newest == cases[2]
    assert row["case_outcome"] == "healed"
    assert row["case_seconds_to_heal"] == 3720
    assert row["ended_at"] is None
    assert case_rows(went("observed"))[0]["case_seconds_to_heal"] is None
    early = replace(cases[1], at=cases[1].at - timedelta(days=1))
    assert case_rows([cases[0], early])[0]["case_seconds_to_heal"] is None


@pytest.mark.parametrize(("states", "ended_by"), WENT["ended_by"].items())
def test_a_case_has_ended_when_new_failures_open_another(states: str, ended_by: int | None) -> None:
    transitions = went(states)
    ended_at = ended_by and transitions[ended_by - 1].at
    assert Life(tuple(transitions)).ended_at == ended_at


def test_a_case_whose_opening_was_not_read_is_as_old_as_what_speaks_for_it() -> None:
    older = life(("escalated", "11-10 09:00"), first_n=4)
    assert older.opening is None
    assert older.opened_at == at("11-08 08:00")


@pytest.mark.parametrize(
    ("notified", "pages"), [(True, 1), (False, 0), (1, 0), ("true", 0), (None, 0)]
)
def test_only_true_is_a_page(notified: object, pages: int) -> None:
    (case,) = life(("escalated", "11-10 09:00")).transitions
    document = case.document() | {"notified": notified}
    (found,) = lives([type(case).from_document(json.loads(json.dumps(document)))])
    assert len(found.pages(DAYS)) == pages


@pytest.mark.parametrize(("failed_calls", "is_scanned"), [(3, False), (False, False), (0, True)])
def test_a_case_without_a_failed_call_is_a_scan_s(failed_calls: object, is_scanned: bool) -> None:
    (case,) = life(("escalated", "11-10 09:00")).transitions
    evidence = {**case.evidence, "failed_calls": failed_calls}
    assert Life((replace(case, evidence=evidence),)).is_scanned is is_scanned


def test_the_week_begins_and_ends_at_midnight_utc() -> None:
    moments = ("11-08 23:59:59", "11-09 00:00", "11-15 23:59:59", "11-16 00:00")
    edges = life(*(("escalated", each) for each in moments), notified=(1, 2, 3, 4))
    assert [each.n for each in edges.pages(DAYS)] == [2, 3]


def test_what_is_no_step_is_passed_over() -> None:
    case = life(("applied", "11-10 09:00")).newest
    odd = [None, "VisibilityTimeout", {"attribute": "A", "before": 1, "after": "2"}, {}]
    document = case.document()
    document["steps"] = [*odd, *document["steps"]]
    (step,) = steps_of(type(case).from_document(document))
    assert (step.attribute, step.before, step.after) == ("VisibilityTimeout", "30", "45")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ten letter", "ten letter"),
        ("eleven lett", "eleven ..."),
        *((each, "") for each in ("", None, 7, ["a"])),
        ("\ud800", "\\ud800"),
        ("\ud800\ud800", "\\ud800\\..."),
        ("\N{GREEK SMALL LETTER ALPHA}" * 10, "\N{GREEK SMALL LETTER ALPHA}" * 10),
    ],
)
def test_texts_are_bounded_and_can_be_spelled(text: object, shown: str) -> None:
    assert shortened(text, 10) == shown
