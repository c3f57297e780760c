"""The bounds of a longer visibility timeout; and a race that was counted is never guessed about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue._visibility import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG, may_race, race_in
from mendq.catalogue.examples import FAILING, QUEUE_ARN, STANDARD_ARN, but
from mendq.catalogue.examples import queue as example
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT as ENTRY
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.plan import Plan
from tests.catalogue.asking import LIMITS, answer_to, found_in, planned, refused, step_of

REDRIVE = '{"deadLetterTargetArn":"arn:x","maxReceiveCount":"5"}'


def consumer(timeout_seconds: int = 30, window: int = 0, *counted: float) -> LambdaConsumer:
    return LambdaConsumer("arn:f", timeout_seconds, window, *counted)


def queue(visibility: int, tagged: object = None, *read_by: LambdaConsumer, **over: Any) -> Facts:
    tags = {} if tagged is None else {MAX_PROCESSING_TAG: str(tagged)}
    if ceiling := over.pop("ceiling", None):
        tags[MAX_VISIBILITY_TAG] = str(ceiling)
    return example(tags, VisibilityTimeout=visibility, lambda_consumers=read_by, **over)


LAMBDA = consumer(30, 5)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (queue(30, "soon"), "tag_unreadable"),
        (queue(30, "0"), "tag_unreadable"),
        (queue(30, "\uff11\uff12"), "tag_unreadable"),
        (queue(30, ceiling=43201), "tag_unreadable"),
        (queue(30, 20), "need_already_met"),
        (queue(35, None, LAMBDA), "need_already_met"),
        (queue(601), "over_ceiling"),
        (queue(30, 601), "over_ceiling"),
        (queue(30, 40, ceiling=59), "over_ceiling"),
        (queue(30, None, consumer(751)), "over_ceiling"),
        (queue(41, person_visibility_seconds=15), "guess_too_far"),
        (queue(0), "guess_too_far"),
        (queue(30, reader_visibility_seconds=29), "readers_set_their_own"),
        (queue(30, 20, reader_visibility_seconds=20), "readers_set_their_own"),
        (queue(35, None, LAMBDA, reader_visibility_seconds=20), "readers_set_their_own"),
        (queue(10, None, consumer(30, 0, 1.0, 0.5)), "consumer_failing"),
        (queue(10, None, consumer(30, 0, 26.9, 0.5)), "consumer_failing"),
        (queue(30, RedrivePolicy=REDRIVE, MessageRetentionPeriod=449), "over_retention"),
        (queue(30, 100, MessageRetentionPeriod=299), "over_retention"),
        (queue(30, ApproximateNumberOfMessagesNotVisible=40_001), "over_in_flight"),
    ],
)
def test_what_is_refused(facts: Facts, code: str) -> None:
    assert refused(ENTRY, facts).code == code


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        (queue(1), 2),
        (queue(31), 47),
        (queue(600), 900),
        (queue(40, person_visibility_seconds=15), 60),
        (queue(30, 21), 32),
        (queue(1, 600), 900),
        (queue(30, 700, ceiling=1050), 1050),
        (queue(34, None, LAMBDA), 41),
        (queue(30, 100, LAMBDA), 150),
        (queue(38, 26, LAMBDA), 39),
        (queue(30, reader_visibility_seconds=30), 45),
        (queue(30, 120, reader_visibility_seconds=20), 180),
        (queue(34, None, LAMBDA, reader_visibility_seconds=20), 41),
        (queue(10, None, consumer(30, 0, 1.0, 0.49)), 36),
        (queue(10, None, consumer(30, 0, 27.0, 0.5)), 36),
        (queue(30, RedrivePolicy=REDRIVE, MessageRetentionPeriod=450), 45),
        (queue(30, 100, MessageRetentionPeriod=300), 150),
        (queue(30, RedrivePolicy='{"maxReceiveCount": "x"}'), 45),
        (queue(30, ApproximateNumberOfMessagesNotVisible=40_000), 45),
    ],
)
def test_what_is_raised_and_how_far(facts: Facts, seconds: int) -> None:
    step = step_of(planned(ENTRY, facts))
    assert (step.before, step.after) == (facts.visibility_seconds, seconds)


def test_a_lambda_consumer_alone_gets_aws_s_advice_as_a_proposal() -> None:
    answer = planned(ENTRY, queue(30, None, LAMBDA))
    assert [step.after for step in answer.proposal] == [185]
    assert answer.reason.endswith("; AWS recommends 185 s")
    without = planned(ENTRY, queue(30, 21))
    assert without.proposal == ()
    assert "AWS recommends" not in without.reason


@given(
    st.integers(0, 43_200),
    st.none() | st.integers(0, 43_200),
    st.none() | st.integers(1, 43_200),
    st.lists(st.tuples(st.integers(1, 900), st.integers(0, 300)), max_size=3),
    st.integers(0, 120_000),
)
def test_a_plan_rises_and_keeps_every_bound(
    visibility: int,
    person: int | None,
    tagged: int | None,
    read_by: list[tuple[int, int]],
    in_flight: int,
) -> None:
    over = {"person_visibility_seconds": person, "RedrivePolicy": REDRIVE}
    held = {"ApproximateNumberOfMessagesNotVisible": in_flight}
    facts = queue(visibility, tagged, *(consumer(*each) for each in read_by), **over, **held)
    if not isinstance(answer_to(ENTRY, facts), Plan):
        return
    after = int(step_of(planned(ENTRY, facts)).after)
    assert after <= LIMITS.visibility_ceiling_seconds
    assert in_flight * after <= 60_000 * max(visibility, 1)
    if tagged is None and not read_by:
        assert after <= 4 * (visibility if person is None else person)


def raced(visibility: int = 30, tagged: object = None, **over: Any) -> Facts:
    """A queue on which 300 of 1,300 deletes were too many."""
    race = {"sent": 1_000, "received": 1_300, "deleted": 1_300, "dlq_sources": ()}
    return queue(visibility, tagged, **{"queue_arn": STANDARD_ARN, **race, **over})


def found(facts: Facts) -> Facts:
    it = found_in(ENTRY, facts)
    assert it is not None
    return it


@given(st.integers(0, 43_200), st.none() | st.integers(1, 43_200))
def test_a_race_is_never_guessed_about(visibility: int, person: int | None) -> None:
    answer = refused(ENTRY, found(raced(visibility, person_visibility_seconds=person)))
    assert answer.code == "race_without_named_need"
    assert "nothing names how long they need" in answer.reason


def test_the_same_facts_with_failed_calls_behind_them_are_guessed_about() -> None:
    assert planned(ENTRY, raced())


@given(st.integers(1, 2_000), st.integers(0, 1_000))
def test_a_named_need_is_met_in_full_or_a_person_is_called(seconds: int, visibility: int) -> None:
    facts = found(raced(visibility, seconds))
    answer = answer_to(ENTRY, facts)
    if isinstance(answer, Plan):
        assert int(step_of(answer).after) >= 1.5 * seconds
        assert answer.reason.endswith(facts.found)
    else:
        is_met = visibility >= 1.5 * seconds
        assert answer.code == ("race_without_named_need" if is_met else "over_ceiling")


def test_a_tag_that_cannot_be_read_is_said_rather_than_guessed_about() -> None:
    assert refused(ENTRY, found(raced(30, "SECONDS"))).code == "tag_unreadable"


@pytest.mark.parametrize(
    ("over", "races"),
    [
        ({"measured": None}, False),
        ({"move_task_running": True}, False),
        ({"dlq_sources": None}, False),
        ({"lambda_consumers": (FAILING,)}, False),
        ({"lambda_consumers": (consumer(30, 5, 29.0, 0.9),)}, True),
        ({"queue_arn": QUEUE_ARN}, True),
    ],
)
def test_what_something_else_explains_is_not_found(over: dict[str, Any], *, races: bool) -> None:
    assert bool(race_in(but(raced(), **over))) is races


@pytest.mark.parametrize(
    ("facts", "suspect"),
    [
        (queue(30), False),
        (queue(35, None, LAMBDA), False),
        (queue(34, None, LAMBDA), True),
        (queue(30, 20), False),
        (queue(30, 21), True),
        (queue(30, "soon"), False),
        (queue(30, ApproximateNumberOfMessages=1), True),
        (queue(30, ApproximateNumberOfMessagesNotVisible=1), True),
    ],
)
def test_a_suspect_has_work_or_a_need_above_its_visibility(facts: Facts, *, suspect: bool) -> None:
    assert may_race(facts) is suspect


@pytest.mark.parametrize(
    ("received", "deleted", "pages"),
    [(2_000, 1_500, True), (1_999, 1_500, False), (2_000, 1_499, False)],
)
def test_what_may_be_retries_is_never_fixed(received: int, deleted: int, *, pages: bool) -> None:
    facts = found(raced(30, 40, received=received, deleted=deleted))
    if pages:
        assert refused(ENTRY, facts).code == "race_or_retries"
    else:
        assert planned(ENTRY, facts)
