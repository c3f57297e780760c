"""What is wrong with dead letters, from the queues as SQS tells of them to the case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from functions.healing.dead_letters import Redrive, RedriveAllow
from tests.functions.aws.sweeping import Sweeping, sweeping


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def delete(swept: Sweeping, queue_arn: str) -> None:
    swept.account.clients.sqs.delete_queue(QueueUrl=swept.account.url(queue_arn))


def attached(swept: Sweeping, **letters: str) -> tuple[str, str]:
    """A queue that may be healed, and its dead-letter queue."""
    dead = swept.account.queue(
        "orders-dlq", tag="heal", MessageRetentionPeriod="1209600", **letters
    )
    redrive = Redrive(dead, 5).text
    return swept.account.queue("orders", tag="heal", RedrivePolicy=redrive), dead


def opened(swept: Sweeping, symptom: str) -> dict[str, Any] | None:
    """The one transition about a symptom, after a sweep and what heal makes of it."""
    swept.sweep()
    for healed in swept.heal():
        assert healed.errors == {}
    about = [each for each in swept.account.transitions() if each["symptom"] == symptom]
    assert len(about) <= 1
    return about[0] if about else None


def test_a_dead_letter_queue_that_is_gone_is_proposed_under_its_name(swept: Sweeping) -> None:
    queue, dead = attached(swept)
    delete(swept, dead)
    swept.account.later(days=1)
    case = opened(swept, "dead_letter_queue_missing")
    assert case is not None
    assert (case["to"], case["queue_arn"]) == ("proposed", queue)
    assert case["steps"] == [{"attribute": "DeadLetterQueue", "before": "", "after": dead}]
    assert dead not in swept.account.clients.sqs.list_queues().get("QueueUrls", [])


def test_one_that_is_there_is_left(swept: Sweeping) -> None:
    attached(swept)
    swept.account.later(days=1)
    assert opened(swept, "dead_letter_queue_missing") is None


def coming_back(swept: Sweeping) -> str:
    queue = swept.account.queue("orders", tag="heal")
    swept.account.clients.sqs.send_message(QueueUrl=swept.account.url(queue), MessageBody="poison")
    swept.account.later(days=1)
    swept.count_one_coming_back(queue)
    return queue


def test_a_message_that_comes_back_asks_for_a_dead_letter_queue(swept: Sweeping) -> None:
    queue = coming_back(swept)
    before = swept.account.attributes(queue)
    case = opened(swept, "dead_letter_queue_missing")
    assert case is not None
    dead = f"{queue}-dlq"
    assert case["to"] == "proposed"
    assert [(each["attribute"], each["after"]) for each in case["steps"]] == [
        ("DeadLetterQueue", dead),
        ("RedrivePolicy", Redrive(dead, 5).text),
    ]
    assert swept.account.attributes(queue) == before


def blocked(swept: Sweeping) -> str:
    """A FIFO queue of which one message is received again and again, and holds up the others."""
    queue = swept.account.queue("orders.fifo", tag="heal", ContentBasedDeduplication="true")
    swept.account.clients.sqs.send_message(
        QueueUrl=swept.account.url(queue), MessageBody="poison", MessageGroupId="g"
    )
    swept.account.later(days=1)
    for minutes in range(20, 381):
        at = swept.account.now - timedelta(minutes=minutes)
        age = 60 * (400 - minutes)
        swept.count(queue, at, received=2, visible=9, in_flight=1, groups=1, age=age)
    return queue


def test_a_blocked_group_is_proposed_a_dead_letter_queue_once(swept: Sweeping) -> None:
    """That the queue lacks one is found as well, and is the same proposal."""
    queue = blocked(swept)
    case = opened(swept, "fifo_group_blocked")
    assert case is not None
    assert (case["to"], case["queue_arn"]) == ("proposed", queue)
    assert [each["attribute"] for each in case["steps"]] == ["DeadLetterQueue", "RedrivePolicy"]
    found = [
        each["symptom"] for each in swept.findings()["findings"] if "fifo" in each["queue_arn"]
    ]
    assert {"fifo_group_blocked", "dead_letter_queue_missing"} <= set(found), "both are reported"
    assert [each["symptom"] for each in swept.account.transitions()] == ["fifo_group_blocked"]


def test_a_dead_letter_queue_waits_until_consumers_do_not_fail_any_more(swept: Sweeping) -> None:
    """Else a person would be asked to dump the backlog beside the page that says why."""
    queue = swept.account.queue("orders", tag="heal")
    swept.account.clients.sqs.send_message(QueueUrl=swept.account.url(queue), MessageBody="poison")
    swept.account.later(days=1)
    for minutes in (60, 90, 120):
        at = swept.account.now - timedelta(minutes=minutes)
        swept.count(queue, at, received=1_000, visible=200, sent=200)
    swept.sweep()
    found = {each["symptom"] for each in swept.findings()["findings"]}
    assert {"consumer_failing", "dead_letter_queue_missing"} <= found
    assert swept.named() == [(queue, "consumer_failing")]


def test_a_queue_of_that_name_pages_instead(swept: Sweeping) -> None:
    coming_back(swept)
    swept.account.queue("orders-dlq", tag=None)
    case = opened(swept, "dead_letter_queue_missing")
    assert case is not None
    assert (case["to"], case["steps"]) == ("escalated", [])


def test_a_source_that_is_not_let_in_is_proposed_at_its_dead_letter_queue(swept: Sweeping) -> None:
    queue, dead = attached(swept)
    others = RedriveAllow("byQueue", (f"{queue}-2",))
    swept.account.clients.sqs.set_queue_attributes(
        QueueUrl=swept.account.url(dead), Attributes={"RedriveAllowPolicy": others.text}
    )
    case = opened(swept, "dead_letter_access_refused")
    assert case is not None
    assert (case["to"], case["queue_arn"]) == ("proposed", dead)
    (step,) = case["steps"]
    assert (step["before"], step["after"]) == (others.text, others.adding(queue).text)


def test_letters_that_nothing_explains_page(swept: Sweeping) -> None:
    queue, dead = attached(swept)
    swept.account.clients.sqs.send_message(QueueUrl=swept.account.url(dead), MessageBody="a letter")
    swept.account.later(days=1)
    swept.count(dead, swept.account.now - timedelta(minutes=90), visible=0)
    swept.count(dead, swept.account.now - timedelta(minutes=30), visible=1)
    case = opened(swept, "dead_letters_arriving")
    assert case is not None
    assert (case["to"], case["queue_arn"]) == ("escalated", dead)
    assert queue in case["reason"]


def test_letters_do_not_page_where_the_same_round_finds_their_cause(swept: Sweeping) -> None:
    queue, dead = attached(swept)
    for each in (queue, dead):
        swept.account.clients.sqs.send_message(QueueUrl=swept.account.url(each), MessageBody="one")
    swept.account.later(days=1)
    for minutes in (30, 60, 90):
        at = swept.account.now - timedelta(minutes=minutes)
        swept.count(queue, at, received=1_000, visible=200, sent=200)
        swept.count(dead, at, visible=100 - minutes)
    swept.sweep()
    found = {(each["queue_arn"], each["symptom"]) for each in swept.findings()["findings"]}
    assert {(queue, "consumer_failing"), (dead, "dead_letters_arriving")} <= found
    assert swept.named() == [(queue, "consumer_failing")]


def test_what_is_only_reported_opens_no_case(swept: Sweeping) -> None:
    queue = swept.account.queue("orders", tag="heal", SqsManagedSseEnabled="false")
    policy = Redrive(queue, 5).text
    swept.account.clients.sqs.set_queue_attributes(
        QueueUrl=swept.account.url(queue), Attributes={"RedrivePolicy": policy}
    )
    swept.sweep()
    assert swept.told == []
    found = swept.findings()["findings"]
    names = {each["symptom"] for each in found if each["queue_arn"] == queue}
    assert names == {"not_encrypted", "redrive_cycle", "tls_not_enforced"}
    assert swept.account.transitions() == []


def test_a_service_that_cannot_use_the_key_pages(swept: Sweeping) -> None:
    allow = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    swept.account.queue("orders", tag="heal", Policy=policy, KmsMasterKeyId="alias/aws/sqs")
    case = opened(swept, "sender_cannot_deliver")
    assert case is not None
    assert (case["to"], case["steps"]) == ("escalated", [])
    assert "sns.amazonaws.com" in case["reason"]
