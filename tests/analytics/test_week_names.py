from __future__ import annotations

import pytest

from analytics.days import days_of
from analytics.week_parts import (
    FURTHER,
    MAXIMUM_PLACES,
    MAXIMUM_SYMPTOMS,
    Largest,
    incidents_of,
    largest,
    places,
    with_few_symptoms,
)
from mendq.catalogue import CATALOGUE
from mendq.report import summary as reports
from tests.analytics.week_authored import DAYS, WEEK, incident, nightly

WEEK_DAYS = days_of(WEEK)


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (3, Largest({"a": 2, "b": 9, "c": 2})),
        (2, Largest({"a": 2, "b": 9}, 1, 2)),
        (0, Largest({}, 3, 13)),
    ],
)
def test_the_largest_stay_and_the_others_are_counted(most: int, found: Largest) -> None:
    for names in ("abc", "cba"):
        assert largest({each: 9 if each == "b" else 2 for each in names}, most) == found
    assert list(largest({"c": 2, "b": 9}, 2).counts) == ["b", "c"]


def test_of_places_those_with_most_rows() -> None:
    rows = [incident(account=f"{n:012}") for n in range(MAXIMUM_PLACES + 5)]
    assert places(rows, "account") == ([f"{n:012}" for n in range(MAXIMUM_PLACES)], 5)
    again = incident(account=f"{MAXIMUM_PLACES + 4:012}")
    assert places([*rows, again], "account")[0][-1] == again["account"]
    assert places([incident(account="x" * 99)], "account") == (["x" * 61 + "..."], 0)


def test_symptoms_beyond_are_one_and_what_mendq_symptoms_stays() -> None:
    codes = [incident(symptom=f"unknown:C{n:03}") for n in range(MAXIMUM_SYMPTOMS + 10)]
    many = [incident(symptom="unknown:C105"), incident(symptom="unknown:C106", failed_calls=9)]
    own = incident(symptom="visibility_timeout_too_short", failed_calls=1)
    nightly_runs = {DAYS[0]: nightly(*codes, own), DAYS[1]: nightly(*many)}
    few, left_out = with_few_symptoms(WEEK_DAYS, nightly_runs)
    symptoms = [each["symptom"] for each in incidents_of(WEEK_DAYS, few)]
    assert len(symptoms) == len(codes) + 3
    assert len(set(symptoms)) == MAXIMUM_SYMPTOMS
    assert {"visibility_timeout_too_short", "unknown:C105", "unknown:C106", FURTHER} < set(symptoms)
    assert "unknown:C095" in symptoms
    assert "unknown:C096" not in symptoms
    assert (left_out, symptoms.count(FURTHER)) == (12, 12)
    assert {each["symptom"] for each in nightly_runs[DAYS[0]].incidents} == {
        "visibility_timeout_too_short", *(each["symptom"] for each in codes),
    }  # fmt: skip


def test_as_many_symptoms_as_fit_are_left_alone() -> None:
    nightly_runs = {
        DAYS[0]: nightly(*(incident(symptom=f"unknown:{n}") for n in range(MAXIMUM_SYMPTOMS)))
    }
    assert with_few_symptoms(WEEK_DAYS, nightly_runs) == (nightly_runs, 0)


def test_mendq_s_own_symptoms_always_fit_and_the_report_knows_the_other() -> None:
    assert len(CATALOGUE) < MAXIMUM_SYMPTOMS
    assert reports.FURTHER == FURTHER
