"""What kills the letters, and mends that: for real, by calls that fail."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

from functions.healing.states import State
from local_account.demo.consumers.careless import Careless
from local_account.demo.redrive.fleet import consuming
from local_account.demo.redrive.hasty import Hasty
from local_account.demo.redrive.orders import ORDERS, Order, orders, send, updates
from local_account.demo.redrive.queue_counts import messages_in
from local_account.demo.redrive.shop import Shop
from local_account.demo.stage import Stage
from local_account.demo.story import BadQueue

LETTERS = tuple(orders(ORDERS, "order", with_poison=True))
RECEIPTS = tuple(orders(20, "receipt"))
NEW_ORDERS, UPDATES = 30, 2_400
# Twice as many as hold a batch at first: somebody is idle when the lease is over.
HASTY_WORKERS, CARELESS_WORKERS = 40, 4
A_RECEIPT_SECONDS = 0.15
LONG_POLL_SECONDS = 1.5


@dataclass(frozen=True)
class Beside:
    """A queue with a careless consumer, which nobody gave to Mendq, and its dead letters."""

    name: str
    queue_url: str
    dead_url: str


def open_beside(stage: Stage, shop: Shop) -> Beside:
    """Make it, and send it the receipts."""
    name, sqs = "receipts", shop.sqs
    dead = sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    arn = stage.arn_of(f"{name}-dlq")
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = sqs.create_queue(
        QueueName=name, Attributes={"VisibilityTimeout": "1", "RedrivePolicy": policy}
    )["QueueUrl"]
    send(sqs, url, list(RECEIPTS))
    return Beside(name, url, dead)


def careless_of(beside: Beside, shop: Shop) -> Careless:
    def work(order: Order) -> None:
        time.sleep(A_RECEIPT_SECONDS)
        shop.payments.charge(order)

    return Careless(shop.sqs, beside.queue_url, work)


def die_and_mend(
    stage: Stage, shop: Shop, source: BadQueue, letters: BadQueue, beside: Beside
) -> None:
    """Every order dies of a lease that is too short; then it is longer, and others are handled."""
    seen, dead_url = stage.seen(source.name), stage.seen(letters.name).queue_url
    caller = replace(stage.running[source.name].caller, sqs=shop.sqs)
    send(shop.sqs, seen.queue_url, list(LETTERS))
    stage.say(source.name, f"{ORDERS} orders come, {_poison()} of them without an address")
    with ExitStack() as consumers:
        hasty, careless = Hasty(caller, shop.hasty, shop.payments), careless_of(beside, shop)
        consumers.enter_context(consuming(hasty.consume, HASTY_WORKERS))
        consumers.enter_context(consuming(careless.consume, CARELESS_WORKERS))
        consumers.callback(caller.enough.set)
        _until_in(stage, shop, dead_url, ORDERS, f"{ORDERS} dead letters in {letters.name}")
        _until_in(stage, shop, beside.dead_url, len(RECEIPTS), f"dead letters of {beside.name}")
        stage.say(letters.name, f"all {ORDERS} are dead letters now", "red")
        stage.until_in([source.name], State.APPLIED)
        # A long poll that began before the change hands out by the old lease.
        time.sleep(LONG_POLL_SECONDS)
        send(shop.sqs, seen.queue_url, [*orders(NEW_ORDERS, "new"), *updates(UPDATES)])
        stage.say(
            source.name, f"{NEW_ORDERS} new orders, {UPDATES:,} updates: do they get through?"
        )
        stage.until(lambda: _works(stage, source), f"extensions of {source.name} that are given")
        _until_in(stage, shop, seen.queue_url, 0, f"{source.name} to drain")
    stage.look()


def _works(stage: Stage, source: BadQueue) -> bool:
    return stage.seen(source.name).calls_well >= source.traffic.convincing


def _until_in(stage: Stage, shop: Shop, queue_url: str, how_many: int, what: str) -> None:
    stage.until(lambda: messages_in(shop.sqs, queue_url) == how_many, what)


def _poison() -> int:
    return sum(each["address"] is None for each in LETTERS)
