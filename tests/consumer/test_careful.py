"""Test `Careful`, the consumer that deletes finished messages and holds busy ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from mendq.consumer.idempotent import MOST_WAITING_MESSAGES, Busy, Careful, ClaimLost, Once
from tests.consumer.orders_table import (
    TABLE,
    OrdersTable,
    ProcessKilled,
    open_orders_table,
    wait_until,
)

CLAIM_SECONDS = 600
VISIBILITY_SECONDS = 600


@dataclass
class Shop:
    """A queue of orders in moto, its consumer, and a record of what the consumer did."""

    table: OrdersTable
    is_fifo: bool = False
    max_receive_count: int = 0
    claim_seconds: int = CLAIM_SECONDS
    seconds: int = VISIBILITY_SECONDS
    fails: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sqs = boto3.client("sqs", region_name="us-east-1")
        ending = ".fifo" if self.is_fifo else ""
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if self.is_fifo else {}
        dead = self.sqs.create_queue(QueueName=f"dead{ending}", Attributes=fifo)["QueueUrl"]
        attributes = {"VisibilityTimeout": "30", **fifo}
        if self.max_receive_count:
            asked = self.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
            arn = asked["Attributes"]["QueueArn"]
            policy = {"deadLetterTargetArn": arn, "maxReceiveCount": self.max_receive_count}
            attributes["RedrivePolicy"] = json.dumps(policy)
        made = self.sqs.create_queue(QueueName=f"orders{ending}", Attributes=attributes)
        self.url = made["QueueUrl"]
        self.once = Once(self.table.client(), TABLE, self.claim_seconds)
        self.consumer = Careful(self.sqs, self.url, self.once, self.do, self.seconds)
        self.deleted: list[str] = []
        self.extended: list[Mapping[str, Any]] = []
        events = self.sqs.meta.events
        events.register("before-parameter-build.sqs.DeleteMessage", self._note_delete)
        for name in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"):
            events.register(f"before-parameter-build.sqs.{name}", self._note_extension)

    @property
    def done(self) -> list[str]:
        return self.table.done

    def _note_delete(self, params: Any, **_: Any) -> None:
        self.deleted.append(params["ReceiptHandle"])

    def _note_extension(self, params: Any, **_: Any) -> None:
        self.extended.extend(params.get("Entries", [params]))

    def do(self, order: Mapping[str, Any]) -> None:
        if order["order_id"] in self.fails:
            raise ValueError(order["order_id"])
        self.done.append(order["order_id"])

    def send(self, *order_ids: str, group: str = "") -> None:
        for order_id in order_ids:
            fifo = {"MessageGroupId": group} if group else {}
            body = json.dumps({"order_id": order_id, "group": group})
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **fifo)

    def count(self, *, hidden: bool) -> int:
        name = "ApproximateNumberOfMessages" + ("NotVisible" if hidden else "")
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def claim_elsewhere(self, order_id: str) -> None:
        """Let another consumer claim the order and crash."""

        def die() -> None:
            raise ProcessKilled

        with pytest.raises(ProcessKilled):
            Once(self.table.client(), TABLE, CLAIM_SECONDS).run(order_id, die)

    def finish_elsewhere(self, order_id: str) -> None:
        """Let another consumer finish the order that it claimed."""
        self.table.client().update_item(
            TableName=TABLE,
            Key={"key": {"S": order_id}},
            UpdateExpression="SET is_done = :by",
            ExpressionAttributeValues={":by": {"S": "another consumer"}},
        )


@pytest.fixture
def table() -> Iterator[OrdersTable]:
    with open_orders_table() as made:
        yield made


def test_careful_consumer_keeps_a_message_claimed_elsewhere_hidden_and_handles_the_others(
    table: OrdersTable,
) -> None:
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send("a", "b")
    for _ in range(3):
        shop.consumer.consume()
        assert shop.done == ["b"]
        assert len(shop.deleted) == 1
        assert (shop.count(hidden=True), shop.count(hidden=False)) == (1, 0)
    assert shop.extended == [], "it is hidden for long: it was neither given back nor extended"


def test_careful_consumer_deletes_a_message_whose_work_another_consumer_has_finished(
    table: OrdersTable,
) -> None:
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send("a")
    shop.consumer.consume()
    shop.finish_elsewhere("a")
    shop.consumer.consume()
    assert shop.done == []
    assert shop.count(hidden=True) + shop.count(hidden=False) == 0


def test_careful_consumer_does_and_deletes_a_message_after_another_consumers_claim_is_over(
    table: OrdersTable,
) -> None:
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send("a")
    shop.consumer.consume()
    table.now += CLAIM_SECONDS + 1
    shop.consumer.consume()
    assert shop.done == ["a"]
    assert shop.count(hidden=True) + shop.count(hidden=False) == 0


def test_careful_consumer_does_other_fifo_groups_first_and_a_busy_group_in_order_after_its_claim(
    table: OrdersTable,
) -> None:
    shop = Shop(table, is_fifo=True)
    shop.claim_elsewhere("a1")
    shop.send("a1", "a2", "a3", group="a")
    shop.send("b1", "b2", group="b")
    for _ in range(2):
        shop.consumer.consume()
        assert shop.done == ["b1", "b2"]
        assert len(shop.deleted) == 2
        assert shop.extended == [], "none of the group is given back: each would use up a receive"
    table.now += CLAIM_SECONDS + 1
    shop.consumer.consume()
    assert shop.done == ["b1", "b2", "a1", "a2", "a3"]
    assert shop.count(hidden=True) + shop.count(hidden=False) == 0


def test_careful_consumer_releases_later_messages_of_a_fifo_group_whose_first_failed(
    table: OrdersTable,
) -> None:
    shop = Shop(table, is_fifo=True, fails={"a1"})
    shop.send("a1", "a2", group="a")
    shop.send("b1", group="b")
    shop.consumer.consume()
    assert shop.done == ["b1"]
    assert len(shop.deleted) == 1
    assert [extension["VisibilityTimeout"] for extension in shop.extended] == [0]


def test_careful_consumer_runs_no_later_message_of_a_fifo_group_that_was_busy_and_then_failed(
    table: OrdersTable,
) -> None:
    shop = Shop(table, is_fifo=True, fails={"a1"})
    shop.claim_elsewhere("a1")
    shop.send("a1", "a2", group="a")
    shop.consumer.consume()
    table.now += CLAIM_SECONDS + 1
    shop.consumer.consume()
    assert shop.done == []
    assert shop.deleted == []


@pytest.mark.parametrize("raised", [Busy, ClaimLost])
def test_careful_consumer_deletes_and_runs_nothing_of_a_group_after_busy_or_claim_lost(
    table: OrdersTable, raised: type[Busy]
) -> None:
    """This includes a caller's own `Once`, and a claim that was lost while the work ran."""

    class BusyOnce(Once):
        def run(self, key: str, work: Any) -> bool:
            if key == "a1":
                raise raised(key)
            return super().run(key, work)

    shop = Shop(table, is_fifo=True)
    shop.consumer.once = BusyOnce(table.client(), TABLE, CLAIM_SECONDS)
    shop.send("a1", "a2", group="a")
    shop.send("b1", group="b")
    shop.consumer.consume()
    shop.consumer.consume()
    assert shop.done == ["b1"]
    assert len(shop.deleted) == 1
    assert shop.count(hidden=True) == 2


