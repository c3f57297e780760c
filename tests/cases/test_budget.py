"""The hour's urgent pages: no caller takes them all, and what waits is said, caller by caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from msgspec.structs import replace

from mendq.cases.outbox import HELD_BACK, Notifier
from mendq.cases.record import hold_back
from mendq.model.case import (
    KEPT_FOR_NEW_CALLERS,
    MOST_CALLERS,
    NOTIFICATIONS_PER_HOUR,
    Case,
    State,
)
from mendq.notifications.sent import NotificationRecord, NotificationText
from tests.heal.conftest import ACCOUNT, REGION, Account, moto_account
from tests.heal.operators import context_of
from tests.heal.test_notification_faults import at_the_start_of_an_hour
from tests.notifications.pages import CASE

OPEN = NOTIFICATIONS_PER_HOUR - KEPT_FOR_NEW_CALLERS


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def case(queue: str, *callers: str, state: State = State.ESCALATED) -> Case:
    """Without callers a scan found it."""
    evidence = {**CASE.evidence, "principals": [*map(role, callers)]}
    made: Any = {
        "queue_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "symptom": "access_denied",
        "evidence": evidence,
        "state": state,
    }
    return Case(**{**{name: getattr(CASE, name) for name in CASE.__dataclass_fields__}, **made})


def page(account: Account, queue: str, *, urgent: bool = True) -> NotificationRecord:
    text = NotificationText(f"about {queue}", "body")
    return NotificationRecord.after(None, "down", text, urgent=urgent, at=account.now)


class Sender:
    """Sends pages as heal does, each of another queue unless told."""

    def __init__(self, account: Account) -> None:
        self.account = account
        at_the_start_of_an_hour(account)

    @property
    def notifier(self) -> Notifier:
        return context_of(self.account).notifier

    def sends(self, queue: str, *callers: str, urgent: bool = True) -> bool:
        about = case(queue, *callers)
        record = page(self.account, queue, urgent=urgent)
        return self.notifier.send(about.queue_arn, about.symptom, record, about)


@contextmanager
def sender() -> Iterator[Sender]:
    with moto_account() as account:
        yield Sender(account)


@tried(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(callers=st.lists(st.integers(0, 14), min_size=1, max_size=40))
def test_a_caller_who_had_no_page_has_one_while_any_is_left(callers: list[int]) -> None:
    """Whatever the others did; one who had one has another only of those that are for all."""
    with sender() as hour:
        sent, had_one = 0, set[int]()
        for n, caller in enumerate(callers):
            expected = sent < OPEN or (sent < NOTIFICATIONS_PER_HOUR and caller not in had_one)
            assert hour.sends(f"q{n}", f"caller-{caller}") is expected
            sent += expected
            had_one |= {caller} if expected else set()
        assert len(hour.account.pages("urgent")) == sent <= NOTIFICATIONS_PER_HOUR


def _spent(hour: Sender, pages: int = OPEN) -> None:
    for n in range(pages):
        assert hour.sends(f"junk-{n}", "stranger")


def test_a_stranger_with_many_queues_leaves_the_first_page_of_others(account: Account) -> None:
    hour = Sender(account)
    _spent(hour)
    assert not hour.sends("one-more", "stranger")
    assert hour.sends("payments", "payments-worker")
    assert not hour.sends("refunds", "payments-worker"), "one for each caller"
    assert hour.sends("shared", "payments-worker", "stranger", "shared-worker")
    assert hour.sends("found"), "a scan's symptom is a caller of its own"
    assert not hour.sends("found-too")


def test_a_queue_that_people_have_heard_of_takes_none_that_is_kept(account: Account) -> None:
    hour = Sender(account)
    _spent(hour)
    about, heard = case("payments", "payments-worker"), page(account, "payments").sent()
    again = replace(page(account, "payments"), announced=heard.announced)
    assert not hour.notifier.send(about.queue_arn, about.symptom, again, about)


def test_proposals_have_all_of_theirs_whoever_calls(account: Account) -> None:
    hour = Sender(account)
    sent = [hour.sends(f"q{n}", "worker", urgent=False) for n in range(NOTIFICATIONS_PER_HOUR + 1)]
    assert sent == [True] * NOTIFICATIONS_PER_HOUR + [False]


def _hold_back(hour: Sender, *waiting: tuple[str, str]) -> None:
    for queue, caller in waiting:
        hold_back(case(queue, caller), context_of(hour.account))


def test_what_waits_is_counted_and_named_once_for_each_caller(account: Account) -> None:
    hour = Sender(account)
    junk = [(f"junk-{n}", "stranger") for n in range(30)]
    _hold_back(hour, *junk, ("payments", "payments-worker"), *junk)
    assert len(account.pages("urgent")) == 1, "the first of them says that some wait"
    hour.account.now += HELD_BACK
    _hold_back(hour, junk[0])
    subject, body = account.pages("urgent")[-1]
    assert subject == f"Mendq holds pages back: 61 wait, {ACCOUNT} {REGION}"
    waiting = body.partition("WHO\n")[2].partition("\n\n")[0].split("\n")
    assert waiting == ["  junk-0: access_denied", "  payments: access_denied"]


@pytest.mark.parametrize(("strangers", "named"), [(MOST_CALLERS - 1, True), (MOST_CALLERS, False)])
def test_a_sum_names_so_many_callers_and_counts_the_others(
    account: Account, strangers: int, *, named: bool
) -> None:
    hour = Sender(account)
    _hold_back(hour, *((f"junk-{n}", f"stranger-{n}") for n in range(strangers)))
    _hold_back(hour, ("payments", "payments-worker"))
    account.now += HELD_BACK
    _hold_back(hour, ("junk-0", "stranger-0"))
    subject, body = account.pages("urgent")[-1]
    assert f": {strangers + 1} wait," in subject
    assert ("payments: access_denied" in body) is named


@pytest.mark.parametrize(("state", "sums"), [(State.ESCALATED, 12), (State.PROPOSED, 2)])
def test_a_sum_is_said_every_ten_minutes_and_of_what_can_wait_every_hour(
    account: Account, state: State, sums: int
) -> None:
    hour = Sender(account)
    for _ in range(2 * 60 // 5):
        hold_back(case("junk", "stranger", state=state), context_of(account))
        hour.account.now += timedelta(minutes=5)
    assert len(account.pages("urgent")) == sums
