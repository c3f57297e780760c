"""When a DLQ is proposed, asked about or refused: a wrong answer costs good messages."""

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
from mendq.model.metrics import RecentCounts
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


def counts(sent: int, received: int, deleted: int, left: int, **over: Any) -> Facts:
    """A queue without a DLQ, of which these messages came and `left` are left."""
    ends = {"backlog_now": left, "visible_now": left}
    facts = standard_queue(
        ApproximateNumberOfMessages=left,
        dlq_namesake=QueueFacts(DLQ_ARN, {}),
        sent=sent,
        received=received,
        deleted=deleted,
        **ends,
    )
    return replace_values(facts, **over)


def limit_of(plan: Plan | Refusal) -> int:
    """The maxReceiveCount that a plan sets."""
    assert isinstance(plan, Plan), plan
    redrive = parse_redrive_policy(str(plan.steps[-1].after))
    assert redrive is not None
    return redrive.max_receive_count


def answer(facts: Facts) -> Plan | Refusal:
    return plan_new_dlq(facts, "because")


def test_attach_dlq_refused_while_consumers_finish_nothing() -> None:
    facts = counts(60, 1_200, 0, 60)
    found = detect_fault(CONSUMER_FAILING, facts)
    assert found is not None
    assert "No message was finished in the last 6 h" in found.found
    assert isinstance(answer(facts), Ignore)
    assert expect_refusal(DLQ_MISSING, facts).code == "cause_first"


@pytest.mark.parametrize("messages", [2, 3, 9])
def test_attach_dlq_refused_however_few_messages_came_unfinished(messages: int) -> None:
    facts = counts(messages, 20 * messages, 0, messages)
    assert detect_fault(CONSUMER_FAILING, facts) is None, "too few for a page"
    refusal = answer(facts)
    assert isinstance(refusal, Refuse), "people hear why"
    assert refusal.code == "nothing_finished"
    assert f"{messages} messages arrived" in refusal.reason
    assert isinstance(plan_named_dlq(facts, DLQ_ARN, "because"), Refuse)


@pytest.mark.parametrize(("deleted", "is_refused"), [(29, True), (30, False)])
def test_attach_dlq_refused_if_fewer_than_half_were_finished(
    deleted: int, *, is_refused: bool
) -> None:
    """Nothing is known of the last hour, and the last delete is minutes ago."""
    expect_plan = answer(counts(60, 300, deleted, 60 - deleted, deletes_of_last_15_minutes=1))
    assert isinstance(expect_plan, Refuse if is_refused else Plan)
    if isinstance(expect_plan, Refuse):
        assert expect_plan.code == "nothing_finished"
        assert (
            f"of 60 messages that arrived in 6 h, consumers finished {deleted}"
            in expect_plan.reason
        )


def test_attach_dlq_refused_after_consumers_stopped_finishing() -> None:
    """They finished 500 messages before; of the 12 that came since, none."""
    stopped = {"sent_since_delete": 12, "received_since_delete": 240}
    facts = counts(512, 740, 500, 12, **stopped)
    assert isinstance(answer(facts), Refuse)
    assert isinstance(answer(replace_values(facts, deletes_of_last_15_minutes=3)), Plan), (
        "the last delete is minutes ago"
    )
    assert isinstance(answer(replace_values(facts, sent_since_delete=1)), Plan), (
        "it may be the bad one"
    )


def test_attach_dlq_refused_minutes_after_steady_deletes_ended() -> None:
    """An outage may begin between a proposal and its approval, which would carry it out."""
    stopped = {
        "sent_since_delete": 40,
        "received_since_delete": 160,
        "deletes_of_last_15_minutes": 90,
    }
    steady = {"pause": timedelta(minutes=5), "longest_pause_between_deletes": timedelta(minutes=1)}
    facts = counts(1_040, 1_160, 1_000, 40, **stopped, **steady)
    for refusal in (answer(facts), plan_named_dlq(facts, DLQ_ARN, "because")):
        assert isinstance(refusal, Refuse)
        assert "40 messages arrived since the last delete" in refusal.reason
    rarely = replace_values(facts, longest_pause_between_deletes=timedelta(minutes=4))
    assert isinstance(answer(rarely), Plan), "its consumers often delete nothing for so long"
    held = replace_values(facts, in_flight_now=160)
    assert isinstance(answer(held), Plan), "all that was received is still at work"


