"""Recommendations for people: from cases, from failing callers, and their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analytics.cases import CaseTimeline
from analytics.days import parse_week_days
from analytics.recommendations import (
    RecommendedTask,
    make_fields_of_values_still_set,
    make_to_do_fields,
    merge_alike_recommendations,
    recommend_for_callers,
    recommend_for_cases,
    recommend_for_findings,
)
from mendq.model.lifecycle import QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON
from mendq.model.state import State
from mendq.model.steps import CreateDlq, RedriveMessages
from tests.analytics.week_builders import WEEK, make_incident, make_queue_arn, make_timeline

VISIBILITY = "visibility_timeout_too_short"
RAISED = [("VisibilityTimeout", "45", "67")]
MADE = (CreateDlq.attribute, "", make_queue_arn("orders-dlq"))
STEPS: dict[str, list[tuple[str, str, str]]] = {
    "none": [],
    "messages": [(RedriveMessages.attribute, "held", make_queue_arn("orders"))],
    "made": [MADE],
    "made and attached": [MADE, ("RedrivePolicy", "", '{"maxReceiveCount":5}')],
    "fifo": [
        ("DeduplicationScope", "queue", "messageGroup"),
        ("FifoThroughputLimit", "perQueue", "perMessageGroupId"),
    ],
}
LEFT = yaml.safe_load(Path(__file__).with_name("recommendations.yaml").read_text())


def recommend(*lives: CaseTimeline) -> list[RecommendedTask]:
    return recommend_for_cases(parse_week_days(WEEK), lives)


BY_STATE = {
    "write_into_template": (State.VERIFIED, State.WATCHING),
    "approve": (State.PROPOSED,),
    "decide": (State.OVERRIDDEN,),
    "fix": (State.OBSERVED, State.REFUSED, State.EXPIRED, State.INEFFECTIVE, State.ESCALATED),
    "watch": (State.APPLIED, State.UNVERIFIED),
}


@pytest.mark.parametrize("state", list(State))
def test_case_state_decides_kind_and_reason_of_its_only_recommendation_or_gives_none(
    state: State,
) -> None:
    why_by_kind = {"write_into_template": "verified", "watch": "applied"}
    found = recommend(make_timeline((state, "11-10 09:00")))
    assert [(task.kind, task.why) for task in found] == [
        (kind, why_by_kind.get(kind, state)) for kind, states in BY_STATE.items() if state in states
    ]


@pytest.mark.parametrize("state", [state for states in BY_STATE.values() for state in states])
def test_recommendation_has_the_next_step_of_its_case_only_if_refused_ineffective_or_escalated(
    state: State,
) -> None:
    next_step = {"sentence": "Look.", "command": "ls"}
    (task,) = recommend(make_timeline((state, "11-10 09:00"), next_step=next_step))
    has_next_step = state in (State.REFUSED, State.INEFFECTIVE, State.ESCALATED)
    assert (task.next_step, task.command) == (("Look.", "ls") if has_next_step else ("", ""))


def test_recommendation_carries_the_change_and_reason_of_its_case() -> None:
    timeline = make_timeline(
        ("applied", "11-10 09:00", "it takes 38 s"), ("verified", "11-10 09:30", "it holds")
    )
    change = ("VisibilityTimeout", "30", "45")
    expected_task = RecommendedTask(
        "write_into_template", "verified", make_queue_arn("orders"), VISIBILITY, *change
    )
    assert recommend(timeline) == [
        replace(expected_task, case_id=timeline.newest_transition.case_id, reason="it holds")
    ]


def test_values_that_mendq_set_are_all_listed_oldest_first() -> None:
    values = [
        make_timeline(
            ("applied", f"{day} 09:00"),
            ("verified", f"{day} 10:00"),
            queue=f"q{n}",
            case_id=f"{VISIBILITY}-{n:012x}",
        )
        for n, day in enumerate(("11-10", "09-20", "11-09", "10-01", "11-11"))
    ]
    waits = make_timeline(("proposed", "11-10 09:00"), queue="asked")
    lives = [*values, waits]
    found = make_fields_of_values_still_set(
        recommend_for_cases(parse_week_days(WEEK), lives), lives
    )
    names = [value["queue_arn"].rpartition(":")[2] for value in found["standing"]]
    assert names == ["q1", "q3", "q2", "q0", "q4"]
    assert found["standing"][0]["set_at"] == "2026-09-20T09:00:00Z"
    assert found["standing_left_out"] == 0


OWNERS: list[tuple[dict[str, Any], str]] = [
    ({"stack": "shop", "resource": "Orders"}, "CloudFormation stack shop, Orders"),
    ({"stack": "shop"}, "CloudFormation stack shop"),
    ({"stack": "", "resource": "Orders"}, ""),
    ({"stack": ["shop"], "resource": 7}, ""),
]


@pytest.mark.parametrize(("evidence", "owner"), OWNERS)
def test_recommendation_owner_is_the_queues_cloudformation_stack_or_empty_if_none_is_known(
    evidence: dict[str, Any], owner: str
) -> None:
    timeline = make_timeline(("observed", "11-10 09:00")).newest_transition
    known = replace(timeline, evidence={**timeline.evidence, **evidence})
    assert [task.owner for task in recommend(CaseTimeline((known,)))] == [owner]


def test_recommendation_after_two_fixes_shows_the_first_and_the_last_value() -> None:
    first = make_timeline(("applied", "11-10 09:00"), ("ineffective", "11-10 10:00"))
    second = make_timeline(
        ("applied", "11-10 10:01"), ("verified", "11-10 11:00"), first_n=3, steps=RAISED
    )
    (found,) = recommend(CaseTimeline((*first.transitions, *second.transitions)))
    assert (found.before, found.after) == ("30", "67")


@pytest.mark.parametrize(("came_from", "theirs"), [(None, "30"), ("applied", ""), ("verified", "")])
def test_recommendation_names_an_overriding_value_only_if_it_was_recorded(
    came_from: str | None, theirs: str
) -> None:
    (found,) = recommend(make_timeline(("overridden", "11-10 09:00"), came_from=came_from))
    assert (found.before, found.after) == (theirs, "45")


def make_case(day: int, states: str, **fields: Any) -> CaseTimeline:
    words = states.split()
    at = fields.pop("at", [f"11-{day:02} {hour:02}:00" for hour in range(9, 9 + len(words))])
    reason = fields.pop("reason", "")
    reason = {"gone": QUEUE_GONE_REASON, "unmanaged": QUEUE_UNMANAGED_REASON}.get(reason, reason)
    steps = STEPS[fields.pop("steps")] if "steps" in fields else None
    own: dict[str, Any] = {"case_id": fields.pop("id", "a" if day == 10 else "b")}
    own |= {"steps": steps} if steps is not None else {} if day == 10 else {"steps": RAISED}
    own |= {"came_from": fields.pop("from")} if "from" in fields else {}
    return make_timeline(
        *((state, when, reason) for state, when in zip(words, at, strict=True)), **own, **fields
    )


@pytest.mark.parametrize(
    ("when", "kinds"),
    [
        ("11-08 23:59:59.999999", []),
        ("11-09 00:00:00", ["approve"]),
        ("11-15 23:59:59.999999", ["approve"]),
        ("11-16 00:00:00", []),
    ],
)
def test_proposed_case_is_recommended_only_if_it_was_proposed_from_monday_to_sunday(
    when: str, kinds: list[str]
) -> None:
    assert [task.kind for task in recommend(make_timeline(("proposed", when)))] == kinds


@pytest.mark.parametrize(
    ("when", "why"), [("11-08 23:59:59.999", "stands"), ("11-09 00:00:00", "verified")]
)
def test_fix_that_was_verified_before_the_week_is_recommended_as_a_value_that_is_still_set(
    when: str, why: str
) -> None:
    assert [task.why for task in recommend(make_timeline(("verified", when)))] == [why]


@pytest.mark.parametrize("title", LEFT)
def test_cases_ask_people_for_what_their_newest_states_leave_to_do(title: str) -> None:
    lives = [make_case(**case_fields) for case_fields in LEFT[title]["cases"]]
    found = [f"{task.kind} {task.attribute} {task.after}".strip() for task in recommend(*lives)]
    assert found == LEFT[title]["asks"]


# Recommendations about callers.

CODE: Any = {"symptom": "unknown:Teapot", "error_codes": ["Teapot"], "why": "unknown_code"}
BUG: Any = {
    "symptom": "invalid_request",
    "error_codes": ["EmptyBatchRequest"],
    "why": "count_only",
}


@pytest.mark.parametrize(
    ("incidents", "failed_calls", "is_announced"),
    [(10, 1, True), (9, 1, False), (1, 100, True), (1, 99, False), (2, 49, False)],
)
@pytest.mark.parametrize("fields", [CODE, BUG])
def test_caller_recommendation_needs_ten_incidents_or_100_failed_calls(
    fields: dict[str, Any], incidents: int, failed_calls: int, is_announced: bool
) -> None:
    incident_rows = [
        make_incident(n, failed_calls=failed_calls, **fields) for n in range(incidents)
    ]
    assert bool(recommend_for_callers(incident_rows)) is is_announced


def test_caller_recommendation_merges_a_callers_queues_and_names_the_worst_and_all_codes() -> None:
    over = {**BUG, "error_codes": ["OverLimit"]}
    incidents = [
        make_incident(failed_calls=60, queue_arn=make_queue_arn("a"), **BUG),
        make_incident(failed_calls=10, queue_arn=make_queue_arn("b"), **over),
        make_incident(failed_calls=30, queue_arn=make_queue_arn("b"), **BUG),
        make_incident(failed_calls=99, principals=["q"], **BUG),
    ]
    (alone,) = recommend_for_callers(incidents)
    assert (alone.kind, alone.why, alone.owner) == ("fix_caller", "count_only", "p")
    assert (alone.queue_arn, alone.queues) == (make_queue_arn("b"), 2), "the worst is named"
    assert (alone.incidents, alone.failed_calls) == (3, 100)
    assert alone.reason == "EmptyBatchRequest, OverLimit"


def test_recommendation_about_incidents_of_several_callers_names_none_of_them() -> None:
    incidents = [
        make_incident(failed_calls=500, principals=["p", "q"], **BUG),
        make_incident(failed_calls=99, principals=["q"], **BUG),
    ]
    (several,) = recommend_for_callers(incidents)
    assert (several.owner, several.failed_calls) == ("", 500)


def test_recommendation_about_an_unknown_code_merges_its_callers_and_queues() -> None:
    incidents = [
        make_incident(failed_calls=60, principals=["p"], queue_arn=make_queue_arn("a"), **CODE),
        make_incident(failed_calls=60, principals=["q"], queue_arn=make_queue_arn("b"), **CODE),
    ]
    (code,) = recommend_for_callers(incidents)
    assert (code.kind, code.why, code.owner) == ("name_code", "unknown_code", "")
    assert (code.symptom, code.queues, code.failed_calls) == ("unknown:Teapot", 2, 120)


@pytest.mark.parametrize("why", [None, "unknown", "may_be_a_race"])
def test_incident_that_has_or_may_have_a_case_gives_no_caller_recommendation(
    why: str | None,
) -> None:
    incidents = [make_incident(n, failed_calls=500, **{**BUG, "why": why}) for n in range(20)]
    assert recommend_for_callers(incidents) == []


# Order and number of recommendations.


def make_task(queue: str = "orders", **fields: Any) -> RecommendedTask:
    known: dict[str, Any] = {"kind": "approve", "why": "proposed", "symptom": VISIBILITY}
    known |= {"attribute": "VisibilityTimeout", "before": "30", "after": "45"}
    return RecommendedTask(queue_arn=make_queue_arn(queue), **{**known, **fields})


def make_incidents(
    *counts: tuple[str, int, int], symptom: str = VISIBILITY
) -> list[dict[str, Any]]:
    """Make incidents from triples of queue, number of incidents and failed calls of each."""
    return [
        make_incident(n, queue_arn=make_queue_arn(queue), failed_calls=calls, symptom=symptom)
        for queue, number, calls in counts
        for n in range(number)
    ]


def test_recommendation_counts_incidents_of_its_queue_and_symptom_unless_already_counted() -> None:
    incidents = [
        *make_incidents(("orders", 2, 5)),
        *make_incidents(("orders", 7, 9), symptom="kms_throttled"),
    ]
    for task, counts in ((make_task(), (2, 10, 1)), (make_task(incidents=4, queues=3), (4, 0, 3))):
        (found,) = make_to_do_fields([task], incidents)["do_this_week"]
        assert (found["incidents"], found["failed_calls"], found["queues"]) == counts


def test_same_recommendation_for_three_queues_is_not_merged() -> None:
    assert len(merge_alike_recommendations([make_task(name) for name in "abc"])) == 3


def test_same_recommendation_for_four_queues_is_one_that_names_the_worst_and_sums_all() -> None:
    incidents = make_incidents(("a", 1, 1), ("c", 2, 1), ("d", 1, 7))
    every = [make_task(name, case_id=name) for name in "abcd"]
    (found,) = make_to_do_fields(every, incidents)["do_this_week"]
    assert (found["queue_arn"], found["case_id"], found["queues"]) == (make_queue_arn("c"), "c", 4)
    assert (found["incidents"], found["failed_calls"]) == (4, 10)
    assert (found["before"], found["after"]) == ("30", "45")


def test_merged_recommendation_names_no_value_before_if_the_queues_had_different_ones() -> None:
    (differing,) = merge_alike_recommendations([make_task(name, before=name) for name in "abcd"])
    assert (differing.before, differing.after) == ("", "45")


@pytest.mark.parametrize("name", ["after", "attribute", "symptom", "kind", "why", "owner"])
def test_recommendation_that_differs_in_one_field_is_not_merged(name: str) -> None:
    assert (
        len(
            merge_alike_recommendations([*map(make_task, "abc"), make_task("d", **{name: "other"})])
        )
        == 4
    )


ASKED = st.lists(
    st.builds(
        lambda queue, after, symptom: make_task(f"q{queue}", after=after, symptom=symptom),
        st.integers(0, 30),
        st.sampled_from(["45", "67"]),
        st.sampled_from([VISIBILITY, "kms_throttled"]),
    ),
    unique_by=lambda task: (task.queue_arn, task.symptom),
    max_size=40,
)


@given(ASKED, st.randoms())
def test_to_do_list_has_the_ten_recommendations_with_most_incidents_for_any_input_order(
    every: list[RecommendedTask], random: Any
) -> None:
    one = merge_alike_recommendations(every)
    assert sum(task.queues for task in one) == len(every), "nothing is lost"
    incidents = make_incidents(*((task.queue_arn.rpartition(":")[2], 1, 2) for task in every))
    document = make_to_do_fields(every, incidents)
    announced = document["do_this_week"]
    left_out = document["do_this_week_left_out"]
    assert (len(announced), left_out) == (min(10, len(one)), max(0, len(one) - 10))
    counts = [(-task["incidents"], -task["failed_calls"]) for task in announced]
    assert counts == sorted(counts)
    turned = random.sample(every, len(every))
    assert make_to_do_fields(turned, incidents[::-1]) == document


def test_to_do_list_puts_cases_that_wait_for_a_person_first() -> None:
    kinds = [("watch", "applied"), ("write_into_template", "verified"), ("decide", "overridden"),
             ("approve", "proposed"), ("fix", "escalated"), ("fix", "refused")]  # fmt: skip
    every = [
        RecommendedTask(kind, why, make_queue_arn(f"{n}"), VISIBILITY, incidents=9 - n)
        for n, (kind, why) in enumerate(kinds)
    ]
    found = [task["why"] for task in make_to_do_fields(every, [])["do_this_week"]]
    assert found == ["escalated", "proposed", "overridden", "verified", "refused", "applied"]


def test_to_do_list_puts_scan_findings_after_failed_calls_and_merges_them_by_kind() -> None:
    found = [
        (make_queue_arn(f"q-{n}"), "alarm_missing", f"nothing watches q-{n}") for n in range(4)
    ]
    found += [
        (make_queue_arn("q-1"), "tag_not_understood", "Heal"),
    ]
    tasks = recommend_for_findings(found)
    caller = RecommendedTask(
        "name_code", "unknown_code", make_queue_arn("z"), "unknown:X", incidents=12
    )
    (first, *others) = make_to_do_fields([*tasks, caller], [])["do_this_week"]
    assert first["kind"] == "name_code"
    assert [(task["kind"], task["queues"]) for task in others] == [
        ("add_alarms", 4),
        ("correct_tags", 1),
    ]
    assert others[0]["reason"] == "nothing watches q-0"


def test_scan_finding_of_a_symptom_without_a_task_gives_no_recommendation() -> None:
    assert recommend_for_findings([(make_queue_arn("q"), "tls_not_enforced", "no")]) == []
