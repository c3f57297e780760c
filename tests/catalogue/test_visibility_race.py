"""A race that was counted: what is found, whom it suspects, and that it never guesses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue._visibility import MAX_PROCESSING_TAG, may_race, race_in
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT, plan
from mendq.model.case import State
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal

FUNCTION = LambdaConsumer("arn:f", 30, 5)


def queue(tags: dict[str, str] | None = None, visibility: int = 30, **over: Any) -> Facts:
    facts = examples.queue(tags, examples.STANDARD_ARN, VisibilityTimeout=str(visibility))
    race = examples.measured(sent=1_000, received=1_300, deleted=1_300)
    return replace(facts, **{"dlq_sources": (), "measured": race, **over})


def found(facts: Facts) -> Facts:
    because = race_in(facts)
    assert because is not None
    return replace(facts, found=because)


def test_the_page_begins_with_the_numbers() -> None:
    because = race_in(queue())
    assert because == (
        "in 6.0 h 1,000 messages left and 1,300 deletes came, about 300 too many: messages were "
        "handled twice"
    )


@given(st.integers(0, 43_200), st.none() | st.integers(1, 43_200))
def test_it_never_guesses(visibility: int, person: int | None) -> None:
    facts = found(queue(visibility=visibility, person_visibility_seconds=person))
    answer = plan(facts, Limits())
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("race_without_named_need", State.ESCALATED)
    assert MAX_PROCESSING_TAG in answer.reason
    assert "nothing names how long they need" in answer.reason


def test_the_same_facts_with_failed_calls_behind_them_are_guessed_about() -> None:
    assert isinstance(plan(queue(), Limits()), Plan)


@given(st.integers(1, 2_000), st.integers(0, 1_000))
def test_a_named_need_is_met_in_full_or_a_person_is_called(seconds: int, visibility: int) -> None:
    facts = found(queue({MAX_PROCESSING_TAG: str(seconds)}, visibility))
    answer = plan(facts, Limits())
    if isinstance(answer, Plan):
        (step,) = answer.steps
        assert int(step.after) >= 1.5 * seconds
        assert answer.reason.endswith(facts.found)
    elif visibility >= 1.5 * seconds:
        assert answer.code == "race_without_named_need"
        assert f"the tag {MAX_PROCESSING_TAG} says {seconds} s" in answer.reason
    else:
        assert answer.code == "over_ceiling"


def test_a_tag_that_cannot_be_read_is_said_rather_than_guessed_about() -> None:
    answer = plan(found(queue({MAX_PROCESSING_TAG: "SECONDS"})), Limits())
    assert isinstance(answer, Refusal)
    assert answer.code == "tag_unreadable"


@pytest.mark.parametrize(
    "over",
    [
        {"measured": None},
        {"move_task_running": True},
        {"dlq_sources": None},
        {"lambda_consumers": (replace(FUNCTION, error_share=0.9, duration_p99_seconds=0.1),)},
    ],
)
def test_what_something_else_explains_is_not_found(over: dict[str, Any]) -> None:
    assert race_in(queue(**over)) is None


def test_a_function_that_runs_into_its_timeout_races() -> None:
    slow = replace(FUNCTION, error_share=0.9, duration_p99_seconds=29.0)
    assert race_in(queue(lambda_consumers=(slow,))) is not None


@pytest.mark.parametrize(
    ("facts", "suspect"),
    [
        (queue(), False),
        (queue(lambda_consumers=(FUNCTION,), visibility=35), False),
        (queue(lambda_consumers=(FUNCTION,), visibility=34), True),
        (queue({MAX_PROCESSING_TAG: "20"}), False),
        (queue({MAX_PROCESSING_TAG: "21"}), True),
        (queue({MAX_PROCESSING_TAG: "soon"}), False),
    ],
)
def test_an_idle_queue_is_a_suspect_where_a_need_is_above_its_visibility(
    facts: Facts, suspect: bool
) -> None:
    assert may_race(replace(facts, measured=None)) is suspect


@pytest.mark.parametrize(
    "name", ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
)
def test_work_is_a_suspect(name: str) -> None:
    facts = queue()
    assert may_race(replace(facts, attributes={**facts.attributes, name: "1"}))


def test_a_fifo_queue_is_counted_as_well() -> None:
    assert VISIBILITY_TIMEOUT_TOO_SHORT.detection is not None
    facts = replace(queue(), queue_arn=examples.QUEUE_ARN)
    assert VISIBILITY_TIMEOUT_TOO_SHORT.detection.detect(facts) is not None


@pytest.mark.parametrize(
    ("received", "deleted", "pages"),
    [(3_000, 2_000, True), (2_000, 1_500, True), (1_999, 1_500, False), (2_000, 1_499, False)],
)
def test_what_may_be_retries_is_never_fixed(received: int, deleted: int, *, pages: bool) -> None:
    race = examples.measured(sent=1_000, received=received, deleted=deleted)
    answer = plan(found(queue({MAX_PROCESSING_TAG: "40"}, measured=race)), Limits())
    if not pages:
        assert isinstance(answer, Plan)
        return
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("race_or_retries", State.ESCALATED)
