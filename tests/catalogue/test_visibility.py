"""Test how far a visibility timeout is raised, and that a counted race needs a named need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import DLQ_ARN, EXAMPLE_TIME, STANDARD_ARN
from mendq.catalogue.examples import queue as example
from mendq.catalogue.visibility.needed_timeout import (
    MAX_PROCESSING_TAG,
    MAX_VISIBILITY_TAG,
    build_needs_document,
    list_need_spans,
)
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as ENTRY,
)
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.mode import Mode
from mendq.model.plan import Plan
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from tests.catalogue.asking import (
    LIMITS,
    answer_to,
    detect_fault,
    expect_plan,
    expect_refusal,
    only_step_of,
    read_test_data,
)
from tests.model.builders import make_case


def queue(
    visibility: int,
    tagged: object = None,
    consumers: list[list[Any]] | None = None,
    ceiling: int | None = None,
    **over: Any,
) -> Facts:
    named = {MAX_PROCESSING_TAG: tagged, MAX_VISIBILITY_TAG: ceiling}
    tags = {name: str(value) for name, value in named.items() if value is not None}
    read_by = tuple(LambdaConsumer("arn:f", *figures) for figures in consumers or ())
    return example(tags, VisibilityTimeout=visibility, lambda_consumers=read_by, **over)


VISIBILITY_ROWS = read_test_data("tables")["visibility"]
RAISED_ROWS = [row for row in VISIBILITY_ROWS if isinstance(row[1], int)]
REFUSED_ROWS = [row for row in VISIBILITY_ROWS if isinstance(row[1], str)]


@pytest.mark.parametrize(("over", "raised"), RAISED_ROWS)
def test_visibility_timeout_is_raised_to_the_value_of_the_table(
    over: dict[str, Any], raised: int
) -> None:
    facts = queue(**over)
    step = only_step_of(expect_plan(ENTRY, facts))
    assert (step.before, step.after) == (facts.visibility_seconds, raised)


@pytest.mark.parametrize(("over", "code"), REFUSED_ROWS)
def test_visibility_timeout_is_not_raised_and_the_refusal_has_the_code_of_the_table(
    over: dict[str, Any], code: str
) -> None:
    assert expect_refusal(ENTRY, queue(**over)).code == code


def test_timeout_that_aws_recommends_is_planned_if_it_is_below_the_ceiling() -> None:
    plan = expect_plan(ENTRY, queue(30, consumers=[[30, 5]]))
    assert only_step_of(plan).after == 185
    assert plan.proposal == ()
    assert plan.reason.endswith("; AWS recommends 185 s")


def test_timeout_that_aws_recommends_above_the_ceiling_is_proposed_and_a_smaller_one_planned() -> (
    None
):
    plan = expect_plan(ENTRY, queue(30, consumers=[[300, 0]]))
    assert only_step_of(plan).after == 450
    assert [step.after for step in plan.proposal] == [1800]
    assert plan.reason.endswith("; AWS recommends 1,800 s")


def test_plan_for_a_tagged_processing_time_mentions_no_recommendation_of_aws() -> None:
    plan = expect_plan(ENTRY, queue(30, 21))
    assert plan.proposal == ()
    assert "AWS recommends" not in plan.reason


@pytest.mark.parametrize(
    ("tagged", "published", "answer"),
    [
        pytest.param(None, 80.0, (120, Mode.PROPOSE), id="no tag"),
        pytest.param(40, 80.0, (60, Mode.HEAL), id="tag needs more than the timeout"),
        pytest.param(40, 20.0, (60, Mode.HEAL), id="tag needs more, published time is shorter"),
        pytest.param(10, 80.0, (120, Mode.PROPOSE), id="timeout covers the tag's need"),
        pytest.param(None, 20.0, (45, Mode.HEAL), id="timeout covers the published time"),
        pytest.param(None, 600.1, (45, Mode.HEAL), id="published time is above the ceiling"),
    ],
)
def test_published_processing_time_is_proposed_only_if_a_tags_need_is_covered(
    tagged: int | None, published: float, answer: tuple[int, Mode]
) -> None:
    """The timeout is 30 s, and the ceiling 900 s; 45 s is the guess without any known need."""
    plan = expect_plan(ENTRY, queue(30, tagged, processing_p99_seconds=published))
    assert (only_step_of(plan).after, plan.highest_mode) == answer


@given(
    st.integers(0, 43_200),
    st.none() | st.integers(0, 43_200),
    st.none() | st.integers(1, 43_200),
    st.lists(st.tuples(st.integers(1, 900), st.integers(0, 300)).map(list), max_size=3),
    st.integers(0, 120_000),
)
def test_planned_visibility_timeout_stays_within_ceiling_in_flight_quota_and_guess_limit(
    visibility: int, person: int | None, tagged: int | None, read_by: list[Any], in_flight: int
) -> None:
    over: dict[str, Any] = {
        "visibility_seconds_set_by_person": person,
        "RedrivePolicy": '{"deadLetterTargetArn":"arn:x","maxReceiveCount":"5"}',
        "ApproximateNumberOfMessagesNotVisible": in_flight,
    }
    facts = queue(visibility, tagged, read_by, **over)
    if not isinstance(answer_to(ENTRY, facts), Plan):
        return
    after = int(only_step_of(expect_plan(ENTRY, facts)).after)
    assert after <= LIMITS.visibility_ceiling_seconds
    assert in_flight * after <= 60_000 * max(visibility, 1)
    if tagged is None and not read_by:
        assert after <= 4 * (visibility if person is None else person)


def make_raced_queue(visibility: int = 30, tagged: object = None, **over: Any) -> Facts:
    """Make a queue with 300 surplus deletes of 1,300, which is a consumer race."""
    race = {"sent": 1_000, "received": 1_300, "deleted": 1_300, "dlq_sources": ()}
    return queue(visibility, tagged, **{"queue_arn": STANDARD_ARN, **race, **over})


def detect(facts: Facts) -> Facts:
    faulty = detect_fault(ENTRY, facts)
    assert faulty is not None
    return faulty


@given(st.integers(0, 43_200), st.none() | st.integers(1, 43_200))
def test_consumer_race_without_a_named_need_is_refused_and_no_timeout_guessed(
    visibility: int, person: int | None
) -> None:
    answer = expect_refusal(
        ENTRY, detect(make_raced_queue(visibility, visibility_seconds_set_by_person=person))
    )
    assert answer.code == "race_without_named_need"
    assert "nothing names how long they need" in answer.reason


def test_timeout_is_guessed_if_failed_calls_show_that_it_is_too_short() -> None:
    assert only_step_of(expect_plan(ENTRY, make_raced_queue())).after == 45


def test_timeout_is_not_changed_if_the_processing_time_tag_is_unreadable() -> None:
    facts = detect(make_raced_queue(30, "SECONDS"))
    assert expect_refusal(ENTRY, facts).code == "tag_unreadable"


@given(st.integers(1, 2_000), st.integers(0, 1_000))
def test_named_need_is_planned_in_full_with_half_as_much_again_or_refused(
    seconds: int, visibility: int
) -> None:
    facts = detect(make_raced_queue(visibility, seconds))
    answer = answer_to(ENTRY, facts)
    if isinstance(answer, Plan):
        assert int(only_step_of(answer).after) >= 1.5 * seconds
        assert facts.found in answer.reason
    elif visibility < 1.5 * seconds:
        assert answer.code == "over_ceiling"
    else:
        does_batch_fit = visibility >= 10 * seconds
        assert answer.code == ("race_despite_named_need" if does_batch_fit else "batch_too_long")


@pytest.mark.parametrize(
    ("received", "deleted", "pages"),
    [(2_000, 1_500, True), (1_999, 1_500, False), (2_000, 1_499, False)],
)
def test_race_that_may_be_retries_is_fixed_only_if_a_named_need_is_unmet(
    received: int, deleted: int, *, pages: bool
) -> None:
    counts = {"received": received, "deleted": deleted}
    for covered, code in ((None, "race_without_named_need"), (3, "race_despite_named_need")):
        expected_code = "race_or_retries" if pages else code
        covered_by_tag = 20 if pages and covered else covered
        raced_queue = detect(make_raced_queue(30, covered_by_tag, **counts))
        assert expect_refusal(ENTRY, raced_queue).code == expected_code
    assert only_step_of(expect_plan(ENTRY, detect(make_raced_queue(30, 40, **counts)))).after == 60
    by_lambda = detect(make_raced_queue(30, None, consumers=[[30, 5]], **counts))
    assert only_step_of(expect_plan(ENTRY, by_lambda)).after == 185


@given(tagged=st.integers(1, 60), visibility=st.integers(1, 900), by_lambda=st.booleans())
def test_queue_whose_processing_time_is_tagged_is_never_told_to_tag_it_if_it_may_be_retries(
    tagged: int, visibility: int, *, by_lambda: bool
) -> None:
    """40 consumers of batches of ten give 2.2 receives and deletes of each message."""
    counts: dict[str, Any] = {"received": 2_200, "deleted": 2_200}
    if by_lambda:
        counts["consumers"] = [[1, 0]]
    answer = answer_to(ENTRY, detect(make_raced_queue(visibility, tagged, **counts)))
    if isinstance(answer, Plan):
        return  # the tag's need is not covered
    assert answer.code in {"race_or_retries", "over_ceiling"}
    if answer.code == "race_or_retries":
        assert "say how long" not in answer.reason
        assert "tag-queue" not in answer.next_command
        assert "fewer messages at a time" in answer.reason


def test_serial_batch_that_may_be_retries_is_named_with_the_batch_size_that_fits() -> None:
    counts = {"received": 2_200, "deleted": 2_200}
    refusal = expect_refusal(ENTRY, detect(make_raced_queue(35, 10, **counts)))
    assert (refusal.code, refusal.case_state) == ("race_or_retries", State.ESCALATED)
    assert "at 10 s each (tag mendq:max-processing-seconds), they take 100 s" in refusal.reason
    assert "MaxNumberOfMessages=2 the consumer's work fits the timeout of 35 s" in refusal.reason
    assert "2,200 receives of 1,000 sent messages" in refusal.reason


def test_race_that_may_be_retries_advises_to_tag_the_processing_time_if_it_is_untagged() -> None:
    counts = {"received": 2_200, "deleted": 2_200}
    untagged = expect_refusal(ENTRY, detect(make_raced_queue(35, None, **counts)))
    assert f"let the tag {MAX_PROCESSING_TAG} say how long" in untagged.reason


def test_batch_plan_after_late_deletes_needs_a_person_only_far_from_a_persons_timeout() -> None:
    """Four times the timeout of 30 s is 120 s, and ten messages of 8 s need 120 s."""
    near = queue(30, 8, delete_interval_seconds=8)
    assert expect_plan(ENTRY, near).highest_mode is Mode.HEAL
    raised_before = replace(near, visibility_seconds_set_by_person=29)
    assert expect_plan(ENTRY, raised_before).highest_mode is Mode.PROPOSE
    assert expect_plan(ENTRY, queue(30, 9, delete_interval_seconds=9)).highest_mode is Mode.PROPOSE


def test_batch_plan_after_a_scans_finding_needs_a_person() -> None:
    plan = expect_plan(ENTRY, detect(make_raced_queue(30, 8)))
    assert (only_step_of(plan).after, plan.highest_mode) == (120, Mode.PROPOSE)


def test_batch_plan_names_the_evidence_and_a_batch_size_that_fits_without_it() -> None:
    reason = expect_plan(ENTRY, queue(40, 8, delete_interval_seconds=8)).reason
    assert "late deletes came about 8 s apart" in reason
    assert "they take 80 s" in reason
    assert reason.endswith(
        "with MaxNumberOfMessages=3 the consumer's work fits the timeout of 40 s"
    )


def test_batch_over_the_ceiling_advises_smaller_batches_and_pages() -> None:
    refusal = expect_refusal(ENTRY, queue(92, 61, delete_interval_seconds=0))
    assert (refusal.code, refusal.case_state) == ("batch_too_long", State.ESCALATED)
    assert "915 s are needed" in refusal.reason
    assert "MaxNumberOfMessages=1" in refusal.reason
    assert "tag-queue" not in refusal.next_command, "raising the ceiling is not the advice"


@pytest.mark.parametrize(("tagged_seconds", "batch_size"), [(20, 1), (14, 1), (9, 2)])
def test_refused_timeout_that_covers_one_message_advises_a_batch_size_that_fits(
    tagged_seconds: int, batch_size: int
) -> None:
    """Of a batch of two, each second message is late: its deletes are as far apart as slow work."""
    facts = queue(30, tagged_seconds, delete_interval_seconds=40)
    refusal = expect_refusal(ENTRY, facts)
    assert refusal.code == "need_already_met"
    assert (
        f"If one message may take more than {tagged_seconds} s, correct the tag" in refusal.reason
    )
    assert f"with MaxNumberOfMessages={batch_size} the consumer's work fits" in refusal.reason


def test_refused_timeout_that_covers_a_lambda_consumer_advises_no_batch_size() -> None:
    """A function's timeout covers its whole batch."""
    refusal = expect_refusal(ENTRY, queue(35, consumers=[[30, 5]]))
    assert refusal.code == "need_already_met"
    assert "MaxNumberOfMessages" not in refusal.reason
    tagged = expect_refusal(ENTRY, queue(35, 20, consumers=[[30, 5]]))
    assert "MaxNumberOfMessages" not in tagged.reason


