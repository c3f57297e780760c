"""Open AWS Health events are stored and named first in notifications."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from mendq.cases.aws_health import EVENT_LIFETIME, MAXIMUM_EVENTS, read_health
from tests.account.account import ACCOUNT, REGION, Account
from tests.heal.health_events import ARN, deliver_health_events, format_mail_time, make_health_event

DENIED = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": "no"}


def read_notification_about(account: Account, name: str = "orders", **attributes: str) -> list[str]:
    """Return the lines of the notification about a queue whose callers are denied."""
    queue = account.queue(name, **attributes)
    account.heal(account.late_deletes(queue, f"{name}1", f"{name}2", f"{name}3", **DENIED))
    return account.pages("urgent")[-1][1].splitlines()


def find_health_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if "AWS Health" in line or "health.aws.amazon.com" in line]


def test_aws_health_events_are_neither_errors_nor_failed_calls(account: Account) -> None:
    healed = deliver_health_events(account, make_health_event(account), make_health_event(account))
    assert healed.error_by_message_id == {}
    assert healed.unreadable_by_message_id == {}
    assert healed.failed_call_count == 0


def test_aws_health_event_delivered_twice_and_in_two_pages_is_mentioned_once(
    account: Account,
) -> None:
    second_page = make_health_event(account, detail={"page": "2", "totalPages": "2"})
    deliver_health_events(
        account, make_health_event(account), make_health_event(account), second_page
    )
    event, where = find_health_lines(read_notification_about(account))
    assert ARN in event
    assert "https://health.aws.amazon.com/health/status" in where


def test_notification_mentions_the_open_aws_health_event_before_anything_about_the_queue(
    account: Account,
) -> None:
    deliver_health_events(account, make_health_event(account))
    lines = read_notification_about(account)
    started = f"{account.now - timedelta(minutes=30):%Y-%m-%d %H:%M:%S} UTC"
    assert lines[1] == (
        f"AWS Health: SQS has an open event in this region since {started}: "
        f"AWS_SQS_OPERATIONAL_ISSUE, {ARN}"
    )
    assert (
        lines[2] == "Look there before anything else: https://health.aws.amazon.com/health/status"
    )
    assert lines[3].startswith("What: ")


def test_closed_aws_health_event_is_not_mentioned_even_if_an_older_update_arrives_late(
    account: Account,
) -> None:
    deliver_health_events(account, make_health_event(account))
    deliver_health_events(
        account, make_health_event(account, updated=5, detail={"statusCode": "closed"})
    )
    deliver_health_events(account, make_health_event(account))
    assert find_health_lines(read_notification_about(account)) == []


def test_aws_health_event_that_was_never_closed_is_forgotten_after_its_lifetime(
    account: Account,
) -> None:
    deliver_health_events(account, make_health_event(account))
    account.later(seconds=EVENT_LIFETIME.total_seconds() - 1)
    assert find_health_lines(read_notification_about(account, "a-second-before")) != []
    account.later(seconds=1)
    assert find_health_lines(read_notification_about(account)) == []


def test_aws_health_event_that_starts_in_the_future_is_not_mentioned(account: Account) -> None:
    soon = format_mail_time(account.now + timedelta(hours=1))
    deliver_health_events(account, make_health_event(account, detail={"startTime": soon}))
    assert find_health_lines(read_notification_about(account)) == []


def test_aws_health_event_of_kms_is_mentioned_only_for_encrypted_queues(account: Account) -> None:
    deliver_health_events(account, make_health_event(account, detail={"service": "KMS"}))
    plain = read_notification_about(account, "plain")
    assert find_health_lines(plain) == []
    encrypted = read_notification_about(account, "secret", KmsMasterKeyId="alias/orders")
    assert find_health_lines(encrypted) != []


def read_mass_symptom_notification(account: Account) -> list[str]:
    """Return the lines of the one notification about four queues that fail at once."""
    bodies = dict[str, str]()
    for n in range(4):
        queue = account.queue(f"q{n}.fifo", VisibilityTimeout="10")
        bodies |= account.late_deletes(queue, f"{n}a", f"{n}b", f"{n}c")
    healed = account.heal(bodies)
    assert healed.error_by_message_id == {}
    ((_, text),) = account.pages("urgent")
    assert "4 of 4 queues" in text
    return text.splitlines()


@pytest.mark.parametrize("service", ["SQS", "KMS"])
def test_mass_symptom_notification_names_the_open_aws_health_event_right_after_its_first_line(
    account: Account, service: str
) -> None:
    """Many queues often fail because of AWS. Some of many queues may have a KMS key."""
    deliver_health_events(account, make_health_event(account, detail={"service": service}))
    lines = read_mass_symptom_notification(account)
    event, where = find_health_lines(lines)
    assert f"AWS Health: {service} has an open event in this region since" in event
    assert ARN in event
    assert "https://health.aws.amazon.com/health/status" in where
    assert lines.index(event) == 1, "behind the first line, before what Mendq makes of it"


def test_mass_symptom_notification_mentions_no_closed_event_and_none_of_another_region(
    account: Account,
) -> None:
    deliver_health_events(account, make_health_event(account))
    deliver_health_events(
        account, make_health_event(account, updated=1, detail={"statusCode": "closed"})
    )
    deliver_health_events(
        account,
        make_health_event(account, detail={"eventRegion": "eu-west-1", "eventArn": f"{ARN}2"}),
    )
    account.later(minutes=2)
    assert find_health_lines(read_mass_symptom_notification(account)) == []


def test_mass_symptom_notification_is_sent_without_unreadable_aws_health_events(
    account: Account,
) -> None:
    key = {"pk": {"S": "account"}, "sk": {"S": "aws_health"}}
    item = {**key, "events": {"S": "no JSON"}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    assert find_health_lines(read_mass_symptom_notification(account)) == []


def deliver_numbered_health_events(account: Account, count: int) -> None:
    """Deliver events with the ARNs `<ARN>0`, `<ARN>1` and so on, the oldest update first."""
    events = [
        make_health_event(account, updated=n, detail={"eventArn": f"{ARN}{n}"})
        for n in range(count)
    ]
    deliver_health_events(account, *events)


def test_case_store_keeps_only_the_newest_aws_health_events(account: Account) -> None:
    deliver_numbered_health_events(account, MAXIMUM_EVENTS + 2)
    item = account.case_store_items()["account", "aws_health"]
    stored = [event["eventArn"] for event in json.loads(item["events"]["S"])]
    assert stored == [f"{ARN}{n}" for n in range(2, MAXIMUM_EVENTS + 2)]


def test_case_store_item_of_aws_health_events_expires_after_the_lifetime_of_an_event(
    account: Account,
) -> None:
    deliver_health_events(account, make_health_event(account))
    item = account.case_store_items()["account", "aws_health"]
    assert int(item["expires_at"]["N"]) == int((account.now + EVENT_LIFETIME).timestamp())


def test_notification_names_at_most_three_aws_health_events_and_one_link(
    account: Account,
) -> None:
    deliver_numbered_health_events(account, 5)
    lines = find_health_lines(read_notification_about(account))
    assert len([line for line in lines if ARN in line]) == 3
    assert len([line for line in lines if "health.aws.amazon.com" in line]) == 1


@pytest.mark.parametrize(
    "over",
    [
        {"account": "210987654321"},
        {"source": "mine.health"},
        {"detail": {"eventRegion": "eu-west-1"}},
        {"detail": {"service": "EC2"}},
        {"detail": {"eventArn": "arn:aws:health:x::event/a\nNEXT"}},
        {"detail": {"eventArn": "https://evil.example"}},
        {"detail": {"startTime": "yesterday"}},
        {"detail": {"lastUpdatedTime": None}},
    ],
)
def test_foreign_or_malformed_aws_health_event_is_not_stored(
    account: Account, over: dict[str, Any]
) -> None:
    body = make_health_event(account, **over)
    assert read_health(body, ACCOUNT, REGION) is None
    assert deliver_health_events(account, body).error_by_message_id == {}
    assert ("account", "aws_health") not in account.case_store_items()


def test_aws_health_events_with_a_far_future_update_time_do_not_displace_a_real_one(
    account: Account,
) -> None:
    never = {"lastUpdatedTime": "Fri, 31 Dec 9999 23:59:59 GMT"}
    forged = [
        make_health_event(
            account, detail={**never, "eventArn": f"{ARN}{n}", "eventTypeCode": "x\n\x1b" * 80}
        )
        for n in range(MAXIMUM_EVENTS + 1)
    ]
    healed = deliver_health_events(account, make_health_event(account), *forged)
    assert healed.error_by_message_id == {}
    event, _ = find_health_lines(read_notification_about(account))
    assert event.endswith(ARN)


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_text_that_is_no_aws_health_event_is_read_as_none(body: str) -> None:
    assert read_health(body, ACCOUNT, REGION) is None


def test_aws_health_event_that_cannot_be_stored_is_delivered_again_and_stored(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "UpdateItem")

    with monkeypatch.context() as patched:
        patched.setattr(account.clients.dynamodb, "update_item", fails)
        assert [
            *deliver_health_events(account, make_health_event(account)).error_by_message_id
        ] == ["health-0"]
    assert deliver_health_events(account, make_health_event(account)).error_by_message_id == {}
    assert ("account", "aws_health") in account.case_store_items()
