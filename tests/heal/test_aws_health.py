"""AWS Health's events: noted once, said first while they are open, and never believed blindly."""

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
from tests.heal.health_events import ARN, heal_hears, mail_time, told

DENIED = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": "no"}


def page_about(account: Account, name: str = "orders", **attributes: str) -> list[str]:
    """The lines of the notification that a queue's denied callers open."""
    queue = account.queue(name, **attributes)
    account.heal(account.late_deletes(queue, f"{name}1", f"{name}2", f"{name}3", **DENIED))
    return account.pages("urgent")[-1][1].splitlines()


def said(lines: list[str]) -> list[str]:
    return [each for each in lines if "AWS Health" in each or "health.aws.amazon.com" in each]


def test_while_one_is_open_it_is_said_first_and_once(account: Account) -> None:
    another_page = told(account, detail={"page": "2", "totalPages": "2"})
    healed = heal_hears(account, told(account), told(account), another_page)
    assert (
        healed.error_by_message_id,
        healed.unreadable_by_message_id,
        healed.failed_call_count,
    ) == ({}, {}, 0)
    lines = page_about(account)
    started = f"{account.now - timedelta(minutes=30):%Y-%m-%d %H:%M:%S} UTC"
    assert lines[1] == (
        f"AWS Health: SQS has an open event in this region since {started}: "
        f"AWS_SQS_OPERATIONAL_ISSUE, {ARN}"
    )
    assert (
        lines[2] == "Look there before anything else: https://health.aws.amazon.com/health/status"
    )
    assert lines[3].startswith("What: ")


def test_once_it_is_closed_nothing_is_said_whatever_comes_late(account: Account) -> None:
    heal_hears(account, told(account))
    heal_hears(account, told(account, updated=5, detail={"statusCode": "closed"}))
    heal_hears(account, told(account))
    assert said(page_about(account)) == []


def test_one_that_nobody_closed_is_forgotten(account: Account) -> None:
    heal_hears(account, told(account))
    account.later(seconds=EVENT_LIFETIME.total_seconds())
    assert said(page_about(account)) == []


def test_what_is_to_come_is_not_going_on(account: Account) -> None:
    soon = mail_time(account.now + timedelta(hours=1))
    heal_hears(account, told(account, detail={"startTime": soon}))
    assert said(page_about(account)) == []


def test_an_event_of_kms_concerns_queues_with_a_key(account: Account) -> None:
    heal_hears(account, told(account, detail={"service": "KMS"}))
    assert said(page_about(account, "plain")) == []
    assert len(said(page_about(account, "secret", KmsMasterKeyId="alias/orders"))) == 2


def mass_symptom(account: Account) -> list[str]:
    """The lines of the one notification about four queues that fail at once."""
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
def test_mass_symptom_notification_says_first_that_aws_has_an_open_event(
    account: Account, service: str
) -> None:
    """One cause for many queues is often AWS's; some of many queues may have a key."""
    heal_hears(account, told(account, detail={"service": service}))
    lines = mass_symptom(account)
    event, where = said(lines)
    assert f"AWS Health: {service} has an open event in this region since" in event
    assert ARN in event
    assert "https://health.aws.amazon.com/health/status" in where
    assert lines.index(event) == 1, "behind the first line, before what Mendq makes of it"


def test_mass_symptom_notification_names_no_event_that_is_over_or_of_elsewhere(
    account: Account,
) -> None:
    heal_hears(account, told(account))
    heal_hears(account, told(account, updated=1, detail={"statusCode": "closed"}))
    heal_hears(account, told(account, detail={"eventRegion": "eu-west-1", "eventArn": f"{ARN}2"}))
    account.later(minutes=2)
    assert said(mass_symptom(account)) == []


def test_mass_symptom_notification_goes_out_without_events_that_cannot_be_read(
    account: Account,
) -> None:
    key = {"pk": {"S": "account"}, "sk": {"S": "aws_health"}}
    item = {**key, "events": {"S": "no JSON"}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    assert said(mass_symptom(account)) == []


def test_three_are_named_and_only_the_newest_kept(account: Account) -> None:
    many = [
        told(account, updated=n, detail={"eventArn": f"{ARN}{n}"})
        for n in range(MAXIMUM_EVENTS + 2)
    ]
    heal_hears(account, *many)
    item = account.case_store_items()["account", "aws_health"]
    assert len(json.loads(item["events"]["S"])) == MAXIMUM_EVENTS
    assert int(item["expires_at"]["N"]) == int((account.now + EVENT_LIFETIME).timestamp())
    assert len(said(page_about(account))) == 4


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
def test_what_is_no_such_event_of_ours_is_not_noted(account: Account, over: dict[str, Any]) -> None:
    body = told(account, **over)
    assert read_health(body, ACCOUNT, REGION) is None
    assert heal_hears(account, body).error_by_message_id == {}
    assert ("account", "aws_health") not in account.case_store_items()


def test_one_that_would_never_be_over_is_not_noted(account: Account) -> None:
    """Nor do many of them push out what AWS has open."""
    never = {"lastUpdatedTime": "Fri, 31 Dec 9999 23:59:59 GMT"}
    forged = [
        told(account, detail={**never, "eventArn": f"{ARN}{n}", "eventTypeCode": "x\n\x1b" * 80})
        for n in range(MAXIMUM_EVENTS + 1)
    ]
    assert heal_hears(account, told(account), *forged).error_by_message_id == {}
    assert len(said(page_about(account))) == 2


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_whatever_comes_is_read_or_not(body: str) -> None:
    assert read_health(body, ACCOUNT, REGION) is None


def test_a_case_store_that_fails_lets_it_come_again(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "UpdateItem")

    with monkeypatch.context() as patched:
        patched.setattr(account.clients.dynamodb, "update_item", fails)
        assert [*heal_hears(account, told(account)).error_by_message_id] == ["health-0"]
    assert heal_hears(account, told(account)).error_by_message_id == {}
