"""How many good messages move to a DLQ with the one that blocks their group, and who approves."""

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

BLOCKED, STILL, *_ = (each.facts for each in queue_examples_of(FIFO_GROUP_BLOCKED))
MEASURED_UNTIL = BLOCKED.measurement.until if BLOCKED.measurement else EXAMPLE_TIME
LONG_AGO = MEASURED_UNTIL - timedelta(days=30)
ONE_BY_ONE = replace(LAMBDA_FUNCTION, mapping_id="m-1", batch_size=1, modified_at=LONG_AGO)
HEARD = (Sighting.from_scan(EXAMPLE_TIME),)
# A FIFO queue without DLQ that a function reads, of which nothing shows that a group is blocked.
READ = queue(
    lambda_consumers=(LAMBDA_FUNCTION,),
    dlq_sources=(),
    dlq_namesake=QueueFacts(arn_of_dlq(QUEUE_ARN), {}),
    sent=60,
    received=60,
    deleted=60,
)


def waiting(number: int, facts: Facts = BLOCKED, **over: Any) -> Facts:
    """The blocked queue with so many messages, one of them in flight."""
    visible = number - 1
    return replace_values(
        facts,
        ApproximateNumberOfMessages=visible,
        ApproximateNumberOfMessagesNotVisible=1,
        visible_now=visible,
        backlog_now=number,
        **over,
    )


def read_by(*consumers: LambdaConsumer, number: int = 60) -> Facts:
    return waiting(number, lambda_consumers=consumers)


def plan_reason(facts: Facts) -> str:
    return expect_plan(FIFO_GROUP_BLOCKED, facts).reason


def bounds_said(facts: Facts) -> tuple[int, int]:
    """Return the most good messages that move now, and if more messages arrive."""
    reason = plan_reason(facts)
    now = re.search(r"Up to ([\d,]+) good messages? would move", reason)
    later = re.search(r"up to ([\d,]+) if more messages arrive", reason)
    assert now is not None, reason
    most_now = int(now[1].replace(",", ""))
    return most_now, int(later[1].replace(",", "")) if later else most_now


def test_plan_says_that_nine_good_messages_may_move_and_why() -> None:
    assert bounds_said(waiting(60)) == (9, 9)
    reason = plan_reason(waiting(60))
    assert (
        "Up to 9 good messages would move to the DLQ with the failing one (60 wait now)" in reason
    )
    assert "SQS hands out up to 10 of a group together and counts the receive for each" in reason


@pytest.mark.parametrize(
    ("number", "now", "later"), [(1, 0, 9), (2, 1, 9), (9, 8, 9), (10, 9, 9), (11, 9, 9)]
)
def test_plan_says_no_more_than_wait_now_and_how_many_may_come(
    number: int, now: int, later: int
) -> None:
    assert bounds_said(waiting(number)) == (now, later)


def test_plan_counts_each_group_that_is_in_flight() -> None:
    assert bounds_said(waiting(500, STILL, groups_in_flight_now=4, deleted=360)) == (36, 36)
    assert bounds_said(waiting(20, STILL, groups_in_flight_now=4)) == (19, 36)


def test_plan_of_a_function_that_takes_one_message_says_that_no_good_one_moves() -> None:
    reason = plan_reason(read_by(ONE_BY_ONE))
    assert "takes one message at a time, so no good message moves to the DLQ" in reason


@pytest.mark.parametrize(
    ("consumers", "later"),
    [
        ((replace(ONE_BY_ONE, batch_size=4),), 3),
        ((ONE_BY_ONE, replace(ONE_BY_ONE, batch_size=4)), 3),
        ((replace(ONE_BY_ONE, batch_size=10),), 9),
    ],
)
def test_plan_bounds_by_the_largest_batch_of_its_mappings(
    consumers: tuple[LambdaConsumer, ...], later: int
) -> None:
    assert bounds_said(read_by(*consumers))[1] == later


