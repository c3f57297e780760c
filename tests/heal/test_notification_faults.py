"""Notifications that SNS did not accept at first."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.aws.errors import NotificationNotSent
from mendq.cases.items import notification_key
from mendq.follow_up.follow_up import follow_up
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR, Announcement
from mendq.notifications.sent import NotificationRecord
from tests.account.account import Account
from tests.account.faults import Fault
from tests.heal.builders import move_to_start_of_hour
from tests.heal.operators import (
    OWNERS,
    Heal,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    send_decision,
)
from tests.notifications.pages import EXAMPLE_TEXT
from tests.scan.scanner import deny_operation


def test_stored_notification_is_sent_although_dynamodbs_answer_to_its_claim_was_lost(
    account: Account,
) -> None:
    """The run that stored the notification died before it could send it."""
    record = NotificationRecord.create(None, "lost", EXAMPLE_TEXT, urgent=True, at=account.now)
    assert make_context(account).notifier.store(notification_key("account", "probe"), record, None)
    account.later(minutes=2)
    fault = Fault(account, "answer_lost", 1)
    notifier = make_context(account).notifier
    announcement = notifier.send_left_unsent("account", "probe", record, None)
    assert announcement is Announcement.ALREADY_ANNOUNCED
    assert fault.call == "dynamodb.UpdateItem"
    assert account.pages("urgent") == [(EXAMPLE_TEXT.subject, EXAMPLE_TEXT.body)]


def follow_up_each_minute(account: Account, *, minutes: int) -> None:
    """Run follow_up each minute. It retries notifications that could not be sent."""
    for _ in range(minutes):
        account.later(minutes=1)
        follow_up(make_context(account), OWNERS, lambda: 60)


def test_notification_of_a_proposal_declined_while_sns_fails_is_never_sent_but_the_next_one_is(
    account: Account,
) -> None:
    move_to_start_of_hour(account)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    let_through = deny_operation(account.clients.sns, "Publish")
    fail_calls(account, queue, "a")
    declined = load_newest_case(account)
    send_decision(account, "decline", declined.case_id)
    follow_up_each_minute(account, minutes=3)
    let_through()
    follow_up_each_minute(account, minutes=37)
    assert account.pages("info") == []
    fail_calls(account, queue, "b")
    follow_up_each_minute(account, minutes=10)
    assert list_states(account) == ["proposed", "declined", "proposed"]
    ((_, body),) = account.pages("info")
    assert f"mendq approve {load_newest_case(account).case_id}" in body
    assert declined.case_id not in body


def test_slow_notification_does_not_stop_the_newer_one_from_being_sent(account: Account) -> None:
    """A person approves the proposal, and the approval expires, while one run still publishes the
    proposal.
    """
    move_to_start_of_hour(account)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    heal = Heal(account)
    published = list[str]()

    def publish(**_: Any) -> None:
        published.append("")
        if len(published) == 1:
            account.later(seconds=5)
            account.set_visibility(queue, 60)
            send_decision(account, "approve", load_newest_case(account).case_id)
        elif len(published) == 2:
            raise ClientError({"Error": {"Code": "InternalError"}}, "Publish")

    events: Any = account.clients.sns.meta.events
    events.register("before-call.sns.Publish", publish)
    fail_calls(account, queue, "a")
    assert len(heal.asked) == 1
    assert list_states(account) == ["proposed", "approved", "expired"]
    follow_up_each_minute(account, minutes=10)
    assert [subject.partition(":")[0] for subject, _ in account.pages("info")] == [
        "Mendq proposed",
        "Mendq expired",
    ]


def test_notifications_that_sns_refused_do_not_use_up_the_hourly_budget(account: Account) -> None:
    move_to_start_of_hour(account)
    notifier = make_context(account).notifier
    record = NotificationRecord.create(None, "down", EXAMPLE_TEXT, urgent=True, at=account.now)
    let_through = deny_operation(account.clients.sns, "Publish")
    for _ in range(NOTIFICATIONS_PER_HOUR + 1):
        with pytest.raises(NotificationNotSent):
            notifier.send("a queue", "kms_denied", record)
    let_through()
    assert notifier.send("a queue", "kms_denied", record)
    assert account.pages("urgent") == [(EXAMPLE_TEXT.subject, EXAMPLE_TEXT.body)]
