"""Test when a DLQ is attached, proposed or refused. A wrong answer moves good messages to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.consumers.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.dlq.attach import plan_named_dlq, plan_new_dlq
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.examples import (
    DLQ_ARN,
    FAILING_FUNCTION,
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    STANDARD_ARN,
    measurement,
    queue,
    replace_values,
    standard_queue,
)
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts
from mendq.model.metrics import Measurement, RecentCounts
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.queue import (
    DEFAULT_MAX_RECEIVE_COUNT,
    MOST_RECEIVES_BEFORE_DLQ,
    RedrivePolicy,
    arn_of_dlq,
    parse_redrive_policy,
)
from tests.catalogue.asking import answer_to, detect_fault, expect_plan, expect_refusal


def make_queue_with_counts(
    *, sent: int, received: int, deleted: int, left: int, **over: Any
) -> Facts:
    """Make a queue without a DLQ, with these counts of six hours and `left` messages now."""
    facts = standard_queue(
        ApproximateNumberOfMessages=left,
        dlq_namesake=QueueFacts(DLQ_ARN, {}),
        sent=sent,
        received=received,
        deleted=deleted,
        backlog_now=left,
        visible_now=left,
    )
    return replace_values(facts, **over)


def max_receive_count_of(plan: Plan | Refusal) -> int:
    """Return the maxReceiveCount that a plan sets."""
    assert isinstance(plan, Plan), plan
    redrive = parse_redrive_policy(str(plan.steps[-1].after))
    assert redrive is not None
    return redrive.max_receive_count


def plan_dlq(facts: Facts) -> Plan | Refusal:
    return plan_new_dlq(facts, "because")


def test_attach_dlq_refused_while_consumers_finish_nothing() -> None:
    facts = make_queue_with_counts(sent=60, received=1_200, deleted=0, left=60)
    assert isinstance(plan_dlq(facts), Ignore)
    assert expect_refusal(DLQ_MISSING, facts).code == "cause_first"


def test_consumers_that_finish_none_of_60_messages_are_reported_as_failing() -> None:
    facts = make_queue_with_counts(sent=60, received=1_200, deleted=0, left=60)
    found = detect_fault(CONSUMER_FAILING, facts)
    assert found is not None
    assert "No message was finished in the last 6 h" in found.found


@pytest.mark.parametrize("messages", [2, 3, 9])
def test_attach_dlq_refused_and_says_why_if_none_of_2_3_or_9_messages_was_finished(
    messages: int,
) -> None:
    facts = make_queue_with_counts(sent=messages, received=20 * messages, deleted=0, left=messages)
    assert detect_fault(CONSUMER_FAILING, facts) is None, "too few for a page"
    refusal = plan_dlq(facts)
    assert isinstance(refusal, Refuse), "people hear why"
    assert refusal.code == "nothing_finished"
    assert f"{messages} messages arrived" in refusal.reason
    assert isinstance(plan_named_dlq(facts, DLQ_ARN, "because"), Refuse)


@pytest.mark.parametrize(("deleted", "is_refused"), [(29, True), (30, False)])
def test_attach_dlq_refused_if_fewer_than_half_were_finished(
    deleted: int, *, is_refused: bool
) -> None:
    """The counts of the last hour are missing, and the last delete was minutes ago."""
    plan = plan_dlq(
        make_queue_with_counts(
            sent=60, received=300, deleted=deleted, left=60 - deleted, deletes_of_last_15_minutes=1
        )
    )
    assert isinstance(plan, Refuse if is_refused else Plan)
    if isinstance(plan, Refuse):
        assert plan.code == "nothing_finished"
        assert f"of 60 messages that arrived in 6 h, consumers finished {deleted}" in plan.reason


# Consumers finished 500 messages before, and none of the 12 that arrived since.
AFTER_CONSUMERS_STOPPED = make_queue_with_counts(
    sent=512, received=740, deleted=500, left=12, sent_since_delete=12, received_since_delete=240
)


def test_attach_dlq_refused_after_consumers_stopped_finishing() -> None:
    assert isinstance(plan_dlq(AFTER_CONSUMERS_STOPPED), Refuse)


@pytest.mark.parametrize(
    "over",
    [
        pytest.param({"deletes_of_last_15_minutes": 3}, id="the last delete was minutes ago"),
        pytest.param({"sent_since_delete": 1}, id="the only message since may be a bad one"),
    ],
)
def test_attach_dlq_planned_if_consumers_may_still_be_finishing(over: dict[str, int]) -> None:
    assert isinstance(plan_dlq(replace_values(AFTER_CONSUMERS_STOPPED, **over)), Plan)


# Consumers deleted every minute until five minutes ago.
AFTER_STEADY_DELETES_ENDED = make_queue_with_counts(
    sent=1_040,
    received=1_160,
    deleted=1_000,
    left=40,
    sent_since_delete=40,
    received_since_delete=160,
    deletes_of_last_15_minutes=90,
    pause=timedelta(minutes=5),
    longest_pause_between_deletes=timedelta(minutes=1),
)


def test_attach_dlq_refused_minutes_after_steady_deletes_ended() -> None:
    """An outage may begin between a proposal and its approval, which Mendq would then carry out."""
    facts = AFTER_STEADY_DELETES_ENDED
    for refusal in (plan_dlq(facts), plan_named_dlq(facts, DLQ_ARN, "because")):
        assert isinstance(refusal, Refuse)
        assert "40 messages arrived since the last delete" in refusal.reason


@pytest.mark.parametrize(
    "over",
    [
        pytest.param(
            {"longest_pause_between_deletes": timedelta(minutes=4)},
            id="consumers often delete nothing for so long",
        ),
        pytest.param({"in_flight_now": 160}, id="all received messages are still in flight"),
    ],
)
def test_attach_dlq_planned_if_a_pause_in_deletes_is_usual_or_all_messages_are_in_flight(
    over: dict[str, Any],
) -> None:
    assert isinstance(plan_dlq(replace_values(AFTER_STEADY_DELETES_ENDED, **over)), Plan)


def plan_dlq_after_more_receives(lately: int) -> Plan | Refusal:
    """Plan a DLQ for a queue that finished 300 messages at the first receive.

    Then the consumer changed: it needs `lately` / 10 receives for each message of the last hour.
    """
    half_hour = measurement(sent=15, received=15 * lately // 10, deleted=15, backlog_before=3)
    stretches = (measurement(sent=75, received=75, deleted=75),) * 4 + (half_hour,) * 2
    received = 300 + 30 * lately // 10
    facts = make_queue_with_counts(
        sent=333, received=received, deleted=330, left=3, recent=RecentCounts(half_hours=stretches)
    )
    return plan_dlq(facts)


def test_max_receive_count_follows_the_receives_of_the_last_hour_if_they_are_higher() -> None:
    assert max_receive_count_of(plan_dlq_after_more_receives(60)) == 20, (
        "three times the 6 receives of now, not the 1.5 of all"
    )


def test_attach_dlq_refused_if_the_last_hours_receives_need_too_high_a_max_receive_count() -> None:
    refusal = plan_dlq_after_more_receives(600)
    assert isinstance(refusal, Refuse)
    assert refusal.code == "no_safe_limit"
    assert "60.0 receives on average" in refusal.reason


def plan_dlq_by_last_hour(*half_hours: Measurement) -> Plan | Refusal:
    """Plan a DLQ for a queue that finished 1,003 of 1,040 messages in six hours."""
    recent = RecentCounts(half_hours=half_hours)
    return plan_dlq(
        make_queue_with_counts(sent=1_040, received=2_200, deleted=1_003, left=37, recent=recent)
    )


def test_attach_dlq_refused_if_consumers_finished_few_messages_in_the_last_hour() -> None:
    refusal = plan_dlq_by_last_hour(
        measurement(sent=30, received=600, deleted=2),
        measurement(sent=30, received=600, deleted=1),
    )
    assert isinstance(refusal, Refuse)
    assert "of 60 messages that arrived in the last hour, consumers finished 3" in refusal.reason


def test_attach_dlq_planned_if_consumers_finished_most_messages_in_the_last_hour() -> None:
    half_hour = measurement(sent=30, received=600, deleted=29, backlog_before=35)
    assert isinstance(plan_dlq_by_last_hour(half_hour, half_hour), Plan)


def test_quiet_queue_that_finished_nothing_gets_only_a_proposal_with_max_receive_count_100() -> (
    None
):
    facts = make_queue_with_counts(sent=0, received=720, deleted=0, left=1, backlog_before=1)
    assert detect_fault(DLQ_MISSING, facts) is not None
    plan = expect_plan(DLQ_MISSING, facts)
    assert (plan.highest_mode, max_receive_count_of(plan)) == (
        Mode.PROPOSE,
        MOST_RECEIVES_BEFORE_DLQ,
    )
    assert "No message was finished in the last 6 h" in plan.reason
    assert "1 message waits now" in plan.reason


def test_max_receive_count_of_a_quiet_queue_follows_its_finished_messages_as_a_proposal() -> None:
    """50 messages were finished at the first receive. Since then one came back 700 times."""
    facts = make_queue_with_counts(
        sent=51, received=751, deleted=50, left=1, sent_since_delete=0, received_since_delete=700
    )
    plan = plan_dlq(facts)
    assert isinstance(plan, Plan)
    assert (plan.highest_mode, max_receive_count_of(plan)) == (
        Mode.PROPOSE,
        DEFAULT_MAX_RECEIVE_COUNT,
    )


def test_three_messages_that_keep_coming_back_get_a_dlq_proposal_and_no_page() -> None:
    facts = make_queue_with_counts(sent=140, received=500, deleted=137, left=3)
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert detect_fault(DLQ_MISSING, facts) is not None
    plan = expect_plan(DLQ_MISSING, facts)
    assert plan.highest_mode is Mode.PROPOSE
    assert "3 messages wait now" in plan.reason
    assert "3.6 receives on average" in plan.reason


@pytest.mark.parametrize("good", [10, 100, 10_000, 500_000])
def test_three_messages_that_keep_coming_back_are_found_among_any_number_of_good_ones(
    good: int,
) -> None:
    """Each bad message is received once per visibility timeout of 30 s for six hours."""
    facts = make_queue_with_counts(sent=good + 3, received=good + 3 * 720, deleted=good, left=3)
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert detect_fault(DLQ_MISSING, facts) is not None


def make_half_hours(received: int, fewest: int, usual: int) -> RecentCounts:
    """Make six hours in which 29 messages arrived and were finished in each half hour."""
    half_hour = timedelta(minutes=30)
    start = examples.EXAMPLE_TIME - 12 * half_hour
    stretches = [
        measurement(
            since=start + n * half_hour,
            until=start + (n + 1) * half_hour,
            sent=29,
            received=received,
            deleted=29,
            fewest_messages=fewest,
            usual_messages=usual,
            backlog_before=usual,
            backlog_now=usual,
        )
        for n in range(12)
    ]
    return RecentCounts(half_hours=tuple(stretches))


@pytest.mark.parametrize(("usual", "is_reported"), [(10, False), (5, True)])
def test_messages_that_come_back_are_a_missing_dlq_only_if_their_number_is_steady(
    usual: int, *, is_reported: bool
) -> None:
    """Consumers return half of all messages. If these are finished later, their number varies."""
    ends = {"backlog_before": 10, "fewest_messages": 4, "usual_messages": 10}
    facts = make_queue_with_counts(
        sent=348, received=696, deleted=348, left=10, VisibilityTimeout=60, **ends
    )
    facts = replace_values(facts, recent=make_half_hours(received=58, fewest=4, usual=usual))
    assert (detect_fault(DLQ_MISSING, facts) is not None) is is_reported


def test_lambda_that_fails_at_three_messages_gets_a_dlq_proposal_and_no_page() -> None:
    """The function fails in most invocations, because three messages always come back."""
    facts = make_queue_with_counts(
        sent=140, received=500, deleted=137, left=3, lambda_consumers=(FAILING_FUNCTION,)
    )
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert expect_plan(DLQ_MISSING, facts).highest_mode is Mode.PROPOSE


def test_lambda_that_fails_at_most_messages_gets_a_page_and_no_dlq() -> None:
    facts = make_queue_with_counts(
        sent=140, received=500, deleted=37, left=103, lambda_consumers=(FAILING_FUNCTION,)
    )
    assert detect_fault(CONSUMER_FAILING, facts) is not None
    assert expect_refusal(DLQ_MISSING, facts).code == "cause_first"


def test_proposed_max_receive_count_is_the_next_offered_value_above_three_times_the_mean() -> None:
    plan = expect_plan(
        DLQ_MISSING, make_queue_with_counts(sent=90, received=1_080, deleted=82, left=8)
    )
    assert plan.highest_mode is Mode.PROPOSE
    assert max_receive_count_of(plan) == 50, "3 times 13.2 receives; Mendq offers 30 and then 50"
    assert "13.2 receives on average" in plan.reason
    assert "counts receives of messages that never finish" in plan.reason


def test_dlq_is_refused_if_three_times_the_mean_receives_exceeds_the_allowed_count() -> None:
    refusal = plan_dlq(make_queue_with_counts(sent=3, received=720, deleted=2, left=1))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "no_safe_limit"
    assert "360.0 receives on average" in refusal.reason


@pytest.mark.parametrize(
    "over",
    [
        pytest.param({}, id="any consumer"),
        pytest.param({"lambda_consumers": (FAILING_FUNCTION,)}, id="failing function"),
        pytest.param({"RedrivePolicy": RedrivePolicy(DLQ_ARN, 5).text}, id="with a DLQ"),
    ],
)
def test_returned_messages_that_are_all_finished_later_are_no_failing_consumer(
    over: dict[str, Any],
) -> None:
    facts = make_queue_with_counts(sent=420, received=840, deleted=420, left=0, **over)
    assert detect_fault(CONSUMER_FAILING, facts) is None


def test_returned_messages_are_a_failing_consumer_if_the_backlog_grows() -> None:
    facts = make_queue_with_counts(sent=420, received=840, deleted=320, left=100)
    assert detect_fault(CONSUMER_FAILING, facts) is not None


def test_deleted_dlq_is_only_proposed_again_if_messages_keep_coming_back() -> None:
    facts = make_queue_with_counts(
        sent=140, received=500, deleted=137, left=3, RedrivePolicy=RedrivePolicy(DLQ_ARN, 5).text
    )
    plan = plan_named_dlq(facts, DLQ_ARN, "because")
    assert isinstance(plan, Plan)
    assert plan.highest_mode is Mode.PROPOSE
    assert "3.6 receives on average" in plan.reason


MESSAGES = st.integers(0, 20) | st.integers(0, 100_000)
RECEIVES = st.integers(0, 50) | st.integers(0, 2_000_000)
CONSUMERS: st.SearchStrategy[tuple[LambdaConsumer, ...]] = st.sampled_from(
    [(), (LAMBDA_FUNCTION,), (FAILING_FUNCTION,)]
)
COUNTS = st.fixed_dictionaries(
    {
        "sent": MESSAGES,
        "received": RECEIVES,
        "deleted": st.just(0) | MESSAGES,
        "backlog_before": MESSAGES,
        "backlog_now": MESSAGES,
        "in_flight_now": st.just(0) | MESSAGES,
        "deletes_of_last_15_minutes": st.integers(0, 9),
        "sent_since_delete": MESSAGES,
        "groups_in_flight_now": st.sampled_from([None, 0, 1, 2]),
        "oldest_age_seconds_now": st.sampled_from([0, 60, 21_600]),
    }
)


def make_any_queue(counted: dict[str, Any], consumers: Any, *, fifo: bool) -> Facts:
    arn = QUEUE_ARN if fifo else STANDARD_ARN
    facts = queue(
        queue_arn=arn, dlq_sources=(), ApproximateNumberOfMessages=counted["backlog_now"], **counted
    )
    namesake = QueueFacts(arn_of_dlq(arn), {})
    return replace_values(facts, lambda_consumers=consumers, dlq_namesake=namesake)


@given(COUNTS, CONSUMERS, st.booleans())
def test_dlq_is_never_attached_automatically_if_no_message_was_finished(
    counted: dict[str, Any], consumers: Any, fifo: bool
) -> None:
    facts = make_any_queue({**counted, "deleted": 0}, consumers, fifo=fifo)
    plan = plan_dlq(facts)
    if isinstance(plan, Plan):
        assert plan.highest_mode is Mode.PROPOSE


@given(COUNTS, CONSUMERS)
def test_dlq_is_not_proposed_if_none_of_several_messages_that_came_back_was_finished(
    counted: dict[str, Any], consumers: Any
) -> None:
    """In a FIFO queue, one message can keep all others of its group from being finished."""
    several = {**counted, "sent": counted["sent"] + 2, "deleted": 0}
    several["received"] += several["in_flight_now"] + 1
    plan = plan_dlq(make_any_queue(several, consumers, fifo=False))
    assert not isinstance(plan, Plan)


@given(COUNTS, CONSUMERS, st.booleans())
def test_max_receive_count_is_never_below_three_times_the_mean_receives(
    counted: dict[str, Any], consumers: Any, fifo: bool
) -> None:
    assume(counted["deleted"])
    plan = plan_dlq(make_any_queue(counted, consumers, fifo=fifo))
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    assert all(step.find_bounds_fault() is None for step in plan.steps)
    mean = (counted["received"] - counted["in_flight_now"]) / counted["deleted"]
    assert max_receive_count_of(plan) >= max(DEFAULT_MAX_RECEIVE_COUNT, 3 * mean)


@given(COUNTS, CONSUMERS, st.booleans())
def test_dlq_is_only_proposed_if_messages_were_received_more_than_once_on_average(
    counted: dict[str, Any], consumers: Any, fifo: bool
) -> None:
    again = {**counted, "deleted": counted["deleted"] + 1}
    again["received"] += again["in_flight_now"] + again["deleted"] + 1
    plan = plan_dlq(make_any_queue(again, consumers, fifo=fifo))
    assert not isinstance(plan, Plan) or plan.highest_mode is Mode.PROPOSE


@given(COUNTS, CONSUMERS)
def test_failing_consumer_is_never_detected_if_all_messages_were_finished(
    counted: dict[str, Any], consumers: Any
) -> None:
    """No message waits, so neither backlog nor age grows, however often messages came back."""
    done = {**counted, "deleted": counted["sent"], "backlog_before": 0, "backlog_now": 0}
    done |= {"in_flight_now": 0, "oldest_age_seconds_now": 0}
    facts = make_any_queue(done, consumers, fifo=False)
    assert detect_fault(CONSUMER_FAILING, facts) is None


def test_fix_of_a_found_missing_dlq_has_the_max_receive_count_of_any_plan_for_a_new_dlq() -> None:
    facts = make_queue_with_counts(sent=140, received=500, deleted=137, left=3)
    found = detect_fault(DLQ_MISSING, facts)
    assert found is not None
    assert max_receive_count_of(answer_to(DLQ_MISSING, found)) == max_receive_count_of(
        plan_dlq(facts)
    )