@pytest.mark.parametrize(("lately", "limit"), [(60, 20), (600, None)])
def test_attach_dlq_limit_goes_by_last_hour_if_messages_need_more_receives(
    lately: int, limit: int | None
) -> None:
    """Of 300 messages each was finished at its first receive, until their consumer changed."""
    half_hour = measurement(sent=15, received=15 * lately // 10, deleted=15, backlog_before=3)
    stretches = (measurement(sent=75, received=75, deleted=75),) * 4 + (half_hour,) * 2
    received = 300 + 30 * lately // 10
    facts = counts(333, received, 330, 3, recent=RecentCounts(stretches=stretches))
    proposed = answer(facts)
    if limit is None:
        assert isinstance(proposed, Refuse)
        assert proposed.code == "no_safe_limit"
        assert "60.0 receives on average" in proposed.reason
    else:
        assert limit_of(proposed) == limit, "three times the 6 receives of now, not the 1.5 of all"


def test_attach_dlq_refused_if_last_hour_finished_hardly_any() -> None:
    hour = (
        measurement(sent=30, received=600, deleted=2),
        measurement(sent=30, received=600, deleted=1),
    )
    facts = counts(1_040, 2_200, 1_003, 37, recent=RecentCounts(stretches=hour))
    refusal = answer(facts)
    assert isinstance(refusal, Refuse)
    assert "of 60 messages that arrived in the last hour, consumers finished 3" in refusal.reason
    good = (measurement(sent=30, received=600, deleted=29, backlog_before=35),) * 2
    assert isinstance(answer(replace_values(facts, recent=RecentCounts(stretches=good))), Plan)


def test_attach_dlq_asks_person_about_quiet_queue_of_which_nothing_is_known() -> None:
    facts = counts(0, 720, 0, 1, backlog_before=1)
    assert detect_fault(DLQ_MISSING, facts) is not None
    plan = expect_plan(DLQ_MISSING, facts)
    assert (plan.at_most, limit_of(plan)) == (Mode.PROPOSE, MOST_RECEIVES_BEFORE_DLQ)
    assert "No message was finished in the last 6 h" in plan.reason
    assert "1 message waits now" in plan.reason


def test_attach_dlq_goes_by_what_a_quiet_queue_finished_earlier() -> None:
    """50 were finished at the first receive; since then one message came back 700 times."""
    facts = counts(51, 751, 50, 1, sent_since_delete=0, received_since_delete=700)
    plan = answer(facts)
    assert isinstance(plan, Plan)
    assert (plan.at_most, limit_of(plan)) == (Mode.PROPOSE, DEFAULT_MAX_RECEIVE_COUNT)


def test_three_bad_messages_get_dlq_and_no_page() -> None:
    facts = counts(140, 500, 137, 3)
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert detect_fault(DLQ_MISSING, facts) is not None
    plan = expect_plan(DLQ_MISSING, facts)
    assert plan.at_most is Mode.PROPOSE
    assert "3 messages wait now" in plan.reason
    assert "3.6 receives on average" in plan.reason


@pytest.mark.parametrize("good", [10, 100, 10_000, 500_000])
def test_three_bad_messages_are_found_whatever_else_comes(good: int) -> None:
    """Each is received once in each visibility timeout of 30 s for six hours."""
    facts = counts(good + 3, good + 3 * 720, good, 3)
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert detect_fault(DLQ_MISSING, facts) is not None


def half_hours(received: int, fewest: int, usual: int) -> RecentCounts:
    """Six hours in which 29 messages came and were finished in each half hour."""
    counted = {"sent": 29, "received": received, "deleted": 29}
    ends = {"fewest_messages": fewest, "usual_messages": usual}
    ends |= {"backlog_before": usual, "backlog_now": usual}
    began = examples.EXAMPLE_TIME - timedelta(hours=6)
    return RecentCounts(
        stretches=tuple(
            measurement(
                since=began + n * timedelta(minutes=30),
                until=began + (n + 1) * timedelta(minutes=30),
                **counted,
                **ends,
            )
            for n in range(12)
        )
    )


def test_messages_given_back_for_ten_minutes_are_not_told_as_bad() -> None:
    """Half of all are: 10 wait by chance, 4 at the least, and one in each timeout explains one."""
    ends = {"backlog_before": 10, "fewest_messages": 4, "usual_messages": 10}
    facts = counts(348, 696, 348, 10, VisibilityTimeout=60, **ends)
    given_back = replace_values(facts, recent=half_hours(58, 4, 10))
    assert detect_fault(DLQ_MISSING, given_back) is None
    stay = replace_values(facts, recent=half_hours(58, 4, 5))
    assert detect_fault(DLQ_MISSING, stay) is not None, "their number does not vary"


def test_lambda_that_fails_at_a_few_messages_gets_dlq() -> None:
    """It fails in most runs, because three messages come back all the time."""
    facts = counts(140, 500, 137, 3, lambda_consumers=(FAILING_FUNCTION,))
    assert detect_fault(CONSUMER_FAILING, facts) is None
    assert expect_plan(DLQ_MISSING, facts).at_most is Mode.PROPOSE
    most_fail = counts(140, 500, 37, 103, lambda_consumers=(FAILING_FUNCTION,))
    assert detect_fault(CONSUMER_FAILING, most_fail) is not None
    assert expect_refusal(DLQ_MISSING, most_fail).code == "cause_first"


def test_limit_spares_messages_that_are_given_back_on_purpose() -> None:
    plan = expect_plan(DLQ_MISSING, counts(90, 1_080, 82, 8))
    assert plan.at_most is Mode.PROPOSE
    assert limit_of(plan) >= 3 * 1_080 / 82
    assert "13.2 receives on average" in plan.reason
    assert "counts receives of messages that never finish" in plan.reason


def test_no_limit_is_proposed_if_three_times_the_mean_is_beyond_bounds() -> None:
    refusal = answer(counts(3, 720, 2, 1))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "no_safe_limit"
    assert "360.0 receives on average" in refusal.reason


def test_give_backs_that_are_all_finished_do_not_page() -> None:
    for consumers in ((), (FAILING_FUNCTION,)):
        facts = counts(420, 840, 420, 0, lambda_consumers=consumers)
        assert detect_fault(CONSUMER_FAILING, facts) is None
    with_dlq = replace_values(
        counts(420, 840, 420, 0), RedrivePolicy=RedrivePolicy(DLQ_ARN, 5).text
    )
    assert detect_fault(CONSUMER_FAILING, with_dlq) is None
    behind = counts(420, 840, 320, 100)
    assert detect_fault(CONSUMER_FAILING, behind) is not None, "what is left grows"


def test_dlq_that_is_gone_is_made_again_only_by_person_if_messages_come_back() -> None:
    facts = counts(140, 500, 137, 3, RedrivePolicy=RedrivePolicy(DLQ_ARN, 5).text)
    plan = plan_named_dlq(facts, DLQ_ARN, "because")
    assert isinstance(plan, Plan)
    assert plan.at_most is Mode.PROPOSE
    assert "3.6 receives on average" in plan.reason


MESSAGES = st.integers(0, 20) | st.integers(0, 100_000)
RECEIVES = st.integers(0, 50) | st.integers(0, 2_000_000)
CONSUMERS: st.SearchStrategy[tuple[LambdaConsumer, ...]] = st.sampled_from(
    [(), (LAMBDA_FUNCTION,), (FAILING_FUNCTION,)]
)
COUNTED = st.fixed_dictionaries(
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


def any_queue(counted: dict[str, Any], consumers: Any, *, fifo: bool) -> Facts:
    arn = QUEUE_ARN if fifo else STANDARD_ARN
    facts = queue(
        queue_arn=arn, dlq_sources=(), ApproximateNumberOfMessages=counted["backlog_now"], **counted
    )
    namesake = QueueFacts(arn_of_dlq(arn), {})
    return replace_values(facts, lambda_consumers=consumers, dlq_namesake=namesake)


@given(COUNTED, CONSUMERS, st.booleans())
def test_no_dlq_is_attached_without_person_if_no_message_was_finished(
    counted: dict[str, Any], consumers: Any, fifo: bool
) -> None:
    facts = any_queue({**counted, "deleted": 0}, consumers, fifo=fifo)
    plan = answer(facts)
    if isinstance(plan, Plan):
        assert plan.at_most is Mode.PROPOSE
        assert fifo or counted["sent"] <= 1 or counted["received"] <= counted["in_flight_now"]


@given(COUNTED, CONSUMERS, st.booleans())
def test_limit_is_never_below_three_times_the_mean(
    counted: dict[str, Any], consumers: Any, fifo: bool
) -> None:
    assume(counted["deleted"])
    plan = answer(any_queue(counted, consumers, fifo=fifo))
    if not isinstance(plan, Plan):
        return
    assert all(step.find_bounds_fault() is None for step in plan.steps)
    in_flight = counted["in_flight_now"]
    mean = (counted["received"] - in_flight) / counted["deleted"]
    assert limit_of(plan) >= max(DEFAULT_MAX_RECEIVE_COUNT, 3 * mean)
    if mean > 1:
        assert plan.at_most is Mode.PROPOSE


@given(COUNTED, CONSUMERS)
def test_no_page_while_all_that_came_was_finished(counted: dict[str, Any], consumers: Any) -> None:
    """Nothing waits, so neither backlog nor age grows, however often messages were given back."""
    done = {**counted, "deleted": counted["sent"], "backlog_before": 0, "backlog_now": 0}
    done |= {"in_flight_now": 0, "oldest_age_seconds_now": 0}
    facts = any_queue(done, consumers, fifo=False)
    assert detect_fault(CONSUMER_FAILING, facts) is None


def test_answer_is_the_same_through_the_entry() -> None:
    facts = counts(140, 500, 137, 3)
    found = detect_fault(DLQ_MISSING, facts)
    assert found is not None
    assert limit_of(answer_to(DLQ_MISSING, found)) == limit_of(answer(facts))
