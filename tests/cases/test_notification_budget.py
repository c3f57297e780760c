"""The hour's urgent pages: no caller takes them all, and what waits is said, caller by caller."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from msgspec import structs

from mendq.cases.record import hold_back_notification
from mendq.model.case import Case
from mendq.model.state import State
from mendq.notifications.announcements import (
    NOTIFICATIONS_PER_HOUR,
    NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS,
    RETRY_HELD_BACK_NOTIFICATION_AFTER,
)
from mendq.notifications.notification import MOST_NAMED_CALLERS
from mendq.notifications.sent import NotificationRecord, NotificationText
from tests.account.account import ACCOUNT, REGION, Account, moto_account
from tests.heal.builders import move_to_start_of_hour
from tests.heal.operators import make_context
from tests.notifications.pages import CASE

OPEN = NOTIFICATIONS_PER_HOUR - NOTIFICATIONS_RESERVED_FOR_NEW_CALLERS


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def case(queue: str, *callers: str, state: State = State.ESCALATED) -> Case:
    """Without callers a scan found it."""
    return replace(
        CASE,
        queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        symptom="access_denied",
        evidence={**CASE.evidence, "principals": [*map(role, callers)]},
        state=state,
    )


class Sender:
    """Sends pages as heal does, each of another queue unless told."""

    def __init__(self, account: Account) -> None:
        self.account = account
        move_to_start_of_hour(account)

    def sends(self, queue: str, *callers: str, heard_of: bool = False) -> bool:
        about = case(queue, *callers)
        text = NotificationText(f"about {queue}", "body")
        record = NotificationRecord.create(None, "down", text, urgent=True, at=self.account.now)
        if heard_of:
            record = structs.replace(record, announced=record.mark_sent().announced)
        notifier = make_context(self.account).notifier
        return notifier.send(about.queue_arn, about.symptom, record, about)

    def holds_back(self, *callers: str, state: State = State.ESCALATED) -> None:
        for n, each in enumerate(callers):
            hold_back_notification(case(f"q{n}", each, state=state), make_context(self.account))

    def said_to_wait(self, *callers: str) -> list[str]:
        """What is said of these within the hour, ten minutes later."""
        self.holds_back(*callers)
        assert len(self.account.pages("urgent")) == 1, "the first of them says that some wait"
        self.account.now += RETRY_HELD_BACK_NOTIFICATION_AFTER
        self.holds_back(callers[0])
        _, body = self.account.pages("urgent")[-1]
        return body.partition("WHO\n")[2].partition("\n\n")[0].split("\n")


@pytest.fixture
def hour(account: Account) -> Sender:
    return Sender(account)


@tried(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(callers=st.lists(st.integers(0, 14), min_size=1, max_size=40))
def test_caller_without_a_notification_this_hour_gets_one_while_any_is_left(
    callers: list[int],
) -> None:
    """Whatever the others did; one who had one has another only of those that are for all."""
    with moto_account() as account:
        hour = Sender(account)
        sent = 0
        had_one = set[int]()
        for n, caller in enumerate(callers):
            expected = sent < OPEN or (sent < NOTIFICATIONS_PER_HOUR and caller not in had_one)
            assert hour.sends(f"q{n}", f"caller-{caller}") is expected
            sent += expected
            had_one |= {caller} if expected else set()
        assert len(account.pages("urgent")) == sent <= NOTIFICATIONS_PER_HOUR


def test_caller_with_many_queues_does_not_use_up_other_callers_first_notification(
    hour: Sender,
) -> None:
    assert all(hour.sends(f"junk-{n}", "stranger") for n in range(OPEN))
    assert not hour.sends("known", "known-worker", heard_of=True)
    assert hour.sends("payments", "payments-worker")
    assert not hour.sends("refunds", "payments-worker"), "one for each caller"
    assert hour.sends("shared", "payments-worker", "stranger", "shared-worker")
    assert hour.sends("found"), "a scan's symptom is a caller of its own"
    assert not hour.sends("found-too")


def test_summary_of_held_back_notifications_names_each_caller_once(hour: Sender) -> None:
    junk = ["stranger"] * 30
    said = hour.said_to_wait(*junk, "payments-worker", *junk)
    assert said == [f"  {role(each)}" for each in ("stranger", "payments-worker")]


def test_summary_of_held_back_notifications_counts_the_callers_beyond_its_limit(
    hour: Sender,
) -> None:
    """The one whose page brings the sum is none of those that are only counted."""
    said = hour.said_to_wait("payments", *(f"caller-{n}" for n in range(MOST_NAMED_CALLERS + 1)))
    assert len(said) == MOST_NAMED_CALLERS + 1
    assert (said[0], said[-1]) == (f"  {role('payments')}", "  and 2 more")


@pytest.mark.parametrize(("state", "sums"), [(State.ESCALATED, 12), (State.PROPOSED, 2)])
def test_summary_of_held_back_notifications_is_sent_every_ten_minutes_or_hourly_for_proposals(
    hour: Sender, state: State, sums: int
) -> None:
    for _ in range(2 * 60 // 5):
        hour.holds_back("stranger", state=state)
        hour.account.now += timedelta(minutes=5)
    assert len(hour.account.pages("urgent")) == sums