def test_refused_timeout_that_covers_a_full_batch_advises_only_to_correct_the_tag() -> None:
    refusal = expect_refusal(ENTRY, queue(120, 8))
    assert refusal.code == "need_already_met"
    assert refusal.reason.endswith("correct the tag")
    just_too_short = expect_refusal(ENTRY, queue(119, 8))
    assert "MaxNumberOfMessages=9" in just_too_short.reason


def test_guessed_timeout_mentions_late_deletes_only_if_they_came_close_together() -> None:
    plan = expect_plan(ENTRY, queue(30, delete_interval_seconds=0.2))
    assert only_step_of(plan).after == 45
    assert "late deletes came less than 1 s apart" in plan.reason
    assert "late deletes" not in expect_plan(ENTRY, queue(30, delete_interval_seconds=40)).reason


def test_race_despite_a_tag_that_fits_the_timeout_advises_to_correct_it_or_receive_fewer() -> None:
    refusal = expect_refusal(ENTRY, detect(make_raced_queue(30, 3)))
    assert refusal.code == "race_despite_named_need"
    assert f"correct the tag {MAX_PROCESSING_TAG}" in refusal.reason
    assert "receive fewer messages at a time" in refusal.reason


def make_queue_with_dead_messages(tagged: object = 40, in_its_dlq: int = 7, **over: Any) -> Facts:
    """Make an empty queue from which 100 of 1,000 messages moved to the DLQ after 4 receives."""
    policy = RedrivePolicy(DLQ_ARN, 4).text
    dlq = QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": str(in_its_dlq)})
    counts = {"sent": 1_000, "received": 1_300, "deleted": 900, "RedrivePolicy": policy}
    return make_raced_queue(30, tagged, **{**counts, "dlq": dlq, **over})


