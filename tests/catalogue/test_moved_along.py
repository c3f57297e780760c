"""Test how many good messages of a FIFO group a DLQ takes along, and who approves such a DLQ."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mendq.cases.spread import Reach
from mendq.cases.view import CaseStoreView
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.examples import (
    EXAMPLE_TIME,
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    STANDARD_ARN,
    queue,
    replace_values,
)
from mendq.catalogue.fifo.fifo_group_blocked import FIFO_GROUP_BLOCKED
from mendq.catalogue.symptom import Symptom
from mendq.heal.decide import RecordTransition, decide
from mendq.heal.situation import Situation
from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, RedrivePolicy, arn_of_dlq
from mendq.model.state import State
from mendq.model.steps import Owner
from tests.catalogue.asking import expect_plan, expect_refusal, queue_examples_of

EXAMPLES = queue_examples_of(FIFO_GROUP_BLOCKED)
BLOCKED = EXAMPLES[0].facts
STILL = EXAMPLES[1].facts
MEASURED_UNTIL = BLOCKED.measurement.until if BLOCKED.measurement else EXAMPLE_TIME
LONG_AGO = MEASURED_UNTIL - timedelta(days=30)
ONE_BY_ONE = replace(LAMBDA_FUNCTION, mapping_id="m-1", batch_size=1, modified_at=LONG_AGO)
SIGHTINGS = (Sighting.from_scan(EXAMPLE_TIME),)
# A FIFO queue without DLQ, read by a function, in which no group is blocked.
QUEUE_WITH_FUNCTION = queue(
    lambda_consumers=(LAMBDA_FUNCTION,),
    dlq_sources=(),
    dlq_namesake=QueueFacts(arn_of_dlq(QUEUE_ARN), {}),
    sent=60,
    received=60,
    deleted=60,
)


def make_blocked_queue(number: int, facts: Facts = BLOCKED, **over: Any) -> Facts:
    """Make the blocked queue with `number` messages, one of them in flight."""
    visible = number - 1
    return replace_values(
        facts,
        ApproximateNumberOfMessages=visible,
        ApproximateNumberOfMessagesNotVisible=1,
        visible_now=visible,
        backlog_now=number,
        **over,
    )


def make_blocked_queue_read_by(*consumers: LambdaConsumer, number: int = 60) -> Facts:
    return make_blocked_queue(number, lambda_consumers=consumers)


def plan_reason(facts: Facts) -> str:
    return expect_plan(FIFO_GROUP_BLOCKED, facts).reason


def read_bounds(facts: Facts) -> tuple[int, int]:
    """Return the most good messages that move now, and if more messages arrive."""
    reason = plan_reason(facts)
    now = re.search(r"Up to ([\d,]+) good messages? would move", reason)
    later = re.search(r"up to ([\d,]+) if more messages arrive", reason)
    assert now is not None, reason
    most_now = int(now[1].replace(",", ""))
    return most_now, int(later[1].replace(",", "")) if later else most_now


def test_dlq_plan_of_a_blocked_group_says_that_nine_good_messages_may_move_and_why() -> None:
    assert read_bounds(make_blocked_queue(60)) == (9, 9)
    reason = plan_reason(make_blocked_queue(60))
    assert (
        "Up to 9 good messages would move to the DLQ with the failing one (60 wait now)" in reason
    )
    assert "SQS hands out up to 10 of a group together and counts the receive for each" in reason


@pytest.mark.parametrize(
    ("number", "now", "later"), [(1, 0, 9), (2, 1, 9), (9, 8, 9), (10, 9, 9), (11, 9, 9)]
)
def test_dlq_plan_of_a_blocked_group_says_how_many_messages_would_move_now_and_later(
    number: int, now: int, later: int
) -> None:
    assert read_bounds(make_blocked_queue(number)) == (now, later)


def test_dlq_plan_of_a_blocked_group_counts_the_good_messages_of_each_group_in_flight() -> None:
    assert read_bounds(make_blocked_queue(500, STILL, groups_in_flight_now=4, deleted=360)) == (
        36,
        36,
    )
    assert read_bounds(make_blocked_queue(20, STILL, groups_in_flight_now=4)) == (19, 36)


def test_dlq_plan_says_that_no_good_message_moves_if_the_function_takes_one_at_a_time() -> None:
    reason = plan_reason(make_blocked_queue_read_by(ONE_BY_ONE))
    assert "takes one message at a time, so no good message moves to the DLQ" in reason


@pytest.mark.parametrize(
    ("consumers", "later"),
    [
        ((replace(ONE_BY_ONE, batch_size=4),), 3),
        ((ONE_BY_ONE, replace(ONE_BY_ONE, batch_size=4)), 3),
        ((replace(ONE_BY_ONE, batch_size=10),), 9),
    ],
)
def test_dlq_plan_limits_the_good_messages_by_the_largest_batch_size_of_the_consumers(
    consumers: tuple[LambdaConsumer, ...], later: int
) -> None:
    assert read_bounds(make_blocked_queue_read_by(*consumers))[1] == later


@pytest.mark.parametrize(
    "modified_at", [None, MEASURED_UNTIL, MEASURED_UNTIL - timedelta(seconds=22_200)]
)
def test_dlq_plan_does_not_rely_on_a_batch_size_set_after_the_oldest_message_arrived(
    modified_at: Any,
) -> None:
    """SQS has already counted the receives of earlier, larger batches."""
    assert read_bounds(
        make_blocked_queue_read_by(replace(ONE_BY_ONE, modified_at=modified_at))
    ) == (9, 9)


def test_dlq_plan_does_not_rely_on_the_batch_size_if_another_consumer_was_stopped() -> None:
    facts = replace(
        make_blocked_queue_read_by(ONE_BY_ONE),
        stopped_consumers=("arn:aws:lambda:...:function:old",),
    )
    assert read_bounds(facts) == (9, 9)


@st.composite
def blocked_groups(draw: st.DrawFn) -> tuple[Facts, int]:
    """Draw a queue with a blocked group, and the number of good messages that a DLQ takes along.

    The consumer receives a batch of the group, and the batch fails. Producers send in between.
    """
    batch = draw(st.integers(1, 10))
    tries = draw(st.lists(st.integers(0, 6), min_size=DEFAULT_MAX_RECEIVE_COUNT, max_size=40))
    receives = [0]
    for sent in tries:
        receives[:batch] = [count + 1 for count in receives[:batch]]
        receives += [0] * sent
    dead = sum(count >= DEFAULT_MAX_RECEIVE_COUNT for count in receives)
    knows_batch = draw(st.booleans())
    consumers = (replace(ONE_BY_ONE, batch_size=batch),) if knows_batch else ()
    return make_blocked_queue(len(receives), lambda_consumers=consumers), dead - 1


@given(blocked_groups())
def test_dlq_plan_never_says_fewer_good_messages_than_move_in_any_simulated_group(
    drawn: tuple[Facts, int],
) -> None:
    facts, dead = drawn
    if "no good message moves" in plan_reason(facts):
        assert dead == 0
    else:
        now, later = read_bounds(facts)
        assert dead <= now <= later


def test_dlq_plan_of_a_blocked_group_has_one_command_that_sends_the_good_messages_back() -> None:
    (command,) = re.findall(r"`(mendq redrive [^`]+)`", plan_reason(BLOCKED))
    assert shlex.split(command) == [
        "mendq",
        "redrive",
        "orders.fifo",
        "--all",
        "--leave-first",
        "--region",
        "us-east-1",
    ]


def test_missing_dlq_of_a_fifo_queue_says_how_many_good_messages_a_failing_one_takes_along() -> (
    None
):
    """At first, Mendq reports a blocked group as a missing DLQ."""
    reason = expect_plan(DLQ_MISSING, QUEUE_WITH_FUNCTION).reason
    assert "A message that fails takes up to 9 good messages of its group along" in reason
    assert "`mendq redrive orders.fifo --all --leave-first --region us-east-1`" in reason


def test_missing_dlq_of_a_fifo_queue_read_one_by_one_says_that_only_the_failing_one_moves() -> None:
    one = replace(LAMBDA_FUNCTION, batch_size=1, modified_at=LONG_AGO)
    facts = replace(QUEUE_WITH_FUNCTION, lambda_consumers=(one,))
    assert "what fails moves to the DLQ alone" in expect_plan(DLQ_MISSING, facts).reason


def test_deleted_dlq_of_a_fifo_queue_is_only_proposed_again_and_the_plan_counts_good_messages() -> (
    None
):
    policy = RedrivePolicy(arn_of_dlq(QUEUE_ARN), 5).text
    facts = replace_values(QUEUE_WITH_FUNCTION, RedrivePolicy=policy)
    again = expect_plan(DLQ_MISSING, replace(facts, dlq=QueueFacts(arn_of_dlq(QUEUE_ARN), {})))
    assert again.highest_mode is Mode.PROPOSE
    assert "up to 9 good messages" in again.reason


WHOLE_BATCH_FAILS = replace(LAMBDA_FUNCTION, mapping_id="m-7", batch_size=5, modified_at=LONG_AGO)


def test_page_says_how_to_make_sure_that_the_first_message_is_the_failing_one() -> None:
    (section,) = FIFO_GROUP_BLOCKED.extra_sections(make_blocked_queue_read_by(WHOLE_BATCH_FAILS))
    text = " ".join(section.lines)
    assert "set batch size 1" in text
    change = "aws lambda update-event-source-mapping --region us-east-1 --uuid m-7 --batch-size 1"
    assert change in section.lines
    assert "mendq redrive orders.fifo --all --leave-first --region us-east-1" in section.lines
    assert "at most 4 per group" in text


def test_page_about_a_function_that_reports_single_failures_does_not_change_its_batch_size() -> (
    None
):
    stops_at_the_first = replace(WHOLE_BATCH_FAILS, reports_item_failures=True)
    (section,) = FIFO_GROUP_BLOCKED.extra_sections(make_blocked_queue_read_by(stops_at_the_first))
    assert not any("update-event-source-mapping" in line for line in section.lines)


def test_page_about_a_function_that_takes_one_message_has_no_section_on_the_first_message() -> None:
    assert FIFO_GROUP_BLOCKED.extra_sections(make_blocked_queue_read_by(ONE_BY_ONE)) == ()


def make_blocked_queue_with_longest_names() -> Facts:
    name = "x" * 75 + ".fifo"
    facts = replace(STILL, queue_arn=f"arn:aws:sqs:ap-southeast-4:123456789012:{name}")
    return replace(facts, dlq_namesake=QueueFacts(arn_of_dlq(facts.queue_arn), {}))


def test_page_about_a_blocked_group_has_the_redrive_command_in_its_first_1000_characters() -> None:
    """Mendq cuts the text of a page after 1,000 characters."""
    sentence = plan_reason(make_blocked_queue_with_longest_names())
    assert sentence.index("--leave-first") < 1_000


def test_page_about_a_high_max_receive_count_has_at_most_1000_characters() -> None:
    facts = make_blocked_queue_with_longest_names()
    policy = RedrivePolicy(arn_of_dlq(facts.queue_arn), 1_000).text
    late = replace_values(facts, RedrivePolicy=policy)
    assert len(expect_refusal(FIFO_GROUP_BLOCKED, late).reason) < 1_000


def test_page_about_a_high_max_receive_count_says_how_many_good_messages_would_move() -> None:
    late = replace_values(STILL, RedrivePolicy=RedrivePolicy(arn_of_dlq(QUEUE_ARN), 1_000).text)
    refusal = expect_refusal(FIFO_GROUP_BLOCKED, late)
    assert refusal.code == "waits_for_dlq"
    assert "Up to 9 good messages" in refusal.reason
    assert "--leave-first" in refusal.reason


def make_situation(symptom: Symptom, facts: Facts, waiting_case: Case | None = None) -> Situation:
    """Make the situation of a queue in heal mode, with settings that need no person."""
    fault = symptom.detection and symptom.detection.detect(facts)
    assert fault
    return Situation(
        symptom=symptom,
        facts=replace(facts, found=fault.because),
        mode=Mode.HEAL,
        view=CaseStoreView(),
        now=EXAMPLE_TIME,
        owner="me",
        writer=Owner.ATTACH_DLQ,
        limits=Limits(),
        timing=Timing(),
        evidence=Evidence(SIGHTINGS),
        fresh_sightings=SIGHTINGS,
        waiting_case=waiting_case,
        are_facts_read=True,
        reach=Reach(),
    )


WITHOUT_DLQ = [
    (FIFO_GROUP_BLOCKED, BLOCKED),
    (FIFO_GROUP_BLOCKED, STILL),
    (FIFO_GROUP_BLOCKED, make_blocked_queue_read_by(ONE_BY_ONE)),
    (DLQ_MISSING, QUEUE_WITH_FUNCTION),
]


@pytest.mark.parametrize(("symptom", "facts"), WITHOUT_DLQ)
@pytest.mark.parametrize("whose", [Owner.HEAL, Owner.ATTACH_DLQ])
def test_fifo_queue_gets_only_a_proposal_of_a_dlq_even_in_heal_mode(
    symptom: Symptom, facts: Facts, whose: Owner
) -> None:

    decision = decide(structs.replace(make_situation(symptom, facts), writer=whose))
    assert isinstance(decision, RecordTransition), "nothing is written"
    assert decision.case.state is State.PROPOSED


@pytest.mark.parametrize(("symptom", "facts"), WITHOUT_DLQ)
def test_case_that_settings_approved_for_giving_a_fifo_queue_a_dlq_expires_without_a_write(
    symptom: Symptom, facts: Facts
) -> None:
    """Before Mendq asked a person about it, settings could approve such a case."""
    steps = expect_plan(symptom, facts).steps
    by_settings = start_case(
        State.APPROVED,
        queue_arn=facts.queue_arn,
        symptom=symptom.name,
        reason="settings let it",
        evidence=Evidence(SIGHTINGS),
        steps=steps,
        now=EXAMPLE_TIME - timedelta(minutes=5),
        actor="heal",
        previous=None,
    )
    decision = decide(make_situation(symptom, facts, by_settings))
    assert isinstance(decision, RecordTransition), "nothing is written"
    assert decision.refusal is not None
    assert decision.refusal.code == "not_by_itself"
    assert decision.case.state is State.EXPIRED


def test_dlq_may_be_attached_automatically_to_a_standard_queue_and_not_to_a_fifo_queue() -> None:
    """In a standard queue, no message blocks another."""
    standard = replace(
        QUEUE_WITH_FUNCTION,
        queue_arn=STANDARD_ARN,
        dlq_namesake=QueueFacts(arn_of_dlq(STANDARD_ARN), {}),
    )
    assert expect_plan(DLQ_MISSING, standard).highest_mode is Mode.HEAL
    assert expect_plan(DLQ_MISSING, QUEUE_WITH_FUNCTION).highest_mode is Mode.PROPOSE
