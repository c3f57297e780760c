"""Notifications about a case: who gets them, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from mendq.cases.view import CaseStoreView
from mendq.follow_up.follow_up import follow_up
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR, Announcement, Announcements
from tests.account.account import WORKER, Account, make_settings
from tests.heal.operators import KMS_DENIED, OWNERS, fail_calls, list_states, make_context

SYMPTOM = "visibility_timeout_too_short"
PROPOSING = {SYMPTOM: Mode.PROPOSE}
# Mendq would have to raise this visibility timeout above its own limit, and refuses.
TOO_LONG_FOR_MENDQ = "601"
LIMITS = Limits(mass_symptom_share=1, mass_symptom_queues=100)


@pytest.fixture
def proposing_account(account: Account) -> Account:
    account.settings = make_settings(autonomy=PROPOSING)
    return account


def read_case_view(account: Account, queue: str) -> CaseStoreView:
    return make_context(account).case_store.look(queue, SYMPTOM, ())


def _read_notification_item(account: Account, queue: str) -> dict[str, Any]:
    return account.case_store_items()[queue, f"page#{SYMPTOM}"]


def _make_queue_with_unsent_notification(account: Account) -> str:
    """Make a queue whose notification SNS refused."""
    queue = account.queue(VisibilityTimeout="30")
    with Stubber(account.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        healed = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert {type(error).__name__ for error in healed.error_by_message_id.values()} == {
        "NotificationNotSent"
    }
    return queue


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_observed_or_applied_case_notifies_nobody(account: Account, tag: str) -> None:
    fail_calls(account, account.queue(tag=tag, VisibilityTimeout="30"))
    (case,) = account.transitions()
    assert case["notified"] is case["urgent"] is False
    assert account.pages("info") == account.pages("urgent") == []


@pytest.mark.parametrize(
    ("tag", "notifications"), [pytest.param("observe", 0, id="observe"), ("propose", 1)]
)
def test_refused_case_notifies_people_in_propose_mode_but_not_in_observe_mode(
    account: Account, tag: str, notifications: int
) -> None:
    fail_calls(account, account.queue(tag=tag, VisibilityTimeout=TOO_LONG_FOR_MENDQ))
    assert list_states(account) == ["refused"]
    assert len(account.pages("info")) == notifications


def test_refusal_that_is_recorded_every_four_hours_is_notified_once_a_day(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout=TOO_LONG_FOR_MENDQ)
    for hour in range(0, 24, 4):
        fail_calls(account, queue, str(hour))
        account.later(hours=4)
    assert [transition["notified"] for transition in account.transitions()] == [True, *[False] * 5]
    assert len(account.pages("info")) == 1
    fail_calls(account, queue, "another day")
    assert len(account.pages("info")) == 2


def test_notification_that_sns_refused_is_sent_at_the_next_delivery_of_the_failed_calls(
    proposing_account: Account,
) -> None:
    queue = _make_queue_with_unsent_notification(proposing_account)
    assert list_states(proposing_account) == ["proposed"]
    assert "VisibilityTimeout" in _read_notification_item(proposing_account, queue)["body"]["S"]
    proposing_account.later(minutes=6)
    for _ in range(2):
        assert (
            proposing_account.heal(
                proposing_account.late_deletes(queue, "1", "2", "3")
            ).error_by_message_id
            == {}
        )
    assert len(proposing_account.pages("info")) == 1
    assert "body" not in _read_notification_item(proposing_account, queue)


def test_notification_being_sent_by_another_run_is_not_sent_twice(
    proposing_account: Account,
) -> None:
    queue = _make_queue_with_unsent_notification(proposing_account)
    proposing_account.later(seconds=30)
    fail_calls(proposing_account, queue)
    assert proposing_account.pages("info") == []


def test_stored_notification_older_than_a_day_is_not_sent(proposing_account: Account) -> None:
    """Retries are recorded, but the age counts from the first attempt."""
    queue = _make_queue_with_unsent_notification(proposing_account)
    for _ in range(3):
        proposing_account.later(hours=7)
        seen = read_case_view(proposing_account, queue)
        announcement = Announcements(
            seen.notification, proposing_account.now
        ).decide_stored_notification(seen.case)
        assert announcement is Announcement.SEND_STORED
        assert seen.notification is not None
        assert make_context(proposing_account).notifier.take_over(queue, SYMPTOM, seen.notification)
    proposing_account.later(hours=7)
    record = read_case_view(proposing_account, queue).notification
    assert record is not None
    notifier = make_context(proposing_account).notifier
    announcement = notifier.send_left_unsent(queue, SYMPTOM, record, None)
    assert announcement is Announcement.NOTHING_TO_ANNOUNCE
    assert proposing_account.pages("info") == []


NOTIFICATIONS_BEYOND_THE_LIMIT = 3


def make_more_proposals_than_notifications(account: Account) -> int:
    """Make three proposals more than people may be notified of in an hour. Return their number."""
    count = NOTIFICATIONS_PER_HOUR + NOTIFICATIONS_BEYOND_THE_LIMIT
    account.settings = make_settings(autonomy=PROPOSING, limits=LIMITS)
    for n in range(count):
        fail_calls(account, account.queue(f"q{n}.fifo", VisibilityTimeout="30"), str(n))
    assert list_states(account) == ["proposed"] * count
    return count


def test_urgent_notification_is_sent_although_proposals_reached_the_hourly_limit(
    account: Account,
) -> None:
    make_more_proposals_than_notifications(account)
    fail_calls(account, account.queue("down", KmsMasterKeyId="alias/orders"), **KMS_DENIED)
    assert "down" in account.pages("urgent")[-1][0]


def test_notifications_beyond_the_hourly_limit_are_announced_once_and_sent_an_hour_later(
    account: Account,
) -> None:
    count = make_more_proposals_than_notifications(account)
    assert len(account.pages("info")) == NOTIFICATIONS_PER_HOUR
    ((_, announcement),) = account.pages("urgent")
    assert str(NOTIFICATIONS_PER_HOUR) in announcement
    account.later(hours=1)
    for _ in range(3):
        follow_up(make_context(account), OWNERS, lambda: 60)
    assert len(account.pages("info")) == count
    assert len(account.pages("urgent")) == 1


def _make_fields_of_caller(role: str) -> dict[str, Any]:
    return {**KMS_DENIED, "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": role}}}}


def test_people_are_notified_of_a_new_caller_of_an_open_case_but_not_of_a_known_one(
    account: Account,
) -> None:
    queue = account.queue(KmsMasterKeyId="alias/orders")
    fail_calls(account, queue, **KMS_DENIED)
    account.later(hours=2)
    fail_calls(account, queue, "known", **KMS_DENIED)
    assert len(account.pages("urgent")) == 1
    other = WORKER.replace("orders-worker", "billing")
    account.heal(account.late_deletes(queue, "one", **_make_fields_of_caller(other)))
    account.later(minutes=1)
    fail_calls(account, queue, "other", **_make_fields_of_caller(other))
    assert list_states(account) == ["escalated", "escalated"]
    newest = account.transitions()[-1]
    assert newest["n"] == 2
    assert set(newest["evidence"]["principals"]) == {WORKER, other}
    assert other in account.pages("urgent")[-1][1]


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_symptom_without_a_fix_escalates_with_an_urgent_page_even_in_observe_mode_and_a_freeze(
    account: Account, tag: str
) -> None:
    account.freeze()
    fail_calls(account, account.queue(tag=tag, KmsMasterKeyId="alias/orders"), **KMS_DENIED)
    (case,) = account.transitions()
    assert (case["to"], case["steps"], case["notified"]) == ("escalated", [], True)
    assert case["urgent"] is True
    ((subject, body),) = account.pages("urgent")
    assert "KMS denied" in subject
    assert "aws kms get-key-policy" in body