@pytest.mark.parametrize(("over", "is_found"), read_test_data("tables")["dead messages: receives"])
def test_messages_in_the_dlq_count_as_a_timeout_too_short_only_if_receives_explain_them(
    over: dict[str, Any], *, is_found: bool
) -> None:
    assert bool(detect_fault(ENTRY, make_queue_with_dead_messages(**over))) is is_found


@pytest.mark.parametrize(
    ("over", "is_found"), read_test_data("tables")["dead messages: named time"]
)
def test_messages_in_the_dlq_count_as_a_timeout_too_short_only_if_a_named_time_is_longer(
    over: dict[str, Any], *, is_found: bool
) -> None:
    """The tag names the time, or Lambda's or the consumers' own measurement does."""
    assert bool(detect_fault(ENTRY, make_queue_with_dead_messages(**over))) is is_found


@pytest.mark.parametrize(("over", "is_found"), read_test_data("tables")["dead messages: queue"])
def test_messages_count_as_dead_only_if_they_left_for_the_dlq_and_no_move_task_runs(
    over: dict[str, Any], *, is_found: bool
) -> None:
    assert bool(detect_fault(ENTRY, make_queue_with_dead_messages(**over))) is is_found


def test_fix_based_on_a_published_processing_time_is_only_proposed() -> None:
    """Also if a tag names less than the published time."""
    for tagged, published in ((None, 30.1), (20, 30.1), (None, 80.0)):
        plan = expect_plan(
            ENTRY, detect(make_queue_with_dead_messages(tagged, processing_p99_seconds=published))
        )
        assert plan.highest_mode is Mode.PROPOSE