@pytest.mark.clock
def test_careful_consumer_extends_the_visibility_of_a_busy_message_but_not_of_a_failed_one(
    table: OrdersTable,
) -> None:
    shop = Shop(table, seconds=2, claim_seconds=CLAIM_SECONDS, fails={"failed"})
    shop.claim_elsewhere("busy")
    shop.send("busy", "failed")
    shop.consumer.consume()
    handles = {extension["ReceiptHandle"] for extension in shop.extended}

    def extend() -> bool:
        shop.consumer.consume()
        handles.update(extension["ReceiptHandle"] for extension in shop.extended)
        return len(shop.extended) >= 3

    wait_until(extend)
    assert len(handles) == 1
    assert shop.done == []
    assert {extension["VisibilityTimeout"] for extension in shop.extended} == {2}


def test_careful_consumer_finishes_in_one_thread_a_message_left_waiting_in_another(
    table: OrdersTable,
) -> None:
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send("a")
    shop.consumer.consume()
    table.now += CLAIM_SECONDS + 1
    other = Thread(target=shop.consumer.consume)
    other.start()
    other.join(30)
    assert shop.done == ["a"]


def test_careful_consumer_with_two_threads_does_the_work_of_a_duplicate_message_once(
    table: OrdersTable,
) -> None:
    """The order is sent twice. Its second message is received during the work on the first."""
    shop = Shop(table)
    works = Event()
    may_end = Event()

    def work(order: Mapping[str, Any]) -> None:
        works.set()
        assert may_end.wait(30)
        shop.done.append(order["order_id"])

    shop.consumer.work = work
    shop.send("a")
    first = Thread(target=shop.consumer.consume)
    first.start()
    assert works.wait(30)
    shop.send("a")
    shop.consumer.consume()
    assert shop.deleted == []
    may_end.set()
    first.join(30)
    shop.consumer.consume()
    assert shop.done == ["a"]
    assert shop.count(hidden=True) + shop.count(hidden=False) == 0


def test_careful_consumer_keeps_its_waiting_messages_if_a_receive_fails(table: OrdersTable) -> None:
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send("a")
    shop.consumer.consume()

    def refuse(**_: Any) -> None:
        shop.sqs.meta.events.unregister("before-call.sqs.ReceiveMessage", refuse)
        raise ConnectionRefusedError

    shop.sqs.meta.events.register("before-call.sqs.ReceiveMessage", refuse)
    with pytest.raises(ConnectionRefusedError):
        shop.consumer.consume()
    table.now += CLAIM_SECONDS + 1
    shop.consumer.consume()
    assert shop.done == ["a"]


