"""The careful consumer beside the careless one: same orders, same trouble."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from local_account.process import LocalAccount
from mendq.consumer.idempotent import Careful, Once
from mendq.model.queue import RedrivePolicy
from tests.local_account.queues import eventually, new_queue

pytestmark = pytest.mark.account
TIMEOUT_SECONDS = 2
# A tenth of the defaults of `Careful` and `Once`.
TENTH_OF_TIMEOUT_SECONDS = 3
TENTH_OF_CLAIM_SECONDS = 2
MAX_RECEIVE_COUNT = 3
ORDERS = [f"order-{number:02}" for number in range(8)]
PATIENCE_SECONDS = 300
WORKERS = 3


class Charges(list[str]):
    """What customers were charged; of a poison order there is no charge."""

    def __init__(self, poison: str) -> None:
        super().__init__()
        self.poison = poison

    def charge(self, order: Mapping[str, Any]) -> None:
        if order["order_id"] == self.poison:
            raise ValueError(order["order_id"])
        self.append(order["order_id"])


class DemoShop:
    """A queue of orders, and the table of those that are done."""

    def __init__(self, account: LocalAccount, *, fifo: bool = False, **attributes: str) -> None:
        given: dict[str, Any] = {"VisibilityTimeout": str(TIMEOUT_SECONDS), **attributes}
        self.account = account
        self.queue = new_queue(account, fifo=fifo, **given)
        self.dynamodb = account.client("dynamodb")
        self.table = f"shop-{uuid.uuid4().hex[:8]}"
        self.dynamodb.create_table(
            TableName=self.table,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def send(self, *order_ids: str, **more: str) -> None:
        for order_id in order_ids:
            fifo = more and {**more, "MessageDeduplicationId": uuid.uuid4().hex}
            body = json.dumps({"order_id": order_id})
            self.queue.sqs.send_message(QueueUrl=self.queue.url, MessageBody=body, **fifo)

    def count_unfinished(self) -> int:
        kinds = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(map(int, self.queue.attributes(*kinds).values()))

    def careful(self, charges: Charges, left: int) -> None:
        """Some workers consume orders carefully until so many messages are left."""
        once = Once(self.dynamodb, self.table, TENTH_OF_CLAIM_SECONDS)
        sqs = self.queue.sqs
        url = self.queue.url
        consumer = Careful(sqs, url, once, charges.charge, TIMEOUT_SECONDS)
        ends = monotonic() + PATIENCE_SECONDS

        def work() -> None:
            while self.count_unfinished() > left:
                assert monotonic() < ends
                consumer.consume()

        with ThreadPoolExecutor(WORKERS) as workers:
            for future in [workers.submit(work) for _ in range(WORKERS)]:
                future.result()


def test_careful_consumer_charges_each_order_once_except_the_poison_and_unreadable_ones(
    account: LocalAccount,
) -> None:
    shop = DemoShop(account)
    charges = Charges(ORDERS[3])
    for body in ("no JSON", "[]", "{}"):
        shop.queue.send(body)
    shop.send(*ORDERS, ORDERS[0])  # one of them twice
    shop.careful(charges, left=4)
    assert sorted(charges) == [*ORDERS[:3], *ORDERS[4:]]
    assert shop.count_unfinished() == 4


def test_careful_consumer_skips_fifo_messages_behind_a_failed_one_of_their_group(
    account: LocalAccount,
) -> None:
    shop = DemoShop(account, fifo=True)
    charges = Charges(ORDERS[1])
    shop.send(*ORDERS[:4], MessageGroupId="a")
    shop.send("other", MessageGroupId="b")
    shop.careful(charges, left=3)
    assert set(charges) == {ORDERS[0], "other"}


class ConsumerKilledError(BaseException):
    """The consumer's process is gone: nothing may catch this."""


class Lab(DemoShop):
    """One order, whose message goes to a DLQ at its third receive, and consumers in trouble."""

    def __init__(self, account: LocalAccount) -> None:
        self.dead = new_queue(account)
        policy = RedrivePolicy(self.dead.arn, MAX_RECEIVE_COUNT).text
        timeout = str(TENTH_OF_TIMEOUT_SECONDS)
        super().__init__(account, VisibilityTimeout=timeout, RedrivePolicy=policy)
        self.charged: list[str] = []

    def consumer(self, work: Callable[[Mapping[str, Any]], object] | None = None) -> Careful:
        """A consumer with clients of its own, as in a process of its own."""
        # Whether the SDK calls again after a lost answer is not what saves the order.
        once = Config(retries={"total_max_attempts": 1})
        sqs, dynamodb = (self.account.client(name, config=once) for name in ("sqs", "dynamodb"))
        memory = Once(dynamodb, self.table, TENTH_OF_CLAIM_SECONDS)
        work = work or self.charge
        return Careful(sqs, self.queue.url, memory, work, TENTH_OF_TIMEOUT_SECONDS)

    def charge(self, order: Mapping[str, Any]) -> None:
        self.charged.append(order["order_id"])

    def consume_all(self, consumer: Careful) -> None:
        """Consume until no message is left, neither visible nor in flight."""
        ends = monotonic() + PATIENCE_SECONDS
        while self.count_unfinished():
            assert monotonic() < ends, "a message is left"
            consumer.consume()

    def require_done_once(self, order_id: str = ORDERS[0]) -> None:
        assert self.charged == [order_id]
        assert self.dead.count() == 0
        item = self.dynamodb.get_item(TableName=self.table, Key={"key": {"S": order_id}})["Item"]
        assert "is_done" in item