def test_published_processing_time_above_the_ceiling_does_not_count_as_a_named_need() -> None:
    hidden = detect(make_queue_with_dead_messages(None, processing_p99_seconds=601.0))
    assert expect_refusal(ENTRY, hidden).code == "race_without_named_need"


def test_needs_document_holds_the_longest_need_of_each_source() -> None:
    facts = queue(30, 40, [[60, 5, 42.5, 0.0], [20, 0, 19.0, 0.5]], processing_p99_seconds=51.0)
    tag = f"tag {MAX_PROCESSING_TAG}"
    needs = [("Lambda p99", 42.5), ("Lambda timeout", 60), (tag, 40), ("published p99", 51.0)]
    written = build_needs_document(ENTRY.name, facts)
    assert [(need["what"], need["seconds"]) for need in written] == needs


def test_needs_document_leaves_out_durations_of_a_function_whose_runs_fail() -> None:
    written = build_needs_document(ENTRY.name, queue(30, None, [[60, 5, 60.0, 1.0]]))
    assert [(need["what"], need["seconds"]) for need in written] == [("Lambda timeout", 60)]


def test_needs_document_is_empty_for_an_unreadable_tag_or_another_symptom() -> None:
    assert build_needs_document(ENTRY.name, queue(30, "SECONDS")) == []
    assert build_needs_document("consumer_failing", queue(30, 40)) == []


