"""The redrive story: 200 orders reach a DLQ, their cause is fixed, and Mendq redrives them."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from msgspec import structs

from local_account.demo.consumers.careless import Careless
from local_account.demo.consumers.hasty import Hasty, NoAddress, Order
from local_account.demo.stage import LOOK_EVERY_SECONDS, ONCE, ScriptFailed, Stage
from local_account.demo.traffic import MOST_ENTRIES, Caller, consuming, send
from mendq.consumer import idempotent
from mendq.consumer.idempotent import Careful, Once
from mendq.model.case import State
from mendq.model.limits import Bounds
from mendq.model.settings import RedriveSettings
from mendq.redrive.progress import RedriveProgress
from mendq.redrive.progress import Stage as At
from mendq.redrive.store import RedriveStore

SOURCE = "orders"
DEAD = "orders-dlq"
# A second pair of queues, which Mendq does not manage.
BESIDE = "receipts"
BESIDE_DEAD = "receipts-dlq"
TABLE = "demo-orders-done"
NEW_ORDERS = 30
UPDATES = 2_400
# Twice as many as the first batches need, so that some are idle when a visibility timeout ends.
HASTY_WORKERS = 40
CARELESS_WORKERS = 4
CAREFUL_WORKERS = 4
RECEIPT_SECONDS = 0.15
HELD_SECONDS = 2
# The queue's maxReceiveCount is 2, so a claim must end before the second receive does.
CLAIM_SECONDS = 1
REDRIVE_SECONDS = 240.0
TICK_SECONDS = 8.0
TICK_AGAIN_SECONDS = 1.0
SHIPPED = Bounds()
# Every tenth message is a poison message here. With the shipped limits the redrive would halt.
LOWERED = Bounds(
    halt_returned=50, halt_share=0.25, rate_share=1.0, least_soak_seconds=8, measuring_seconds=240
)


def orders(count: int, kind: str, *, with_poison: bool = False) -> tuple[Order, ...]:
    """Return that many orders. With poison, every tenth has no address and cannot be handled."""
    poison = range(7, count, 10) if with_poison else range(0)
    return tuple(
        {
            "order_id": f"{kind}-{number:03}",
            "address": None if number in poison else f"{number + 1} Elm Street",
        }
        for number in range(count)
    )


ORDERS = orders(200, "order", with_poison=True)
RECEIPTS = orders(20, "receipt")


@dataclass
class Payments:
    """The payment service that the consumers call. Thread-safe.

    `charged` counts the charges of each order.
    """

    charged: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def charge(self, order: Order) -> None:
        """Charge for an order. Raises NoAddress, and charges nothing, if it has no address."""
        if order["address"] is None:
            raise NoAddress(order["order_id"])
        with self._lock:
            self.charged[order["order_id"]] += 1

    def count_charged_again(self, orders: Iterable[Order]) -> int:
        """Return how many of these orders were charged more than once."""
        return sum(self.charged[order["order_id"]] > 1 for order in orders)


@dataclass(frozen=True)
class RecordingOnce(Once):
    """Does work at most once per key, as `Once`, and records all keys whose work is done."""

    noted: set[str] = field(default_factory=set)

    def run(self, key: str, work: Callable[[], object]) -> bool:
        """Do the work unless it was done before. Return True if it was done now.

        Raises Busy if another consumer does it at this moment, and whatever `work` raises.
        """
        is_new = super().run(key, work)
        self.noted.add(key)
        return is_new


def order_ids_in(sqs: Any, queue_url: str) -> set[str]:
    """Return the ids of all orders in a queue. All its messages are visible afterwards.

    A message that is not an order counts as None: on a loaded machine some of the updates can
    reach the DLQ too.
    """
    order_ids: dict[str, str] = {}  # by receipt handle
    while True:
        answer = sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=MOST_ENTRIES, VisibilityTimeout=20
        )
        messages = answer.get("Messages", [])
        if not messages:
            break
        for message in messages:
            order_ids[message["ReceiptHandle"]] = json.loads(message["Body"]).get("order_id")
    for handle in order_ids:
        sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=handle, VisibilityTimeout=0)
    return set(order_ids.values())


def whereabouts(
    handled_ids: Iterable[str],
    quarantined_ids: Iterable[str],
    dead_ids: Iterable[str],
    charged: Mapping[str, int],
) -> tuple[dict[str, int], list[str]]:
    """Count where the orders are in the end, and find what is not as the story claims.

    Args:
        handled_ids: Orders that a consumer handled.
        quarantined_ids: Orders in the quarantine queue.
        dead_ids: Orders in the DLQ.
        charged: Number of charges of each order.

    Returns:
        The counts by place, and a sentence for each fault.
    """
    good = {order["order_id"] for order in ORDERS if order["address"]}
    ids = {order["order_id"] for order in ORDERS}
    handled = ids & set(handled_ids)
    quarantined = ids & set(quarantined_ids)
    dead = ids & set(dead_ids)
    lost = ids - handled - quarantined - dead
    # A good order must be charged once, a poison order never.
    wrongly_charged = {
        order_id for order_id in ids if charged.get(order_id, 0) != (1 if order_id in good else 0)
    }
    wrong = {
        "lost": lost,
        "left in the DLQ": dead,
        "good and not handled": good - handled,
        "poison and not in quarantine": ids - good - quarantined,
        "handled and in quarantine": handled & quarantined,
        "not charged exactly once": wrongly_charged,
    }
    counts = {
        "messages": len(ids),
        "processed": len(handled),
        "quarantined": len(quarantined),
        "left": len(dead),
        "lost": len(lost),
    }
    faults = [
        f"{len(order_ids)} messages {what}: {', '.join(sorted(order_ids)[:3])}"
        for what, order_ids in wrong.items()
        if order_ids
    ]
    return counts, faults


def list_lowered_bounds() -> list[str]:
    """Return a line for each limit of the redrive that the story changes."""
    shipped = asdict(SHIPPED)
    lowered = asdict(LOWERED)
    return [
        f"redrive.{name}: {lowered[name]:g} instead of {shipped[name]:g}"
        for name in shipped
        if lowered[name] != shipped[name]
    ]


def sentence(progress: RedriveProgress) -> str:
    """Return a sentence about the redrive's stage and about how many messages moved in all."""
    sends = progress.because or f"{progress.current.size} messages at most"
    return f"{sends}; {progress.moved} went back in all, {progress.returned} came back"