def _consume_until(consumer: Careful, happened: Callable[[], object]) -> None:
    ends = monotonic() + PATIENCE_SECONDS
    while not happened():
        assert monotonic() < ends, "it did not happen in time"
        consumer.consume()


def test_order_of_a_crashed_consumer_is_charged_once_and_does_not_reach_the_dlq(
    account: LocalAccount,
) -> None:
    """The claim of the dead consumer ends before SQS gives the message up."""
    lab = Lab(account)
    crashed = Event()

    def die(_order: Mapping[str, Any]) -> None:
        crashed.set()
        raise ConsumerKilledError

    lab.send(ORDERS[0])
    with pytest.raises(ConsumerKilledError):
        _consume_until(lab.consumer(die), crashed.is_set)
    lab.consume_all(lab.consumer())
    lab.require_done_once()


def test_order_is_charged_once_if_two_consumers_crash_one_after_the_other(
    account: LocalAccount,
) -> None:
    """Of three receives one is left, and that one holds the message until the claim is over."""
    lab = Lab(account)
    received = Event()

    def die(_order: Mapping[str, Any]) -> None:
        received.set()
        raise ConsumerKilledError

    lab.send(ORDERS[0])
    with pytest.raises(ConsumerKilledError):
        _consume_until(lab.consumer(die), received.is_set)
    # The next consumer receives the message and crashes before it asks for the claim.
    eventually(lab.queue.receive)
    lab.consume_all(lab.consumer())
    lab.require_done_once()


def _lose_answer(consumer: Careful, words: str) -> Event:
    """Let the first write to DynamoDB that says these words land, and lose its answer."""
    lost = Event()

    def lose(request: Any, **_: Any) -> None:
        if words in str(request.body) and not lost.is_set():
            lost.set()
            URLLib3Session().send(request)
            raise ReadTimeoutError(endpoint_url="dynamodb")

    consumer.once.dynamodb.meta.events.register("before-send.dynamodb.UpdateItem", lose)
    return lost


@pytest.mark.parametrize("words", ["attribute_not_exists(held_until)", "if_not_exists(is_done"])
def test_order_is_charged_once_if_a_dynamodb_response_is_lost(
    account: LocalAccount, words: str
) -> None:
    """The answer to the claim, or to the record that the order is done."""
    lab = Lab(account)
    consumer = lab.consumer()
    lost = _lose_answer(consumer, words)
    lab.send(ORDERS[0])
    lab.consume_all(consumer)
    assert lost.is_set()
    lab.require_done_once()


def test_order_is_charged_once_if_the_response_to_a_claim_renewal_is_lost(
    account: LocalAccount,
) -> None:
    lab = Lab(account)

    def work(order: Mapping[str, Any]) -> None:
        assert lost.wait(PATIENCE_SECONDS)
        lab.charge(order)

    consumer = lab.consumer(work)
    lost = _lose_answer(consumer, "AND held_by = :owner")
    lab.send(ORDERS[0])
    lab.consume_all(consumer)
    lab.require_done_once()


def test_order_is_charged_once_if_a_slow_consumer_loses_its_message_to_another(
    account: LocalAccount,
) -> None:
    """The second consumer holds the message for longer than three visibility timeouts.

    Its heartbeat tells when: each extension comes half a visibility timeout after the last.
    """
    lab = Lab(account)
    works = Event()
    held_for_long = Event()
    extensions: list[int] = []

    def work_slowly(order: Mapping[str, Any]) -> None:
        works.set()
        assert held_for_long.wait(PATIENCE_SECONDS)
        lab.charge(order)

    slow = lab.consumer(work_slowly)
    second = lab.consumer()

    def refuse(**_: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="sqs")

    def count(**_: Any) -> None:
        extensions.append(1)
        if len(extensions) > 2 * MAX_RECEIVE_COUNT:
            held_for_long.set()

    slow.sqs.meta.events.register("before-call.sqs.ChangeMessageVisibility", refuse)
    second.sqs.meta.events.register("before-call.sqs.ChangeMessageVisibility", count)
    lab.send(ORDERS[0])
    with ThreadPoolExecutor(1) as process:
        first = process.submit(_consume_until, slow, works.is_set)
        assert works.wait(PATIENCE_SECONDS)
        _consume_until(second, held_for_long.is_set)
        first.result()
    assert lab.charged == [ORDERS[0]]
    lab.consume_all(second)
    lab.require_done_once()