def test_careful_consumer_holds_no_more_busy_messages_than_its_maximum(table: OrdersTable) -> None:
    """A body can be 1 MiB. Messages beyond the maximum come again later."""
    shop = Shop(table)
    shop.claim_elsewhere("a")
    shop.send(*["a"] * (MOST_WAITING_MESSAGES + 10))
    for _ in range(MOST_WAITING_MESSAGES // 10 + 1):
        shop.consumer.consume()
    table.now += CLAIM_SECONDS + 1
    shop.consumer.consume()
    assert shop.done == ["a"]
    assert len(shop.deleted) == MOST_WAITING_MESSAGES
    assert shop.count(hidden=True) == 10


def test_careful_consumer_refuses_a_queue_whose_receives_end_before_a_claim_is_over(
    table: OrdersTable,
) -> None:
    shop = Shop(table, max_receive_count=5, claim_seconds=120, seconds=30)
    shop.send("a")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"set claim_seconds to less than 120, or set maxRec"):
            shop.consumer.consume()
    assert shop.done == []
    assert shop.count(hidden=False) == 1


def test_careful_consumer_refuses_a_queue_with_a_max_receive_count_of_1(table: OrdersTable) -> None:
    shop = Shop(table, max_receive_count=1, claim_seconds=20, seconds=30)
    shop.send("a")
    with pytest.raises(ValueError, match=r"leave 0 s .*set maxReceiveCount to at least 2$"):
        shop.consumer.consume()
    assert shop.count(hidden=False) == 1


@pytest.mark.parametrize(("max_receive_count", "claim_seconds"), [(5, 119), (2, 20), (0, 900)])
def test_careful_consumer_accepts_a_queue_whose_receives_outlast_a_claim(
    table: OrdersTable, max_receive_count: int, claim_seconds: int
) -> None:
    """A max_receive_count of 0 means no DLQ: a message comes again until it expires."""
    shop = Shop(table, max_receive_count=max_receive_count, claim_seconds=claim_seconds, seconds=30)
    shop.send("a")
    shop.consumer.consume()
    assert shop.done == ["a"]


def test_careful_consumer_without_rights_to_read_the_queue_consumes_and_warns_once(
    table: OrdersTable, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(table, max_receive_count=2, claim_seconds=900, seconds=30)
    calls: list[str] = []

    def refuse(**_: Any) -> None:
        calls.append("GetQueueAttributes")
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetQueueAttributes")

    shop.sqs.meta.events.register("before-call.sqs.GetQueueAttributes", refuse)
    shop.send("a")
    shop.consumer.consume()
    shop.consumer.consume()
    shop.sqs.meta.events.unregister("before-call.sqs.GetQueueAttributes", refuse)
    assert shop.done == ["a"]
    assert len(calls) == 1
    assert caplog.text.count("claim_seconds is not checked") == 1


def test_careful_consumer_works_while_its_queue_check_is_throttled_and_repeats_the_check(
    table: OrdersTable,
) -> None:
    shop = Shop(table, max_receive_count=2, claim_seconds=900, seconds=30)

    def refuse(**_: Any) -> None:
        shop.sqs.meta.events.unregister("before-call.sqs.GetQueueAttributes", refuse)
        raise ClientError({"Error": {"Code": "RequestThrottled"}}, "GetQueueAttributes")

    shop.sqs.meta.events.register("before-call.sqs.GetQueueAttributes", refuse)
    shop.send("a")
    shop.consumer.consume()
    assert shop.done == ["a"], "SQS did not answer: that is no reason to stop"
    with pytest.raises(ValueError, match="claim_seconds"):
        shop.consumer.consume()


@pytest.mark.clock
def test_careful_consumer_skips_and_deletes_no_message_whose_visibility_timeout_ran_out(
    table: OrdersTable,
) -> None:
    """No extension gets through, and the first order takes longer than the visibility timeout."""
    shop = Shop(table, seconds=2, claim_seconds=CLAIM_SECONDS)

    def refuse(**_: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="sqs")

    def work_slowly(order: Mapping[str, Any]) -> None:
        shop.done.append(order["order_id"])
        wait_until(lambda: shop.count(hidden=False) == 2)

    for name in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"):
        shop.sqs.meta.events.register(f"before-call.sqs.{name}", refuse)
    shop.consumer.work = work_slowly
    shop.send("a", "b")
    shop.consumer.consume()
    assert shop.done == ["a"], "another consumer may have b by now"
    assert shop.deleted == []
    assert shop.count(hidden=False) == 2


def test_careful_consumer_extends_a_message_claimed_elsewhere_even_if_every_consume_call_is_short(
    table: OrdersTable,
) -> None:
    """On a queue that is never empty no `consume` lasts until the heartbeat's first beat."""
    shop = Shop(table, seconds=4, claim_seconds=CLAIM_SECONDS)
    shop.claim_elsewhere("busy")
    shop.send("busy")

    def extend() -> bool:
        shop.send(f"order-{len(shop.done)}")
        shop.consumer.consume()
        return bool(shop.extended)

    wait_until(extend)
    assert {extension["VisibilityTimeout"] for extension in shop.extended} == {4}
    assert "busy" not in shop.done