def seconds_left(progress: RedriveProgress | None) -> float:
    """Return how long the current soak still lasts, in seconds; 0 outside a soak.

    In a soak, Mendq watches the messages that it moved before it moves more.
    """
    if progress is None or progress.stage is not At.SOAK or progress.current.soak_ends_at is None:
        return 0.0
    return max(0.0, (progress.current.soak_ends_at - datetime.now(UTC)).total_seconds())


class RedriveStage(Stage):
    """The stage of the redrive story: a shop with consumers, their memory, and payments."""

    progress: RedriveProgress | None = None

    def open_shop(self) -> None:
        """Create the table of handled orders, and the queues that Mendq does not manage."""
        self.sqs = self.account.client("sqs", config=ONCE)
        dynamodb = self.account.client("dynamodb", config=ONCE)
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.payments = Payments()
        self.memory = RecordingOnce(dynamodb, TABLE, CLAIM_SECONDS)
        self.hasty = Hasty(
            replace(self.running[SOURCE].caller, sqs=self.sqs),
            Once(dynamodb, TABLE, CLAIM_SECONDS),
            self.payments.charge,
        )
        self.source = self.seen(SOURCE).queue_url
        self.dead = self.seen(DEAD).queue_url
        self.case_store = RedriveStore(dynamodb, self.account.outputs["CaseTable"])
        self.sqs.create_queue(QueueName=BESIDE_DEAD)
        arn = f"{self.seen(DEAD).queue_arn.rpartition(':')[0]}:{BESIDE_DEAD}"
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
        attributes = {"VisibilityTimeout": "1", "RedrivePolicy": policy}
        self.beside = self.sqs.create_queue(QueueName=BESIDE, Attributes=attributes)["QueueUrl"]

    def _send(self, url: str, orders: Iterable[Order]) -> None:
        bodies = [json.dumps(order) for order in orders]
        send(Caller(self.sqs, url, lambda _: None), bodies)

    def _consume_carelessly(self) -> None:
        def work(order: Order) -> None:
            time.sleep(RECEIPT_SECONDS)
            self.payments.charge(order)

        Careless(self.sqs, self.beside, work).consume()

    def let_all_die(self) -> None:
        """Send all orders and receipts to the DLQs, by a visibility timeout that is too short."""
        self._send(self.source, ORDERS)
        self._send(self.beside, RECEIPTS)
        poison = sum(order["address"] is None for order in ORDERS)
        self.say(SOURCE, f"{len(ORDERS)} orders come, {poison} of them without an address")
        careless = consuming(self._consume_carelessly, CARELESS_WORKERS)
        with consuming(self.hasty.consume, HASTY_WORKERS), careless:
            self.until_holding(len(ORDERS), DEAD)
            self.until_holding(len(RECEIPTS), BESIDE_DEAD)
        self.say(DEAD, f"all {len(ORDERS)} are DLQ messages now", "red")

    def let_new_orders_through(self) -> None:
        """Send new orders and many updates, and wait until all of them are handled."""
        new = f"{NEW_ORDERS} new orders, {UPDATES:,} updates"
        self.say(SOURCE, f"{new}: do they get through?")
        with consuming(self.hasty.consume, HASTY_WORKERS):
            self._send(self.source, orders(NEW_ORDERS, "new"))
            self.until_working(SOURCE)
            self._send(self.source, [{"update": number} for number in range(UPDATES)])
            self.until_holding(0, SOURCE)
        self.look()

    def lower_bounds(self) -> None:
        """Lower the redrive's limits in the environment of the deployed Lambda, and print them."""
        client = self.account.client("lambda")
        name = self.account.outputs["RedriveFunction"]
        configuration = client.get_function_configuration(FunctionName=name)
        variables = configuration["Environment"]["Variables"]
        settings = structs.replace(RedriveSettings.from_environment(variables), bounds=LOWERED)
        client.update_function_configuration(
            FunctionName=name, Environment={"Variables": {**variables, **settings.to_environment()}}
        )
        lines = list_lowered_bounds()
        self.floors_lowered += lines
        reason = "every tenth order is poison, so other bounds hold here than the plan will name: "
        self.say("bounds", reason + "; ".join(lines), "yellow")

    def send_back(self) -> None:
        """Fire the follow-up whenever the redrive can continue, until its case has ended.

        Meanwhile idempotent consumers are at work. Raises ScriptFailed if it takes too long.
        """
        self._say_of_the_clock("the follow-up is fired when there is something to do")
        # A poison order fails on purpose, and each failure would log a traceback.
        logging.getLogger(idempotent.__name__).setLevel(logging.CRITICAL + 1)
        consumer = Careful(self.sqs, self.source, self.memory, self.payments.charge, HELD_SECONDS)
        self._printed_stages: set[str] = set()
        deadline = time.monotonic() + REDRIVE_SECONDS
        with consuming(consumer.consume, CAREFUL_WORKERS):
            while not self._has_ended():
                if time.monotonic() > deadline:
                    raise ScriptFailed(f"the redrive did not end in {REDRIVE_SECONDS:.0f} s")
                self._tick()
        self._look_at_progress()

    def _has_ended(self) -> bool:
        states = self.states(DEAD)
        return State.VERIFIED in states or State.ESCALATED in states

    def _tick(self) -> None:
        """Fire the follow-up, and wait until the next one can continue the redrive."""
        before = self.progress
        began = time.monotonic()
        self.next_minute()
        while self.progress == before and time.monotonic() < began + TICK_SECONDS:
            self._look_at_progress()
        until = time.monotonic() + TICK_AGAIN_SECONDS + seconds_left(self.progress)
        while time.monotonic() < until and not self._has_ended():
            self._look_at_progress()

    def _look_at_progress(self) -> None:
        """Read the progress, and print each stage of the redrive once."""
        time.sleep(LOOK_EVERY_SECONDS)
        progress = self.case_store.read_newest_progress(self.seen(DEAD).queue_arn)
        self.progress = progress
        self.look()
        if progress is None:
            return
        stage = f"{progress.stage} {progress.current.number}"
        if stage not in self._printed_stages:
            self._printed_stages.add(stage)
            self.say(stage, sentence(progress), "yellow")

    def _quarantine_url(self) -> str | None:
        """Return the URL of the quarantine queue, or None if it does not exist.

        It lists queues, because a call that fails would become an incident.
        """
        name = f"{SOURCE}-quarantine"
        urls = self.sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", [])
        return next((url for url in urls if url.endswith(f"/{name}")), None)

    def count_messages(self) -> None:
        """Count where the orders are. Raises ScriptFailed if one is not where it must be."""
        quarantine_url = self._quarantine_url()
        progress = self.progress
        if progress is None or quarantine_url is None:
            raise ScriptFailed("nothing went back, or nothing was put apart")
        quarantined_ids = order_ids_in(self.sqs, quarantine_url)
        dead_ids = order_ids_in(self.sqs, self.dead)
        counts, faults = whereabouts(
            self.memory.noted, quarantined_ids, dead_ids, self.payments.charged
        )
        self.messages |= counts | {"went_back": progress.moved, "came_back": progress.returned}
        if faults:
            raise ScriptFailed("; ".join(faults))
        places = f"{counts['processed']} handled, {counts['quarantined']} in quarantine, 0 lost"
        text = f"of the first {len(ORDERS)} orders {places}; each customer is charged once"
        sent_later = progress.moved - len(ORDERS)
        if sent_later > 0:
            text += f"; the other {sent_later} that went back were sent later"
        self.say("messages", text, "bold green")

    def give_receipts_more_time(self) -> None:
        """Raise the visibility timeout of the receipts by hand, as Mendq did for the orders."""
        self.sqs.set_queue_attributes(QueueUrl=self.beside, Attributes={"VisibilityTimeout": "30"})

    def consume_receipts_carelessly(self) -> None:
        """Let a consumer that is not idempotent handle the receipts that were redriven."""
        with consuming(self._consume_carelessly, 2):
            self.until_holding(0, BESIDE_DEAD, BESIDE)

    def compare_charges(self) -> None:
        """Print how many customers each consumer charged twice after the redrive.

        Raises ScriptFailed unless no order and every receipt was charged twice.
        """
        careful = self.payments.count_charged_again(ORDERS)
        careless = self.payments.count_charged_again(RECEIPTS)
        self.messages["charged_again"] = {"careful": careful, "careless": careless}
        self.say(SOURCE, f"its careful consumer charged {careful} customers a second time")
        self.say(BESIDE, f"its careless consumer charged {careless} customers a second time")
        if (careful, careless) != (0, len(RECEIPTS)):
            raise ScriptFailed(f"expected none of {SOURCE} and {len(RECEIPTS)} of {BESIDE}")
