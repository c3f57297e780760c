"""When messages that come back from a DLQ are a loop, and who is paged about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import (
    DLQ_ARN,
    EXAMPLE_TIME,
    FAILING_FUNCTION,
    make_last_hour,
    measurement,
    queue_with_dlq,
)
from mendq.catalogue.symptom import DetectedFault
from mendq.model.facts import Facts, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import MinuteCounts, RecentCounts
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.redrives import MoveTask, Redrives

LOOP = SYMPTOM_BY_NAME["redrive_loop"]
BEGIN = EXAMPLE_TIME - timedelta(hours=6)
ROUNDS = (60, 180, 300)
RECEIVES = 3


def make_queue(
    failed_receives: Sequence[int] = (60, 60, 60),
    resent: Sequence[int] = (0, 0, 0),
    *,
    moved: int = 0,
    deleted_from_dlq: int = 0,
    finished: int = 1,
    dlq_messages: int = 20,
    returning_messages: int = 0,
    **overrides: Any,
) -> Facts:
    """Return a queue to which one message comes in each of 360 minutes.

    Args:
        failed_receives: The further receives without a delete in the minutes of ROUNDS.
        resent: The further sends in the same minutes.
        moved: The messages that a move task moved in each of these minutes; 0 without tasks.
        deleted_from_dlq: The deletes from the DLQ in each of these minutes.
        finished: How many messages are deleted in each minute.
        dlq_messages: The messages in the DLQ now.
        returning_messages: The messages in flight in the queue now.
        overrides: Other facts.
    """
    minutes = [MinuteCounts(1, 1, finished)] * 360
    for minute, failed_count, resent_count in zip(ROUNDS, failed_receives, resent, strict=True):
        minutes[minute] = MinuteCounts(1 + resent_count, 1 + failed_count, finished)
    times = [BEGIN + timedelta(minutes=minute) for minute in ROUNDS]
    redrives = Redrives(
        tuple(MoveTask(at, moved) for at in times) if moved else (),
        tuple((at, deleted_from_dlq) for at in times) if deleted_from_dlq else (),
    )
    facts = queue_with_dlq(
        RECEIVES,
        ApproximateNumberOfMessagesNotVisible=returning_messages,
        dlq=QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": str(dlq_messages)}),
        **{"redrives": redrives, **overrides},
    )
    return replace_minutes(facts, minutes)


def replace_minutes(facts: Facts, minutes: Sequence[MinuteCounts]) -> Facts:
    """Return a copy of the queue with these counts per minute, and with their sums as totals."""
    measured = measurement(
        sent=sum(counts.sent for counts in minutes),
        received=sum(counts.received for counts in minutes),
        deleted=sum(counts.deleted for counts in minutes),
        recent=RecentCounts(minutes=tuple(minutes)),
    )
    return replace(facts, measurement=measured)


def find(facts: Facts) -> DetectedFault | None:
    assert LOOP.detection
    return LOOP.detection.detect(facts)


def answer(facts: Facts) -> Refusal:
    assert LOOP.plan
    plan = LOOP.plan(facts, Limits())
    assert isinstance(plan, Refusal)
    return plan


@pytest.mark.parametrize(("moved", "is_loop"), [pytest.param(3, True), pytest.param(2, False)])
def test_rounds_of_move_tasks_need_three_messages(moved: int, is_loop: bool) -> None:
    facts = make_queue((9, 9, 9), moved=moved, dlq_messages=moved)
    assert (find(facts) is not None) is is_loop


@pytest.mark.parametrize(
    ("failed_receives", "is_loop"),
    [pytest.param((30, 30, 30), True), pytest.param((30, 30, 29), False)],
)
def test_each_of_three_rounds_needs_half_of_the_receives_before_the_dlq(
    failed_receives: tuple[int, ...], is_loop: bool
) -> None:
    assert (find(make_queue(failed_receives, moved=20)) is not None) is is_loop


@pytest.mark.parametrize(
    ("resent", "is_loop"),
    [
        pytest.param((20, 20, 20), True, id="as many as were deleted"),
        pytest.param((9, 20, 20), False, id="too few in one of three rounds"),
        pytest.param((31, 31, 31), False, id="more than a job sends back"),
        pytest.param((0, 0, 0), False, id="none: the job archives"),
    ],
)
def test_rounds_of_a_job_need_as_many_sends_as_the_dlq_has_deletes(
    resent: tuple[int, ...], is_loop: bool
) -> None:
    assert (find(make_queue(resent=resent, deleted_from_dlq=20)) is not None) is is_loop


@pytest.mark.parametrize(
    ("dlq_messages", "returning_messages", "is_loop"),
    [
        pytest.param(25, 0, True, id="they are in the DLQ"),
        pytest.param(26, 0, False, id="too many for three rounds each"),
        pytest.param(9, 10, True, id="they are on their way"),
        pytest.param(9, 9, False, id="most of them are gone"),
    ],
)
def test_messages_that_went_round_must_be_there_still(
    dlq_messages: int, returning_messages: int, is_loop: bool
) -> None:
    facts = make_queue(moved=20, dlq_messages=dlq_messages, returning_messages=returning_messages)
    assert (find(facts) is not None) is is_loop


def test_job_that_empties_the_dlq_in_most_minutes_is_not_told_from_an_archive() -> None:
    """The usual sends of the source are not known then."""
    busy_numbers = [number for number in range(360) if number % 120 < 111]
    minutes = [MinuteCounts(1, 1, 1)] * 360
    for number in busy_numbers:
        minutes[number] = MinuteCounts(2, 4, 1)
    deletes = tuple((BEGIN + timedelta(minutes=number), 1) for number in busy_numbers)
    facts = make_queue(dlq_messages=111, redrives=Redrives(dlq_deletes=deletes))
    assert find(replace_minutes(facts, minutes)) is None


def test_move_tasks_before_the_measured_time_are_no_rounds() -> None:
    facts = make_queue(moved=20)
    assert facts.measurement
    minutes = list(facts.measurement.recent.minutes)
    minutes[2], minutes[ROUNDS[0]] = minutes[ROUNDS[0]], minutes[2]
    facts = replace_minutes(facts, minutes)
    assert facts.redrives
    later_tasks = facts.redrives.move_tasks[1:]
    for minute, is_loop in ((1, True), (-1, False)):
        first_task = MoveTask(BEGIN + timedelta(minutes=minute), 20)
        assert (
            find(replace(facts, redrives=Redrives((first_task, *later_tasks)))) is not None
        ) is is_loop


@pytest.mark.parametrize(("finished", "kind"), [pytest.param(1, Refuse), pytest.param(0, Escalate)])
def test_loop_pages_only_if_nothing_else_is_finished(finished: int, kind: type[Refusal]) -> None:
    facts = make_queue(moved=20, finished=finished)
    assert find(facts)
    assert type(answer(facts)) is kind


@pytest.mark.parametrize(("finished", "pages"), [pytest.param(1, False), pytest.param(0, True)])
@pytest.mark.parametrize("dlq_messages", [10, 20, 24])
def test_page_about_the_dlq_waits_for_a_loop_only_if_the_loop_pages(
    finished: int, pages: bool, dlq_messages: int
) -> None:
    """The DLQ may hold what goes round and nothing else: people may not know of that either."""
    facts = make_queue(moved=20, finished=finished, dlq_messages=dlq_messages)
    fault = find(facts)
    assert fault
    assert fault.should_page is pages
    assert isinstance(answer(facts), Escalate) is pages


@pytest.mark.parametrize(
    ("unfinished", "pages"),
    [
        pytest.param(21, False, id="as inexact counters may show"),
        pytest.param(22, True, id="one more"),
    ],
)
def test_loop_pages_if_other_messages_are_unfinished(unfinished: int, pages: bool) -> None:
    """Rounds can be faked, and `consumer_failing` waits for a loop: it would not page then."""
    facts = make_queue(resent=(20, 20, 20), deleted_from_dlq=20)
    assert facts.measurement
    minutes = list(facts.measurement.recent.minutes)
    for number in range(unfinished):
        minutes[number] = MinuteCounts(1, 3, 0)
    facts = replace_minutes(facts, minutes)
    fault = find(facts)
    assert fault
    assert fault.should_page is pages
    assert isinstance(answer(facts), Escalate) is pages


def test_consumer_that_finishes_nothing_is_not_called_a_loop_of_a_job() -> None:
    """`consumer_failing` pages about it, and the consumer is the cause."""
    assert find(make_queue(resent=(20, 20, 20), deleted_from_dlq=20, finished=0)) is None


def test_function_that_fails_at_everything_is_not_called_a_loop_of_move_tasks() -> None:
    """`function_errors` pages about it."""
    function = replace(FAILING_FUNCTION, invocations=500, error_share=1.0)
    facts = make_queue(moved=20, finished=0, lambda_consumers=(function,))
    assert facts.measurement
    recent = replace(make_last_hour(60, 0), minutes=facts.measurement.recent.minutes, received=240)
    facts = replace(facts, measurement=replace(facts.measurement, recent=recent))
    errors = SYMPTOM_BY_NAME["function_errors"].detection
    assert errors
    assert errors.detect(facts)
    assert find(facts) is None


def test_moved_messages_are_not_new_ones_even_if_sqs_counts_them_as_sent() -> None:
    """AWS does not say if it does. They would look like messages that nobody finishes."""
    facts = make_queue((600, 600, 600), (200, 200, 200), moved=200, dlq_messages=200)
    fault = find(facts)
    assert fault
    assert "360 other messages arrived" in fault.because
    assert type(answer(facts)) is Refuse


@pytest.mark.parametrize("name", ["consumer_failing", "function_errors", "dlq_messages_arriving"])
def test_consequence_of_a_loop_gives_way_to_it(name: str) -> None:
    assert "redrive_loop" in SYMPTOM_BY_NAME[name].gives_way_to
