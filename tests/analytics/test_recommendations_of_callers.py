from __future__ import annotations

from typing import Any

import pytest

from analytics.recommendations import recommendations_of_callers
from tests.analytics.week_authored import arn, incident

CODE: dict[str, Any] = {
    "symptom": "unknown:Teapot",
    "error_codes": ["Teapot"],
    "outcome": "not_seen",
}
BUG: dict[str, Any] = {
    "symptom": "invalid_request",
    "error_codes": ["EmptyBatchRequest"],
    "outcome": "not_seen",
}


@pytest.mark.parametrize(
    ("incidents", "failed_calls", "is_announced"),
    [(10, 1, True), (9, 1, False), (1, 100, True), (1, 99, False), (2, 50, True), (2, 49, False)],
)
@pytest.mark.parametrize("fields", [CODE, BUG])
def test_only_many_are_worth_a_monday(
    fields: dict[str, Any], incidents: int, failed_calls: int, is_announced: bool
) -> None:
    rows = [incident(n, failed_calls=failed_calls, **fields) for n in range(incidents)]
    assert bool(recommendations_of_callers(rows)) is is_announced


def test_a_caller_is_said_of_all_its_queues_and_the_worst_is_named() -> None:
    rows = [
        incident(failed_calls=60, queue_arn=arn("a"), **BUG),
        incident(failed_calls=10, queue_arn=arn("b"), **BUG | {"error_codes": ["OverLimit"]}),
        incident(failed_calls=30, queue_arn=arn("b"), **BUG),
        incident(failed_calls=500, principals=["p", "q"], **BUG),
        incident(failed_calls=99, principals=["q"], **BUG),
    ]
    alone, several = recommendations_of_callers(rows)
    assert (alone.kind, alone.why, alone.owner) == ("fix_caller", "count_only", "p")
    assert (alone.queue_arn, alone.queues) == (arn("b"), 2)
    assert (alone.incidents, alone.failed_calls) == (3, 100)
    assert alone.reason == "EmptyBatchRequest, OverLimit"
    assert (several.owner, several.failed_calls) == ("", 500)


def test_an_unknown_code_is_one_whoever_calls() -> None:
    rows = [
        incident(failed_calls=60, principals=[name], queue_arn=arn(name), **CODE) for name in "ab"
    ]
    (recommendation,) = recommendations_of_callers(rows)
    assert (recommendation.kind, recommendation.why, recommendation.owner) == (
        "name_code",
        "unknown_code",
        "",
    )
    assert (recommendation.symptom, recommendation.queues, recommendation.failed_calls) == (
        "unknown:Teapot",
        2,
        120,
    )


@pytest.mark.parametrize("why", ["case_open", "too_little_evidence", "event_lost", "unknown"])
def test_what_the_catalogue_could_fix_is_no_callers_recommendation(why: str) -> None:
    rows = [incident(n, outcome="not_seen", why=why, failed_calls=500) for n in range(20)]
    assert recommendations_of_callers(rows) == []


def test_what_has_a_case_is_left_to_it() -> None:
    assert (
        recommendations_of_callers([incident(failed_calls=500, **BUG | {"outcome": "escalated"})])
        == []
    )