@pytest.mark.parametrize(
    "modified_at", [None, MEASURED_UNTIL, MEASURED_UNTIL - timedelta(seconds=22_200)]
)
def test_plan_does_not_rely_on_a_batch_size_that_is_newer_than_the_oldest_message(
    modified_at: Any,
) -> None:
    """The receives of earlier, larger batches are counted already."""
    assert bounds_said(read_by(replace(ONE_BY_ONE, modified_at=modified_at))) == (9, 9)


def test_plan_does_not_rely_on_the_batch_size_of_a_mapping_beside_one_that_was_stopped() -> None:
    facts = replace(read_by(ONE_BY_ONE), stopped_consumers=("arn:aws:lambda:...:function:old",))
    assert bounds_said(facts) == (9, 9)


@st.composite
def blocked_groups(draw: st.DrawFn) -> tuple[Facts, int]:
    """A queue whose group was blocked for a while, and how many good messages a DLQ takes along.

    The consumer receives a batch of the group, which fails; others are sent in between.
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
    return waiting(len(receives), lambda_consumers=consumers), dead - 1


@given(blocked_groups())
def test_no_more_good_messages_die_than_the_plan_said(drawn: tuple[Facts, int]) -> None:
    facts, dead = drawn
    if "no good message moves" in plan_reason(facts):
        assert dead == 0
    else:
        now, later = bounds_said(facts)
        assert dead <= now <= later


def test_plan_has_one_command_that_sends_the_good_messages_back() -> None:
    (command,) = re.findall(r"`(mendq redrive [^`]+)`", plan_reason(BLOCKED))
    assert shlex.split(command) == [
        *("mendq", "redrive", "orders.fifo", "--all", "--leave-first", "--region", "us-east-1")
    ]


def test_missing_dlq_of_a_fifo_queue_says_what_a_failing_message_takes_along() -> None:
    """Until it stands still for long enough, a blocked group is reported as a missing DLQ."""
    reason = expect_plan(DLQ_MISSING, READ).reason
    assert "A message that fails takes up to 9 good messages of its group along" in reason
    assert "`mendq redrive orders.fifo --all --leave-first --region us-east-1`" in reason
    one = replace(LAMBDA_FUNCTION, batch_size=1, modified_at=LONG_AGO)
    alone = expect_plan(DLQ_MISSING, replace(READ, lambda_consumers=(one,))).reason
    assert "what fails moves to the DLQ alone" in alone
    gone = replace_values(READ, RedrivePolicy=RedrivePolicy(arn_of_dlq(QUEUE_ARN), 5).text)
    gone = replace(gone, dlq=QueueFacts(arn_of_dlq(QUEUE_ARN), {}))
    again = expect_plan(DLQ_MISSING, gone)
    assert again.at_most is Mode.PROPOSE
    assert "up to 9 good messages" in again.reason


def test_page_says_how_to_make_sure_that_the_first_message_is_the_failing_one() -> None:
    whole = replace(LAMBDA_FUNCTION, mapping_id="m-7", batch_size=5, modified_at=LONG_AGO)
    (section,) = FIFO_GROUP_BLOCKED.extra_sections(read_by(whole))
    text = " ".join(section.lines)
    assert "set batch size 1" in text
    change = "aws lambda update-event-source-mapping --region us-east-1 --uuid m-7 --batch-size 1"
    assert change in section.lines
    assert "mendq redrive orders.fifo --all --leave-first --region us-east-1" in section.lines
    assert "at most 4 per group" in text
    stops_at_the_first = replace(whole, reports_item_failures=True)
    (section,) = FIFO_GROUP_BLOCKED.extra_sections(read_by(stops_at_the_first))
    assert not any("update-event-source-mapping" in line for line in section.lines)
    assert FIFO_GROUP_BLOCKED.extra_sections(read_by(ONE_BY_ONE)) == ()


def test_page_fits_even_with_the_longest_names() -> None:
    """What is longer than 1,000 characters is cut from a page."""
    name = "x" * 75 + ".fifo"
    facts = replace(STILL, queue_arn=f"arn:aws:sqs:ap-southeast-4:123456789012:{name}")
    facts = replace(facts, dlq_namesake=QueueFacts(arn_of_dlq(facts.queue_arn), {}))
    sentence = plan_reason(facts)
    end = sentence.index("without the failing one")
    assert end < 1_000
    late = replace_values(
        facts, RedrivePolicy=RedrivePolicy(arn_of_dlq(facts.queue_arn), 1_000).text
    )
    assert len(expect_refusal(FIFO_GROUP_BLOCKED, late).reason) < 1_000


def test_page_about_a_dlq_that_is_far_away_says_what_its_own_advice_costs() -> None:
    late = replace_values(STILL, RedrivePolicy=RedrivePolicy(arn_of_dlq(QUEUE_ARN), 1_000).text)
    refusal = expect_refusal(FIFO_GROUP_BLOCKED, late)
    assert refusal.code == "waits_for_dlq"
    assert "Up to 9 good messages" in refusal.reason
    assert "--leave-first" in refusal.reason


def situation(symptom: Symptom, facts: Facts, waiting_case: Case | None = None) -> Situation:
    """A queue in heal mode, with settings that let Mendq do all of it without a person."""
    found = symptom.detection and symptom.detection.detect(facts)
    assert found
    return Situation(
        symptom=symptom,
        facts=replace(facts, found=found.because),
        mode=Mode.HEAL,
        view=CaseStoreView(),
        now=EXAMPLE_TIME,
        owner="me",
        writer=Owner.ATTACH_DLQ,
        limits=Limits(),
        timing=Timing(),
        evidence=Evidence(HEARD),
        fresh_sightings=HEARD,
        waiting_case=waiting_case,
        are_facts_read=True,
        reach=Reach(),
    )


WITHOUT_DLQ = [
    (FIFO_GROUP_BLOCKED, BLOCKED),
    (FIFO_GROUP_BLOCKED, STILL),
    (FIFO_GROUP_BLOCKED, read_by(ONE_BY_ONE)),
    (DLQ_MISSING, READ),
]


@pytest.mark.parametrize(("symptom", "facts"), WITHOUT_DLQ)
@pytest.mark.parametrize("whose", [Owner.HEAL, Owner.ATTACH_DLQ])
def test_fifo_queue_gets_a_dlq_only_after_a_person_agreed_whatever_the_mode(
    symptom: Symptom, facts: Facts, whose: Owner
) -> None:

    decision = decide(structs.replace(situation(symptom, facts), writer=whose))
    assert isinstance(decision, RecordTransition), "nothing is written"
    assert decision.case.state is State.PROPOSED


@pytest.mark.parametrize(("symptom", "facts"), WITHOUT_DLQ)
def test_case_that_settings_approved_earlier_is_not_carried_out(
    symptom: Symptom, facts: Facts
) -> None:
    """Before Mendq asked a person about it, settings could approve such a case."""
    steps = expect_plan(symptom, facts).steps
    by_settings = start_case(
        State.APPROVED,
        queue_arn=facts.queue_arn,
        symptom=symptom.name,
        reason="settings let it",
        evidence=Evidence(HEARD),
        steps=steps,
        now=EXAMPLE_TIME - timedelta(minutes=5),
        actor="heal",
        previous=None,
    )
    decision = decide(situation(symptom, facts, by_settings))
    assert isinstance(decision, RecordTransition), "nothing is written"
    assert decision.refusal is not None
    assert decision.refusal.code == "not_by_itself"
    assert decision.case.state is State.EXPIRED


def test_standard_queue_may_still_get_a_dlq_by_itself() -> None:
    """A near miss: on a standard queue no message holds another up."""
    standard = replace(
        READ, queue_arn=STANDARD_ARN, dlq_namesake=QueueFacts(arn_of_dlq(STANDARD_ARN), {})
    )
    assert expect_plan(DLQ_MISSING, standard).at_most is Mode.HEAL
    assert expect_plan(DLQ_MISSING, READ).at_most is Mode.PROPOSE
