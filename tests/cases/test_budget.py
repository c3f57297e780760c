"""The hour's urgent pages: no caller takes them all, and what waits is said, caller by caller."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from msgspec import structs

from mendq.cases.outbox import HELD_BACK
from mendq.cases.record import hold_back
from mendq.model.case import KEPT_FOR_NEW_CALLERS, NOTIFICATIONS_PER_HOUR, Case, State
from mendq.notifications.notification import MOST_CALLERS
from mendq.notifications.sent import NotificationRecord, NotificationText
from tests.heal.conftest import ACCOUNT, REGION, Account, moto_account
from tests.heal.operators import context_of
from tests.heal.test_notification_faults import at_the_start_of_an_hour
from tests.notifications.pages import CASE

OPEN = NOTIFICATIONS_PER_HOUR - KEPT_FOR_NEW_CALLERS


def case(queue: str, *callers: str, state: State = State.ESCALATED) -> Case:
    """Without callers a scan found it."""
    roles = [f"arn:aws:iam::{ACCOUNT}:role/{each}" for each in callers]
    return replace(
        CASE,
        queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        symptom="access_denied",
        evidence={**CASE.evidence, "principals": roles},
        state=state,
    )


class Sender:
    """Sends pages as heal does, each of another queue unless told."""

    def __init__(self, account: Account) -> None:
        self.account = account
        at_the_start_of_an_hour(account)

    def sends(self, queue: str, *callers: str, heard_of: bool = False) -> bool:
        about, text = case(queue, *callers), NotificationText(f"about {queue}", "body")
        record = NotificationRecord.after(None, "down", text, urgent=True, at=self.account.now)
        if heard_of:
            record = structs.replace(record, announced=record.sent().announced)
        notifier = context_of(self.account).notifier
        return notifier.send(about.queue_arn, about.symptom, record, about)

    def holds_back(self, queue: str, caller: str, state: State = State.ESCALATED) -> None:
        hold_back(case(queue, caller, state=state), context_of(self.account))

    def sum_after(self, *waiting: tuple[str, str]) -> tuple[str, str]:
        """What is said of these ten minutes in the next."""
        for queue, caller in waiting:
            self.holds_back(queue, caller)
        assert len(self.account.pages("urgent")) == 1, "the first of them says that some wait"
        self.account.now += HELD_BACK
        self.holds_back(*waiting[0])
        return self.account.pages("urgent")[-1]


@pytest.fixture
def hour(account: Account) -> Sender:
    return Sender(account)


@tried(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(callers=st.lists(st.integers(0, 14), min_size=1, max_size=40))
def test_a_caller_who_had_no_page_has_one_while_any_is_left(callers: list[int]) -> None:
    """Whatever the others did; one who had one has another only of those that are for all."""
    with moto_account() as account:
        hour, sent, had_one = Sender(account), 0, set[int]()
        for n, caller in enumerate(callers):
            expected = sent < OPEN or (sent < NOTIFICATIONS_PER_HOUR and caller not in had_one)
            assert hour.sends(f"q{n}", f"caller-{caller}") is expected
            sent += expected
            had_one |= {caller} if expected else set()
        assert len(account.pages("urgent")) == sent <= NOTIFICATIONS_PER_HOUR


def test_a_stranger_with_many_queues_leaves_the_first_page_of_others(hour: Sender) -> None:
    assert all(hour.sends(f"junk-{n}", "stranger") for n in range(OPEN))
    assert not hour.sends("known", "known-worker", heard_of=True)
    assert hour.sends("payments", "payments-worker")
    assert not hour.sends("refunds", "payments-worker"), "one for each caller"
    assert hour.sends("shared", "payments-worker", "stranger", "shared-worker")
    assert hour.sends("found"), "a scan's symptom is a caller of its own"
    assert not hour.sends("found-too")


def test_what_waits_is_counted_and_named_once_for_each_caller(hour: Sender) -> None:
    junk = [(f"junk-{n}", "stranger") for n in range(30)]
    subject, body = hour.sum_after(*junk, ("payments", "payments-worker"), *junk)
    assert subject == f"Mendq holds pages back: 61 wait, {ACCOUNT} {REGION}"
    waiting = body.partition("WHO\n")[2].partition("\n\n")[0].split("\n")
    assert waiting == ["  junk-0: access_denied", "  payments: access_denied"]


def test_a_sum_names_so_many_callers_and_counts_the_others(hour: Sender) -> None:
    strangers = [(f"junk-{n}", f"stranger-{n}") for n in range(MOST_CALLERS - 1)]
    more = ("last-named", "worker"), ("only-counted", "another")
    subject, body = hour.sum_after(*strangers, *more)
    assert f": {MOST_CALLERS + 1} wait," in subject
    assert "last-named: access_denied" in body
    assert "only-counted" not in body


@pytest.mark.parametrize(("state", "sums"), [(State.ESCALATED, 12), (State.PROPOSED, 2)])
def test_a_sum_is_said_every_ten_minutes_and_of_what_can_wait_every_hour(
    hour: Sender, state: State, sums: int
) -> None:
    for _ in range(2 * 60 // 5):
        hour.holds_back("junk", "stranger", state)
        hour.account.now += timedelta(minutes=5)
    assert len(hour.account.pages("urgent")) == sums
