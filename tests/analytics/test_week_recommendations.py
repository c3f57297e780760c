from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analytics.recommendations import Recommendation, do_this_week, folded
from tests.analytics.week_authored import arn, incident


def recommendation(queue: str = "orders", **fields: Any) -> Recommendation:
    known: dict[str, Any] = {
        "kind": "approve",
        "why": "proposed",
        "symptom": "visibility_timeout_too_short",
        "attribute": "VisibilityTimeout",
        "before": "30",
        "after": "45",
    }
    return Recommendation(queue_arn=arn(queue), **{**known, **fields})


def rows(
    *counts: tuple[str, int, int], symptom: str = "visibility_timeout_too_short"
) -> list[dict[str, Any]]:
    """So many incidents of a queue, each of so many failed calls."""
    return [
        incident(n, queue_arn=arn(queue), failed_calls=calls, symptom=symptom)
        for queue, number, calls in counts
        for n in range(number)
    ]


def named(recommendations: list[Recommendation], incidents: list[dict[str, Any]]) -> list[str]:
    announced = do_this_week(recommendations, incidents)["do_this_week"]
    return [each["queue_arn"].rpartition(":")[2] for each in announced]


def test_what_would_have_prevented_most_comes_first() -> None:
    recommendations = [
        recommendation(each, after=each) for each in ("none", "b", "a", "few", "loud", "many")
    ]
    incidents = rows(("many", 3, 1), ("loud", 2, 90), ("few", 2, 1), ("a", 1, 1), ("b", 1, 1))
    assert named(recommendations, incidents) == ["many", "loud", "few", "a", "b", "none"]


def test_only_incidents_of_the_queue_and_the_symptom_count() -> None:
    incidents = [*rows(("orders", 2, 5)), *rows(("orders", 7, 9), symptom="kms_throttled")]
    (announced,) = do_this_week([recommendation()], incidents)["do_this_week"]
    assert (announced["incidents"], announced["failed_calls"], announced["queues"]) == (2, 10, 1)


def test_a_recommendation_that_was_counted_keeps_its_counts() -> None:
    counted = recommendation(incidents=4, failed_calls=40, queues=3)
    (announced,) = do_this_week([counted], rows(("orders", 9, 9)))["do_this_week"]
    assert (announced["incidents"], announced["failed_calls"], announced["queues"]) == (4, 40, 3)


def test_three_queues_alike_are_said_each() -> None:
    assert len(folded([recommendation(each) for each in "abc"])) == 3


def test_more_than_three_queues_alike_are_said_as_one() -> None:
    recommendations = [recommendation(each, before="30", case_id=each) for each in "abcd"]
    incidents = rows(("a", 1, 1), ("c", 2, 1), ("d", 1, 7))
    document = do_this_week(recommendations, incidents)
    (announced,) = document["do_this_week"]
    assert (announced["queue_arn"], announced["case_id"], announced["queues"]) == (arn("c"), "c", 4)
    assert (announced["incidents"], announced["failed_calls"]) == (4, 10)
    assert (announced["before"], announced["after"]) == ("30", "45")
    assert document["do_this_week_left_out"] == 0


def test_where_values_were_different_before_none_is_named() -> None:
    (announced,) = folded([recommendation(each, before=each) for each in "abcd"])
    assert (announced.before, announced.after) == ("", "45")


def test_what_is_not_the_same_change_is_not_folded() -> None:
    alike = [recommendation(each) for each in "abc"]
    for other in (
        {"after": "46"},
        {"attribute": "DelaySeconds"},
        {"symptom": "in_flight_limit"},
        {"kind": "fix"},
        {"why": "observed"},
        {"owner": "somebody"},
    ):
        assert len(folded([*alike, recommendation("d", **other)])) == 4


def test_ten_are_said_and_the_rest_counted() -> None:
    document = do_this_week([recommendation(f"q{n:02}", after=f"{n}") for n in range(13)], [])
    assert len(document["do_this_week"]) == 10
    assert document["do_this_week_left_out"] == 3


def test_a_policy_is_shown_in_part_and_has_no_line() -> None:
    policy = json.dumps({"Statement": ["x" * 5_000]})
    document = recommendation(attribute="Policy", after=policy).document()
    assert len(document["after"]) == 1_000
    assert document["after"].endswith("...")
    assert document["template_line"] == ""


def test_what_changes_nothing_has_no_line() -> None:
    assert recommendation(attribute="", before="", after="").document()["template_line"] == ""


RECOMMENDATIONS = st.lists(
    st.builds(
        lambda queue, after, symptom: recommendation(f"q{queue}", after=after, symptom=symptom),
        st.integers(0, 30),
        st.sampled_from(["45", "67"]),
        st.sampled_from(["visibility_timeout_too_short", "kms_throttled"]),
    ),
    unique_by=lambda each: (each.queue_arn, each.symptom),
    max_size=40,
)


@given(RECOMMENDATIONS, st.randoms())
def test_nothing_is_lost_and_order_changes_nothing(
    recommendations: list[Recommendation], random: Any
) -> None:
    one = folded(recommendations)
    assert sum(each.queues for each in one) == len(recommendations)
    incidents = rows(*((each.queue_arn.rpartition(":")[2], 1, 2) for each in recommendations))
    document = do_this_week(recommendations, incidents)
    announced, left_out = document["do_this_week"], document["do_this_week_left_out"]
    assert len(announced) + left_out == len(one)
    counts = [(-each["incidents"], -each["failed_calls"]) for each in announced]
    assert counts == sorted(counts)
    turned = list(recommendations)
    random.shuffle(turned)
    assert do_this_week(turned, incidents[::-1]) == document
