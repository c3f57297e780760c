"""The hourly budget of urgent notifications is shared fairly between callers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
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


def make_role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def make_case(queue: str, *callers: str, state: State = State.ESCALATED) -> Case:
    """Return a case of these callers, or of a scan if there are none."""
    return replace(
        CASE,
        queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        symptom="access_denied",
        evidence={**CASE.evidence, "principals": [*map(make_role_arn, callers)]},
        state=state,
    )


class NotificationSender:
    """Sends and holds back notifications as heal does."""

    def __init__(self, account: Account) -> None:
        self.account = account
        move_to_start_of_hour(account)

    def try_to_send(self, queue: str, *callers: str, heard_of: bool = False) -> bool:
        about = make_case(queue, *callers)
        text = NotificationText(f"about {queue}", "body")
        record = NotificationRecord.create(None, "down", text, urgent=True, at=self.account.now)
        if heard_of:
            record = structs.replace(record, announced=record.mark_sent().announced)
        notifier = make_context(self.account).notifier
        return notifier.send(about.queue_arn, about.symptom, record, about)

    def hold_back(self, *callers: str, state: State = State.ESCALATED) -> None:
        for n, caller in enumerate(callers):
            hold_back_notification(
                make_case(f"q{n}", caller, state=state), make_context(self.account)
            )

    def read_summary_lines(self, *callers: str) -> list[str]:
        """Hold back notifications about the callers. Return the summary ten minutes later."""
        self.hold_back(*callers)
        assert len(self.account.pages("urgent")) == 1, "the first of them says that some wait"
        self.account.now += RETRY_HELD_BACK_NOTIFICATION_AFTER
        self.hold_back(callers[0])
        _, body = self.account.pages("urgent")[-1]
        return body.partition("WHO\n")[2].partition("\n\n")[0].split("\n")


@pytest.fixture
def sender(account: Account) -> NotificationSender:
    return NotificationSender(account)


@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(callers=st.lists(st.integers(0, 14), min_size=1, max_size=40))
def test_caller_without_a_notification_this_hour_gets_one_while_any_is_left(
    callers: list[int],
) -> None:
    """A caller that had a notification gets another one only from the share for all callers."""
    with moto_account() as account:
        sender = NotificationSender(account)
        sent = 0
        had_one = set[int]()
        for n, caller in enumerate(callers):
            expected = sent < OPEN or (sent < NOTIFICATIONS_PER_HOUR and caller not in had_one)
            assert sender.try_to_send(f"q{n}", f"caller-{caller}") is expected
            sent += expected
            had_one |= {caller} if expected else set()
        assert len(account.pages("urgent")) == sent <= NOTIFICATIONS_PER_HOUR


def use_up_share_for_all_callers(sender: NotificationSender) -> None:
    """Let one caller have every notification that is not reserved for new callers."""
    assert all(sender.try_to_send(f"junk-{n}", "stranger") for n in range(OPEN))


def test_caller_with_many_queues_does_not_use_up_other_callers_first_notification(
    sender: NotificationSender,
) -> None:
    use_up_share_for_all_callers(sender)
    assert sender.try_to_send("payments", "payments-worker")
    assert not sender.try_to_send("refunds", "payments-worker"), "one for each caller"


def test_notification_of_a_known_queue_waits_once_the_share_for_all_callers_is_used_up(
    sender: NotificationSender,
) -> None:
    use_up_share_for_all_callers(sender)
    assert not sender.try_to_send("known", "known-worker", heard_of=True)


def test_notification_of_several_callers_is_sent_if_one_of_them_had_none_this_hour(
    sender: NotificationSender,
) -> None:
    use_up_share_for_all_callers(sender)
    assert not sender.try_to_send("shared", "stranger")
    assert sender.try_to_send("shared", "stranger", "shared-worker")


def test_findings_of_scans_count_as_one_caller(sender: NotificationSender) -> None:
    use_up_share_for_all_callers(sender)
    assert sender.try_to_send("found")
    assert not sender.try_to_send("found-too")


def test_summary_of_held_back_notifications_names_each_caller_once(
    sender: NotificationSender,
) -> None:
    junk = ["stranger"] * 30
    said = sender.read_summary_lines(*junk, "payments-worker", *junk)
    assert said == [f"  {make_role_arn(caller)}" for caller in ("stranger", "payments-worker")]


def test_summary_of_held_back_notifications_counts_the_callers_beyond_its_limit(
    sender: NotificationSender,
) -> None:
    """The caller whose notification triggers the summary is named, not only counted."""
    said = sender.read_summary_lines(
        "payments", *(f"caller-{n}" for n in range(MOST_NAMED_CALLERS + 1))
    )
    assert len(said) == MOST_NAMED_CALLERS + 1
    assert (said[0], said[-1]) == (f"  {make_role_arn('payments')}", "  and 2 more")


@pytest.mark.parametrize(
    ("state", "summaries"), [(State.ESCALATED, 2 * 60 // 10), (State.PROPOSED, 2)]
)
def test_summary_of_held_back_escalations_is_sent_every_ten_minutes_and_of_proposals_hourly(
    sender: NotificationSender, state: State, summaries: int
) -> None:
    for _ in range(2 * 60 // 5):
        sender.hold_back("stranger", state=state)
        sender.account.now += timedelta(minutes=5)
    assert len(sender.account.pages("urgent")) == summaries
