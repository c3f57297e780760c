"""Whatever lies in the case bucket is a case that every reader takes, or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.cases import case_rows, lives, read_transition, steps_of
from analytics.days import days_of
from analytics.week import reached_a_person, scanned
from mendq.model.case import State
from tests.analytics.authored import transition
from tests.analytics.week_authored import WEEK

SEEN = {"first_at": "11-10 08:00", "last_at": "11-10 08:10"}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "9" * 5_000, "2026-11-10", "2026-11-10T10:00:00"])
    | st.sampled_from(["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", *State]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def closed(**fields: Any) -> dict[str, Any]:
    return transition(2, "closed", "11-10 09:00", **SEEN) | {"from": "watching"} | fields


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"at": "2026-11-10T09:00:00"}, id="a time without a zone"),
        pytest.param({"reason": ["symptom_gone"]}, id="a list as the reason"),
        pytest.param({"reason": None}, id="no reason"),
        pytest.param(
            {"evidence": {"first_at": "2026-11-10T08:00:00", "last_at": "2026-11-10T08:10:00Z"}},
            id="evidence without a zone",
        ),
    ],
)
def test_an_odd_transition_is_none(odd: dict[str, Any]) -> None:
    assert read_transition(json.dumps(closed()).encode()) is not None
    assert read_transition(json.dumps(closed(**odd)).encode()) is None


def _taken(*documents: object) -> None:
    """By the nightly job and by the week."""
    contents = [json.dumps(each).encode() for each in documents]
    transitions = [each for each in map(read_transition, contents) if each]
    days = days_of(WEEK)
    rows, found = case_rows(transitions), lives(transitions)
    assert len(rows) == len(found)
    json.dumps([reached_a_person(days, found), scanned(days, found)])
    for each in found:
        assert each.outcome
        steps_of(each.newest)


@given(st.sampled_from(sorted(closed())), JSON, st.sampled_from(State))
@example("reason", ["symptom_gone"], State.CLOSED)
@example("at", "2026-11-10T09:00:00", State.CLOSED)
def test_any_value_in_any_field_stops_nothing(field: str, odd: object, state: State) -> None:
    opening = transition(1, "escalated", "11-10 08:30", notified=True, **SEEN)
    document = closed(to=state)
    _taken(document | {field: odd})
    _taken(opening, document | {field: odd})
    _taken(opening, document, document | {field: odd})


@given(st.dictionaries(st.sampled_from(sorted(closed())), JSON) | JSON)
def test_any_document_stops_nothing(document: object) -> None:
    _taken(document)