NEEDS = [{"what": "Lambda p99", "seconds": 42.5}]


def _list_spans(needs: Any, **step: Any) -> list[tuple[str, float]]:
    raised = {"attribute": "VisibilityTimeout", "before": "30", "after": "60", **step}
    written = replace(make_case(State.APPLIED), steps=(raised,), evidence={"needs": needs})
    return list_need_spans([written])


TIMEOUT_SPANS = [("timeout before", 30), ("timeout after", 60)]


def test_need_spans_list_the_needs_with_the_timeout_before_and_after_the_fix() -> None:
    assert _list_spans(NEEDS) == [("Lambda p99", 42.5), *TIMEOUT_SPANS]


def test_need_spans_are_empty_without_needs_or_without_a_visibility_timeout_step() -> None:
    assert _list_spans([]) == []
    assert _list_spans(NEEDS, attribute="Policy") == []


@pytest.mark.parametrize("needs", [None, 7, "x", {"what": "x"}, ["x", 7]])
def test_need_spans_are_empty_if_the_stored_needs_are_no_list_of_documents(needs: object) -> None:
    assert _list_spans(needs) == []


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"what": 7, "seconds": "9"},
        {"seconds": True},
        {"seconds": -1},
        {"what": "x", "seconds": float("inf")},
    ],
    ids=str,
)
def test_need_spans_leave_out_a_stored_need_with_an_invalid_field(odd: dict[str, Any]) -> None:
    assert _list_spans([*NEEDS, odd]) == [("Lambda p99", 42.5), *TIMEOUT_SPANS]


def test_need_spans_leave_out_a_timeout_that_is_no_number_of_seconds() -> None:
    assert _list_spans(NEEDS, before="", after="9" * 400) == [("Lambda p99", 42.5)]


def test_need_spans_list_at_most_seven_lines() -> None:
    assert len(_list_spans(NEEDS * 99)) == 7


def test_need_spans_ignore_a_rollback() -> None:
    back = {"attribute": "VisibilityTimeout", "before": "60", "after": "30"}
    applied = replace(make_case(State.APPLIED), evidence={"needs": NEEDS})
    undone = applied.move_to(State.ROLLED_BACK, "x", EXAMPLE_TIME, steps=(back,))
    assert list_need_spans([applied, undone])[1:] == [("timeout before", 30), ("timeout after", 45)]
