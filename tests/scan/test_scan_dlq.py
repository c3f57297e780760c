"""What is wrong with DLQs, from the queues as SQS tells of them to the case."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.model.queue import Redrive
from tests.scan.scanning import Scanning


def attached(scanned: Scanning, **messages: str) -> tuple[str, str]:
    """A queue that may be healed, and its DLQ."""
    dead = scanned.account.queue(
        "orders-dlq", tag="heal", MessageRetentionPeriod="1209600", **messages
    )
    redrive = Redrive(dead, 5).text
    return scanned.account.queue("orders", tag="heal", RedrivePolicy=redrive), dead


def opened(scanned: Scanning, symptom: str) -> dict[str, Any] | None:
    """The one transition about a symptom, after a scan and what heal makes of it."""
    scanned.scan()
    for healed in scanned.heal():
        assert healed.errors == {}
    about = [each for each in scanned.account.transitions() if each["symptom"] == symptom]
    assert len(about) <= 1
    return about[0] if about else None


def coming_back(scanned: Scanning) -> str:
    queue = scanned.account.queue("orders", tag="heal")
    scanned.account.clients.sqs.send_message(
        QueueUrl=scanned.account.url(queue), MessageBody="poison"
    )
    scanned.account.later(days=1)
    scanned.count_one_coming_back(queue)
    return queue


def test_a_message_that_comes_back_asks_for_a_dlq(scanned: Scanning) -> None:
    queue = coming_back(scanned)
    before = scanned.account.attributes(queue)
    case = opened(scanned, "dlq_missing")
    assert case is not None
    dead = f"{queue}-dlq"
    assert case["to"] == "proposed"
    assert [(each["attribute"], each["after"]) for each in case["steps"]] == [
        ("DeadLetterQueue", dead),
        ("RedrivePolicy", Redrive(dead, 5).text),
    ]
    assert scanned.account.attributes(queue) == before


def blocked(scanned: Scanning) -> str:
    """A FIFO queue of which one message is received again and again, and holds up the others."""
    queue = scanned.account.queue("orders.fifo", tag="heal", ContentBasedDeduplication="true")
    scanned.account.clients.sqs.send_message(
        QueueUrl=scanned.account.url(queue), MessageBody="poison", MessageGroupId="g"
    )
    scanned.account.later(days=1)
    for minutes in range(20, 381):
        at = scanned.account.now - timedelta(minutes=minutes)
        age = 60 * (400 - minutes)
        scanned.count(queue, at, received=2, visible=9, in_flight=1, groups=1, age=age)
    return queue


def test_a_blocked_group_is_proposed_a_dlq_once(scanned: Scanning) -> None:
    """That the queue lacks one is found as well, and is the same proposal."""
    queue = blocked(scanned)
    case = opened(scanned, "fifo_group_blocked")
    assert case is not None
    assert (case["to"], case["queue_arn"]) == ("proposed", queue)
    assert [each["attribute"] for each in case["steps"]] == ["DeadLetterQueue", "RedrivePolicy"]
    found = [
        each["symptom"] for each in scanned.findings()["findings"] if "fifo" in each["queue_arn"]
    ]
    assert {"fifo_group_blocked", "dlq_missing"} <= set(found), "both are reported"
    assert [each["symptom"] for each in scanned.account.transitions()] == ["fifo_group_blocked"]


def test_a_queue_of_that_name_pages_instead(scanned: Scanning) -> None:
    coming_back(scanned)
    scanned.account.queue("orders-dlq", tag=None)
    case = opened(scanned, "dlq_missing")
    assert case is not None
    assert (case["to"], case["steps"]) == ("escalated", [])


def test_messages_do_not_page_where_the_same_round_finds_their_cause(scanned: Scanning) -> None:
    queue, dead = attached(scanned)
    for each in (queue, dead):
        scanned.account.clients.sqs.send_message(
            QueueUrl=scanned.account.url(each), MessageBody="one"
        )
    scanned.account.later(days=1)
    for minutes in (30, 60, 90):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(queue, at, received=1_000, visible=200, sent=200)
        scanned.count(dead, at, visible=100 - minutes)
    scanned.scan()
    found = {(each["queue_arn"], each["symptom"]) for each in scanned.findings()["findings"]}
    assert {(queue, "consumer_failing"), (dead, "dlq_messages_arriving")} <= found
    assert scanned.named() == [(queue, "consumer_failing")]


def test_what_is_only_reported_opens_no_case(scanned: Scanning) -> None:
    queue = scanned.account.queue("orders", tag="heal", SqsManagedSseEnabled="false")
    policy = Redrive(queue, 5).text
    scanned.account.clients.sqs.set_queue_attributes(
        QueueUrl=scanned.account.url(queue), Attributes={"RedrivePolicy": policy}
    )
    scanned.scan()
    assert scanned.announced == []
    found = scanned.findings()["findings"]
    names = {each["symptom"] for each in found if each["queue_arn"] == queue}
    assert names == {"not_encrypted", "redrive_cycle", "tls_not_enforced"}
    assert scanned.account.transitions() == []
