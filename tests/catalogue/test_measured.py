"""How much has to be counted before people hear of it, and where the page points."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumer_throttled import CONSUMER_THROTTLED
from mendq.catalogue.dlq_messages_arriving import DLQ_MESSAGES_ARRIVING
from mendq.catalogue.dlq_missing import DLQ_MISSING
from mendq.catalogue.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.examples import (
    A_DAY,
    AT,
    DLQ_ARN,
    FAILING,
    FUNCTION,
    QUEUE_ARN,
    but,
    dlq,
    queue,
    standard,
)
from mendq.catalogue.fifo_group_blocked import FIFO_GROUP_BLOCKED
from mendq.catalogue.in_flight_limit import IN_FLIGHT_LIMIT, PASSED_BELOW
from mendq.catalogue.messages_about_to_expire import LONGEST_SECONDS, MESSAGES_ABOUT_TO_EXPIRE
from mendq.catalogue.symptom import Symptom
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer
from mendq.model.limits import Mode
from mendq.model.plan import Escalate, Ignore, Refuse
from mendq.model.queue import Redrive
from tests.catalogue.asking import answer_to, found_in, planned, refused, step_of

REDRIVE = Redrive(DLQ_ARN, 5).text
STOPPED = CONSUMER_STOPPED.detected[0].facts
BLOCKED = FIFO_GROUP_BLOCKED.detected[0].facts
EXPIRING = MESSAGES_ABOUT_TO_EXPIRE.detected[0].facts
THROTTLED = CONSUMER_THROTTLED.detected[0].facts
ARRIVING = DLQ_MESSAGES_ARRIVING.detected[0].facts
NO_DLQ = standard(ApproximateNumberOfMessages=1, dlq_namesake=DlqFacts(DLQ_ARN, None))


def failing(sent: int, received: int, deleted: int, **over: Any) -> Facts:
    return standard(sent=sent, received=received, deleted=deleted, **over)


def quiet(received: int, consumer: LambdaConsumer) -> Facts:
    return failing(9, received, 0, backlog_now=9, lambda_consumers=(consumer,))


def polled(hours: int, empty_receives: int) -> Facts:
    return standard(since=AT - timedelta(hours=hours), empty_receives=empty_receives)


def coming_back(**counted: Any) -> Facts:
    return but(NO_DLQ, **{"backlog_now": 1, **counted})


@pytest.mark.parametrize(
    ("entry", "facts", "finds"),
    [
        (CONSUMER_FAILING, failing(100, 200, 100), True),
        (CONSUMER_FAILING, failing(100, 199, 100), False),
        (CONSUMER_FAILING, failing(99, 500, 99), False),
        (CONSUMER_FAILING, failing(40, 200, 100, backlog_before=60), True),
        (CONSUMER_FAILING, failing(1_000, 1_999, 1_000), False),
        (CONSUMER_FAILING, failing(1_000, 2_000, 1_000, in_flight_now=1), False),
        (CONSUMER_FAILING, quiet(20, FAILING), True),
        (CONSUMER_FAILING, quiet(19, FAILING), False),
        (CONSUMER_FAILING, quiet(90, replace(FAILING, error_share=0.49)), False),
        (CONSUMER_FAILING, quiet(90, replace(FAILING, duration_p99_seconds=27.0)), False),
        (CONSUMER_FAILING, quiet(90, replace(FAILING, error_share=None)), False),
        (CONSUMER_STOPPED, but(STOPPED, least_visible=1), True),
        (CONSUMER_STOPPED, but(STOPPED, dlq_sources=None), False),
        (FIFO_GROUP_BLOCKED, but(BLOCKED, dlq_sources=None), False),
        *((EMPTY_RECEIVES, polled(hours, 10_000 * hours), True) for hours in (1, 3, 6)),
        *((EMPTY_RECEIVES, polled(hours, 10_000 * hours - 1), False) for hours in (1, 3, 6)),
        # A day is left but 2 h: at 300 in 6 h, 1,100 are gone in 22 h.
        (MESSAGES_ABOUT_TO_EXPIRE, but(EXPIRING, backlog_now=1_100, deleted=300), False),
        (MESSAGES_ABOUT_TO_EXPIRE, but(EXPIRING, backlog_now=1_101, deleted=300), True),
        (MESSAGES_ABOUT_TO_EXPIRE, but(EXPIRING, backlog_now=1, deleted=0), True),
        (
            MESSAGES_ABOUT_TO_EXPIRE,
            but(EXPIRING, oldest_age_seconds_now=4 * A_DAY, backlog_now=10, deleted=9),
            True,
        ),
        (DLQ_MISSING, coming_back(received=4, deleted=1, sent=2), True),
        (DLQ_MISSING, coming_back(received=3, deleted=1, sent=2), False),
        (DLQ_MISSING, coming_back(received=4, deleted=1, sent=4), False),
        (DLQ_MISSING, coming_back(received=4, deleted=1, sent=1, backlog_before=3), False),
        (DLQ_MISSING, coming_back(received=4, sent=1, backlog_now=0), False),
        (DLQ_MISSING, coming_back(received=40, sent=1, move_task_running=True), False),
    ],
)
def test_what_is_found(entry: Symptom, facts: Facts, *, finds: bool) -> None:
    assert bool(found_in(entry, facts)) is finds


@pytest.mark.parametrize(
    ("entry", "facts", "suspect"),
    [
        (CONSUMER_THROTTLED, but(THROTTLED, lambda_consumers=()), False),
        (CONSUMER_THROTTLED, but(THROTTLED, ApproximateNumberOfMessages=0), False),
        (DLQ_MESSAGES_ARRIVING, but(ARRIVING, dlq_sources=None), True),
        (DLQ_MESSAGES_ARRIVING, dlq(), False),
        (DLQ_MESSAGES_ARRIVING, but(ARRIVING, dlq_sources=()), False),
        (DLQ_MISSING, but(NO_DLQ, dlq_sources=None), True),
        (DLQ_MISSING, but(NO_DLQ, lambda_consumers=(FUNCTION,)), False),
        (DLQ_MISSING, but(NO_DLQ, RedrivePolicy="{}"), False),
        (DLQ_MISSING, standard(), False),
    ],
)
def test_only_a_suspect_is_measured(entry: Symptom, facts: Facts, *, suspect: bool) -> None:
    assert entry.detection is not None
    assert entry.detection.suspects(facts) is suspect


@given(st.integers(0, 24), st.integers(0, 10**6))
def test_a_few_messages_never_page_however_often_they_are_given_back(
    messages: int, received: int
) -> None:
    assert found_in(CONSUMER_FAILING, failing(messages, received, messages)) is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 1_209_600))
def test_an_archive_that_nobody_ever_read_is_never_found(sent: int, visible: int, age: int) -> None:
    archive = but(
        STOPPED,
        stopped_consumers=(),
        sent=sent,
        visible_now=visible,
        least_visible=visible,
        oldest_age_seconds_now=age,
    )
    assert found_in(CONSUMER_STOPPED, archive) is None


@pytest.mark.parametrize(
    ("entry", "facts", "says"),
    [
        (CONSUMER_FAILING, but(queue(), RedrivePolicy=REDRIVE), "after 5 receives a message goes"),
        (CONSUMER_THROTTLED, but(THROTTLED, RedrivePolicy=REDRIVE), "after 5 of them a message"),
        (MESSAGES_ABOUT_TO_EXPIRE, but(EXPIRING, RedrivePolicy=REDRIVE), "so it has to keep"),
    ],
)
def test_a_dlq_changes_what_becomes_of_them(entry: Symptom, facts: Facts, says: str) -> None:
    assert says in answer_to(entry, facts).reason
    assert says not in answer_to(entry, but(facts, RedrivePolicy="")).reason


def test_a_fifo_queue_s_messages_begin_their_time_anew_in_a_dlq() -> None:
    facts = but(EXPIRING, RedrivePolicy=REDRIVE, queue_arn=QUEUE_ARN)
    assert "Its DLQ counts" not in planned(MESSAGES_ABOUT_TO_EXPIRE, facts).reason


@pytest.mark.parametrize("version", ["", ":7", ":prod"])
def test_the_page_points_at_the_log_of_a_function_that_fails(version: str) -> None:
    arn = f"{FAILING.function_arn}{version}"
    facts = quiet(20, replace(FAILING, function_arn=arn))
    words = shlex.split(refused(CONSUMER_FAILING, facts).next_command)
    assert words[words.index("--log-group-name") + 1] == "/aws/lambda/bill"


def test_what_is_held_is_said_so_that_the_numbers_add_up() -> None:
    found = found_in(CONSUMER_FAILING, failing(120, 1_700, 0, in_flight_now=100))
    assert found is not None
    assert "1,600 of 1,700 receives in 6.0 h ended in no delete, 100 are still held" in found.found


def test_the_most_throttled_function_is_named_and_the_first_that_is_switched_off() -> None:
    shares = {"ship": None, "bill": 0.4, "mail": 0.2}
    arn = FUNCTION.function_arn.removesuffix("bill")
    consumers = (
        replace(FUNCTION, function_arn=f"{arn}{name}", throttled_share=share)
        for name, share in shares.items()
    )
    facts = but(THROTTLED, lambda_consumers=tuple(consumers))
    found = found_in(CONSUMER_THROTTLED, facts)
    assert found is not None
    assert found.found.startswith("40% of the invocations of bill were throttled")
    assert refused(CONSUMER_THROTTLED, facts).next_command.endswith("--function-name bill")
    two = but(STOPPED, stopped_consumers=(*STOPPED.stopped_consumers, "arn:other"))
    found = found_in(CONSUMER_STOPPED, two)
    assert found is not None
    assert found.found.endswith("of bill and 1 more is disabled")


def read(wait_seconds: int, *event_names: str, **over: Any) -> Facts:
    return standard(ReceiveMessageWaitTimeSeconds=wait_seconds, event_names=event_names, **over)


@given(st.integers(0, 20), st.booleans(), st.booleans())
def test_a_plan_goes_to_the_longest_wait(seconds: int, sends: bool, is_read: bool) -> None:
    names = ("ReceiveMessage", "SendMessage")[: 1 + sends]
    facts = read(seconds, *names, lambda_consumers=(FUNCTION,) * is_read)
    if seconds == 20:
        assert isinstance(refused(EMPTY_RECEIVES, facts), Escalate)
        return
    answer = planned(EMPTY_RECEIVES, facts)
    assert (step_of(answer).before, step_of(answer).after) == (seconds, 20)
    assert answer.at_most is (Mode.PROPOSE if is_read else Mode.HEAL)


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (read(20, "DeleteMessage", "SendMessageBatch"), Refuse),
        (read(0), Ignore),
    ],
)
def test_readers_are_not_made_to_wait_for_nothing(facts: Facts, kind: type) -> None:
    assert isinstance(refused(EMPTY_RECEIVES, facts), kind)


def test_what_a_scan_counted_is_said() -> None:
    facts = found_in(EMPTY_RECEIVES, read(0, empty_receives=60_000, received=6_000))
    assert facts is not None
    reason = planned(EMPTY_RECEIVES, facts).reason
    assert reason.startswith("60,000 receives in 6.0 h found nothing, while 6,000 messages")
    assert "throttled" not in reason


@given(st.integers(0, 200_000))
def test_in_flight_pages_from_half_of_the_quota_on_and_never_plans(in_flight: int) -> None:
    facts = standard(ApproximateNumberOfMessagesNotVisible=in_flight, VisibilityTimeout=43_200)
    page = refused(IN_FLIGHT_LIMIT, facts)
    assert isinstance(page, Escalate if in_flight >= PASSED_BELOW else Ignore)
    assert f"{in_flight:,}" in page.reason
    assert ("for 43200 s" in page.reason) is isinstance(page, Escalate)


@given(st.integers(60, LONGEST_SECONDS), st.integers(0, LONGEST_SECONDS))
def test_a_plan_goes_to_the_longest_retention_or_to_a_person(retention: int, age: int) -> None:
    counted = {"deleted": 0, "oldest_age_seconds_now": age}
    facts = but(EXPIRING, MessageRetentionPeriod=retention, **counted)
    if 4 * age <= 3 * retention:
        assert isinstance(refused(MESSAGES_ABOUT_TO_EXPIRE, facts), Ignore)
    elif retention == LONGEST_SECONDS:
        assert isinstance(refused(MESSAGES_ABOUT_TO_EXPIRE, facts), Escalate)
    else:
        step = step_of(planned(MESSAGES_ABOUT_TO_EXPIRE, facts))
        assert (step.before, step.after) == (retention, LONGEST_SECONDS)


def test_the_pace_of_others_says_nothing_of_a_message_that_stays() -> None:
    moving = but(EXPIRING, backlog_now=1, deleted=100_000)
    assert found_in(MESSAGES_ABOUT_TO_EXPIRE, moving) is None
    stays = but(moving, oldest_age_seconds_before=3 * A_DAY + 7_200 - 21_600)
    assert found_in(MESSAGES_ABOUT_TO_EXPIRE, stays)


def test_a_group_that_moves_on_by_now_gets_no_dlq() -> None:
    assert isinstance(refused(FIFO_GROUP_BLOCKED, but(BLOCKED, measured=None)), Ignore)


def test_what_was_agreed_to_is_the_same_plan_by_other_numbers() -> None:
    """An approval is taken up minutes or hours later."""
    proposed = planned(DLQ_MISSING, coming_back(received=40, sent=1))
    assert planned(DLQ_MISSING, coming_back(received=1, sent=1)).steps == proposed.steps
