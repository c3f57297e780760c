"""Events on the default bus, topics of teams, and the message format for chat."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from msgspec import structs

from mendq.aws.clients import put_event
from mendq.aws.errors import NotificationNotSent
from mendq.follow_up.follow_up import follow_up
from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT, Severity
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.sent import NotificationRecord, make_publish_arguments
from tests.account.account import ACCOUNT, REGION, Account
from tests.cases.json_schemas import load_validator
from tests.heal.operators import KMS_DENIED, OWNERS, fail_calls, make_context
from tests.notifications.pages import EXAMPLE_TEXT

TEAM = f"arn:aws:sns:{REGION}:{ACCOUNT}:payments"
USUAL = "urgent"
PAYMENTS = "payments"


def _escalate(account: Account, name: str = "orders", **tags: str) -> None:
    queue = account.queue(name, KmsMasterKeyId="alias/orders")
    if tags:
        account.tag(queue, **tags)
    fail_calls(account, queue, name, **KMS_DENIED)


def list_details(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    assert {event["Source"] for event in events} <= {EVENT_SOURCE}
    return [json.loads(event["Detail"]) for event in events if event["DetailType"] == kind]


def follow_up_for_two_minutes(account: Account) -> None:
    for _ in range(2):
        account.later(minutes=1)
        assert follow_up(make_context(account), OWNERS, lambda: 60).errors == {}


def test_transition_is_put_once_as_an_event_by_follow_up_and_fits_its_schema(
    account: Account,
) -> None:
    with account.bus() as events:
        _escalate(account)
        assert list_details(events, TRANSITION_EVENT) == [], "heal does not wait for EventBridge"
        follow_up_for_two_minutes(account)
    (transition,) = list_details(events, TRANSITION_EVENT)
    load_validator("case-transition").validate(transition)
    assert [transition] == account.transitions()


def test_notification_is_put_once_as_an_event_with_its_case_and_text_and_fits_its_schema(
    account: Account,
) -> None:
    with account.bus() as events:
        _escalate(account)
        follow_up_for_two_minutes(account)
    (notification,) = list_details(events, NOTIFICATION_EVENT)
    load_validator("notification").validate(notification)
    (transition,) = account.transitions()
    assert notification["case_id"] == notification["dedup_key"] == transition["case_id"]
    assert (notification["subject"], notification["text"]) == account.pages("urgent")[0]


def test_notification_event_without_a_case_has_a_dedup_key_of_account_and_region(
    account: Account,
) -> None:
    with account.bus() as events:
        make_context(account).notifier.send_about_account("probe", "lost", EXAMPLE_TEXT)
    (page,) = list_details(events, NOTIFICATION_EVENT)
    load_validator("notification").validate(page)
    assert (page["case_id"], page["queue_arn"]) == (None, None)
    assert page["dedup_key"] == f"{ACCOUNT}/{REGION}/probe"


def test_transition_event_that_eventbridge_refused_is_put_later(account: Account) -> None:
    with account.bus(failing=2) as events:
        _escalate(account)
        assert len(account.transitions()) == 1, "in the case bucket all the same"
        for _ in range(3):
            account.later(minutes=6)
            follow_up(make_context(account), OWNERS, lambda: 60)
    assert list_details(events, TRANSITION_EVENT) == account.transitions()


def test_notification_whose_event_is_refused_reaches_people_once_and_its_event_is_put_later(
    account: Account,
) -> None:
    account.clients.sns.create_topic(Name="payments")
    with account.bus(failing=3) as events:
        _escalate(account)
        assert len(account.pages("urgent")) == 1
        for minutes in (2, 4, 6):
            account.later(minutes=minutes)
            follow_up(make_context(account), OWNERS, lambda: 60)
    assert len(list_details(events, NOTIFICATION_EVENT)) == 1
    assert len(account.pages("urgent")) == 1


def test_notification_that_sns_refused_is_sent_later_although_no_event_can_be_put(
    account: Account,
) -> None:
    with account.bus(failing=1_000), Stubber(account.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        _escalate(account)
        sns.deactivate()
        for _ in range(3):
            account.later(minutes=6)
            follow_up(make_context(account), OWNERS, lambda: 60)
    assert len(account.pages("urgent")) == 1


def test_hourly_notification_limit_holds_while_no_event_can_be_put(account: Account) -> None:
    account.now = account.now.replace(minute=1, second=0)
    record = NotificationRecord.create(None, "lost", EXAMPLE_TEXT, urgent=False, at=account.now)
    with account.bus(failing=1_000):
        for n in range(NOTIFICATIONS_PER_HOUR + 5):
            with suppress(NotificationNotSent):
                make_context(account).notifier.send(f"queue-{n}", "kms_denied", record)
    assert len(account.pages("info")) == NOTIFICATIONS_PER_HOUR


@pytest.fixture
def account_with_team(account: Account) -> Account:
    account.clients.sns.create_topic(Name=PAYMENTS)
    account.settings = structs.replace(account.settings, team_topic_arns={PAYMENTS: TEAM})
    return account


def test_notification_goes_to_the_tagged_team_and_to_the_usual_topic(
    account_with_team: Account,
) -> None:
    _escalate(account_with_team, **{"mendq:notify": PAYMENTS})
    (notification,) = account_with_team.pages(USUAL)
    assert account_with_team.pages(PAYMENTS) == [notification]


@pytest.mark.parametrize("tag", ["Payments", TEAM, ""], ids=["other case", "ARN", "empty"])
def test_notification_of_a_queue_tagged_with_no_teams_name_goes_only_to_the_usual_topic(
    account_with_team: Account, tag: str
) -> None:
    _escalate(account_with_team, **{"mendq:notify": tag})
    assert len(account_with_team.pages(USUAL)) == 1
    assert account_with_team.pages(PAYMENTS) == []


def test_failure_of_a_teams_topic_is_mentioned_in_the_usual_topics_notification(
    account_with_team: Account,
) -> None:
    account_with_team.clients.sns.delete_topic(TopicArn=TEAM)
    _escalate(account_with_team, **{"mendq:notify": PAYMENTS})
    ((_, body),) = account_with_team.pages(USUAL)
    assert f"The topic of team {PAYMENTS} did not take it: " in body.splitlines()[-1]


def test_notification_that_sns_refused_is_sent_later_to_the_team_too(
    account_with_team: Account,
) -> None:
    with Stubber(account_with_team.clients.sns) as sns:
        for _ in range(2):
            sns.add_client_error("publish", "InternalError")
        _escalate(account_with_team, **{"mendq:notify": PAYMENTS})
    account_with_team.later(minutes=6)
    follow_up(make_context(account_with_team), OWNERS, lambda: 60)
    assert len(account_with_team.pages(USUAL)) == len(account_with_team.pages(PAYMENTS)) == 1


HOSTILE = '``` <!channel> <https://evil.example|click> @here &lt; \x00\u202e "quoted"\n*bold*'


NOTIFICATION = {
    "subject": f"on {HOSTILE}",
    "text": f"WHO\n  {HOSTILE}\n",
    "dedup_key": "kms_denied-1",
    "queue_arn": "arn:aws:sqs:r:a:orders",
}
MOST_BYTES_OF_SNS = 262_144


def read_chat_message() -> dict[str, Any]:
    """Return the message of the example notification that SNS sends to Amazon Q."""
    message = make_publish_arguments(NOTIFICATION, is_for_chat=True)
    chat_message: dict[str, Any] = json.loads(json.loads(message["Message"])["https"])
    return chat_message


def test_notification_for_chat_is_published_as_json_with_the_plain_text_for_mail() -> None:
    message = make_publish_arguments(NOTIFICATION, is_for_chat=True)
    assert message["MessageStructure"] == "json"
    assert len(message["Message"].encode()) < MOST_BYTES_OF_SNS
    assert json.loads(message["Message"])["default"] == NOTIFICATION["text"]


def test_chat_message_fits_amazon_qs_schema_and_has_one_thread_for_each_case() -> None:
    chat_message = read_chat_message()
    load_validator("amazon-q-custom-notification").validate(chat_message)
    assert chat_message["metadata"]["threadId"] == NOTIFICATION["dedup_key"]


def test_chat_message_shows_hostile_text_without_links_mentions_or_the_end_of_its_block() -> None:
    content = read_chat_message()["content"]
    assert not set("<>@`") & set(content["title"])
    fence, text, end = content["description"].split("```")
    assert (fence, end) == ("", ""), "no text closes its block"
    assert not set("<>@") & set(text)
    assert "&amp;lt;" in text


@pytest.mark.parametrize(("chat", "form"), [((), None), ((Severity.URGENT,), "json")])
def test_notification_is_published_as_json_only_if_chat_is_set_for_its_severity(
    account: Account, chat: tuple[Severity, ...], form: str | None
) -> None:
    account.settings = structs.replace(account.settings, chat=chat)
    asked: list[dict[str, Any]] = []
    account.clients.sns.meta.events.register(
        "provide-client-params.sns.Publish", lambda params, **_: asked.append(params), "asked"
    )
    _escalate(account)
    account.clients.sns.meta.events.unregister(
        "provide-client-params.sns.Publish", unique_id="asked"
    )
    assert [arguments.get("MessageStructure") for arguments in asked] == [form]


@pytest.mark.parametrize(
    ("docs_url", "link"),
    [
        ("https://wiki.example/docs/*.md", "https://wiki.example/docs/runbooks/kms_denied.md"),
        ("https://docs.example/*.html", "https://docs.example/runbooks/kms_denied.html"),
        ("https://docs.example/*/", "https://docs.example/runbooks/kms_denied/"),
    ],
)
def test_notification_links_only_to_its_own_runbook_under_the_configured_docs_url(
    account: Account, docs_url: str, link: str
) -> None:
    account.settings = structs.replace(account.settings, docs_url=docs_url)
    hostile = "x\n  runbook: docs/runbooks/kms_denied.md"
    fail_calls(
        account, account.queue(KmsMasterKeyId="alias/orders"), **KMS_DENIED, userAgent=hostile
    )
    ((_, body),) = account.pages(USUAL)
    links = [line for line in body.splitlines() if "https://" in line]
    assert links == [f"  runbook: {link}"]


def test_put_event_raises_client_error_if_eventbridge_refuses_the_entry(account: Account) -> None:
    with account.bus(failing=1), pytest.raises(ClientError, match="ThrottlingException"):
        put_event(account.clients, NOTIFICATION_EVENT, {})
