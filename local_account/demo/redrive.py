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

from local_account.demo.consumers.careless import CarelessConsumer
from local_account.demo.consumers.hasty import HastyConsumer, MissingAddress, Order
from local_account.demo.stage import (
    NO_RETRIES_CONFIGURATION,
    POLL_INTERVAL_SECONDS,
    ScriptFailed,
    Stage,
)
from local_account.demo.traffic import MAXIMUM_BATCH_ENTRIES, Caller, run_consumers, send_bodies
from mendq.consumer import idempotent
from mendq.consumer.idempotent import Careful, Once
from mendq.model.limits import Bounds
from mendq.model.settings import RedriveSettings
from mendq.model.state import State
from mendq.redrive.progress import RedriveProgress
from mendq.redrive.progress import Stage as ProgressStage
from mendq.redrive.store import RedriveStore

SOURCE_QUEUE_NAME = "orders"
DLQ_NAME = "orders-dlq"
# A second pair of queues, which Mendq does not manage.
RECEIPTS_QUEUE = "receipts"
RECEIPTS_DLQ = "receipts-dlq"
HANDLED_ORDERS_TABLE = "demo-orders-done"
NEW_ORDER_COUNT = 30
UPDATE_COUNT = 2_400
# Twice as many as the first batches need, so that some are idle when a visibility timeout ends.
HASTY_WORKER_COUNT = 40
CARELESS_WORKER_COUNT = 4
CAREFUL_WORKER_COUNT = 4
SECONDS_PER_RECEIPT = 0.15
CAREFUL_TIMEOUT_SECONDS = 2
# The queue's maxReceiveCount is 2, so a claim must end before the second receive does.
CLAIM_LIFETIME_SECONDS = 1
MAXIMUM_REDRIVE_SECONDS = 240.0
MAXIMUM_FOLLOW_UP_RUN_SECONDS = 8.0
PAUSE_BETWEEN_FOLLOW_UP_RUNS_SECONDS = 1.0
DEFAULT_REDRIVE_BOUNDS = Bounds()
# Every tenth message is a poison message here. With the shipped limits the redrive would halt.
LOWERED_REDRIVE_BOUNDS = Bounds(
    halt_returned=50, halt_share=0.25, rate_share=1.0, least_soak_seconds=8, measuring_seconds=240
)


def make_orders(
    order_count: int, id_prefix: str, *, has_poison_orders: bool = False
) -> tuple[Order, ...]:
    """Return `order_count` orders, with ids such as `order-001` for the `id_prefix` `order`.

    If `has_poison_orders` is True, every tenth order has no address, so that it cannot be handled.
    """
    poison_order_numbers = range(7, order_count, 10) if has_poison_orders else range(0)
    return tuple(
        {
            "order_id": f"{id_prefix}-{number:03}",
            "address": None if number in poison_order_numbers else f"{number + 1} Elm Street",
        }
        for number in range(order_count)
    )


# The number of orders that are sent together (full batches), and the seconds until the next ones
# are sent. A consumer's late extensions count once a minute, and three of them open a case.
ORDERS_PER_MINUTE = 70
SECONDS_BETWEEN_ORDERS = 65
ORDERS = make_orders(200, "order", has_poison_orders=True)
RECEIPTS = make_orders(20, "receipt")


@dataclass
class Payments:
    """A simulated payment service that the consumers call. Thread-safe.

    `charge_count_by_order` counts the charges of each order.
    """

    charge_count_by_order: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def charge(self, order: Order) -> None:
        """Charge for an order. If it has no address, raise MissingAddress and charge nothing."""
        if order["address"] is None:
            raise MissingAddress(order["order_id"])
        with self._lock:
            self.charge_count_by_order[order["order_id"]] += 1

    def count_charged_again(self, orders: Iterable[Order]) -> int:
        """Return how many of these orders were charged more than once."""
        return sum(self.charge_count_by_order[order["order_id"]] > 1 for order in orders)


@dataclass(frozen=True)
class OnceWithHandledKeys(Once):
    """Does work at most once per key, as `Once`, and records all keys whose work is done."""

    handled_keys: set[str] = field(default_factory=set)

    def run(self, key: str, work: Callable[[], object]) -> bool:
        """Do the work, unless it was done before. Return True if this call did it.

        Raises Busy if another consumer is doing this work now, and the other errors of `Once.run`.
        """
        is_new = super().run(key, work)
        self.handled_keys.add(key)
        return is_new


def list_order_ids(sqs: Any, queue_url: str) -> set[str]:
    """Return the ids of all visible orders in a queue, and make them visible again.

    If the queue has messages that are not orders, the set also has None. On a loaded machine, some
    of the updates can also reach the DLQ.
    """
    order_id_by_handle: dict[str, str] = {}
    while True:
        response = sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=MAXIMUM_BATCH_ENTRIES, VisibilityTimeout=20
        )
        messages = response.get("Messages", [])
        if not messages:
            break
        for message in messages:
            order_id_by_handle[message["ReceiptHandle"]] = json.loads(message["Body"]).get(
                "order_id"
            )
    for receipt_handle in order_id_by_handle:
        sqs.change_message_visibility(
            QueueUrl=queue_url, ReceiptHandle=receipt_handle, VisibilityTimeout=0
        )
    return set(order_id_by_handle.values())


def locate_orders(
    handled_ids: Iterable[str],
    quarantined_ids: Iterable[str],
    ids_in_dlq: Iterable[str],
    charge_count_by_order: Mapping[str, int],
) -> tuple[dict[str, int], list[str]]:
    """Count the orders by the place where they are at the end, and describe each fault.

    Args:
        handled_ids: Ids of orders that a consumer handled.
        quarantined_ids: Ids of orders in the quarantine queue.
        ids_in_dlq: Ids of orders in the DLQ.
        charge_count_by_order: Number of charges of each order, by its id.

    Returns:
        The number of orders by place, and a sentence for each fault. Without a fault, the list is
        empty.
    """
    good_order_ids = {order["order_id"] for order in ORDERS if order["address"]}
    all_order_ids = {order["order_id"] for order in ORDERS}
    handled_order_ids = all_order_ids & set(handled_ids)
    quarantined_order_ids = all_order_ids & set(quarantined_ids)
    order_ids_in_dlq = all_order_ids & set(ids_in_dlq)
    lost_order_ids = all_order_ids - handled_order_ids - quarantined_order_ids - order_ids_in_dlq
    # A good order must be charged once, a poison order never.
    wrongly_charged_order_ids = {
        order_id
        for order_id in all_order_ids
        if charge_count_by_order.get(order_id, 0) != (1 if order_id in good_order_ids else 0)
    }
    order_ids_by_fault = {
        "lost": lost_order_ids,
        "left in the DLQ": order_ids_in_dlq,
        "good and not handled": good_order_ids - handled_order_ids,
        "poison and not in quarantine": all_order_ids - good_order_ids - quarantined_order_ids,
        "handled and in quarantine": handled_order_ids & quarantined_order_ids,
        "not charged exactly once": wrongly_charged_order_ids,
    }
    count_by_place = {
        "messages": len(all_order_ids),
        "processed": len(handled_order_ids),
        "quarantined": len(quarantined_order_ids),
        "left": len(order_ids_in_dlq),
        "lost": len(lost_order_ids),
    }
    faults = [
        f"{len(order_ids)} messages {fault_name}: {', '.join(sorted(order_ids)[:3])}"
        for fault_name, order_ids in order_ids_by_fault.items()
        if order_ids
    ]
    return count_by_place, faults


def describe_lowered_bounds() -> list[str]:
    """Return a line for each limit of the redrive that the story changes, with both values."""
    default_values = asdict(DEFAULT_REDRIVE_BOUNDS)
    lowered_values = asdict(LOWERED_REDRIVE_BOUNDS)
    return [
        f"redrive.{name}: {lowered_values[name]:g} instead of {default_values[name]:g}"
        for name in default_values
        if lowered_values[name] != default_values[name]
    ]


def describe_progress(progress: RedriveProgress) -> str:
    """Return words about the redrive's stage, and about all messages moved and returned so far."""
    stage_text = progress.because or f"{progress.current.size} messages at most"
    return f"{stage_text}; {progress.moved} went back in all, {progress.returned} came back"


def compute_remaining_soak_seconds(progress: RedriveProgress | None) -> float:
    """Return how many seconds the current soak still lasts; 0 if there is none or it has ended.

    In a soak, Mendq waits to see whether the moved messages come back, before it moves more.
    """
    if (
        progress is None
        or progress.stage is not ProgressStage.SOAK
        or progress.current.soak_ends_at is None
    ):
        return 0.0
    return max(0.0, (progress.current.soak_ends_at - datetime.now(UTC)).total_seconds())


class RedriveStage(Stage):
    """Runs the redrive story: a shop with consumers, a table of handled orders, and payments."""

    progress: RedriveProgress | None = None

    def open_shop(self) -> None:
        """Create the shop's clients and consumers, its table, and the queues for receipts.

        Mendq does not manage the queues for receipts.
        """
        self.sqs = self.account.client("sqs", config=NO_RETRIES_CONFIGURATION)
        dynamodb = self.account.client("dynamodb", config=NO_RETRIES_CONFIGURATION)
        dynamodb.create_table(
            TableName=HANDLED_ORDERS_TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.payments = Payments()
        self.once_per_order = OnceWithHandledKeys(
            dynamodb, HANDLED_ORDERS_TABLE, CLAIM_LIFETIME_SECONDS
        )
        self.hasty_consumer = HastyConsumer(
            replace(self.running[SOURCE_QUEUE_NAME].caller, sqs=self.sqs),
            Once(dynamodb, HANDLED_ORDERS_TABLE, CLAIM_LIFETIME_SECONDS),
            self.payments.charge,
        )
        self.source_url = self.observation_of(SOURCE_QUEUE_NAME).queue_url
        self.dlq_url = self.observation_of(DLQ_NAME).queue_url
        self.redrive_store = RedriveStore(dynamodb, self.account.outputs["CaseTable"])
        self.sqs.create_queue(QueueName=RECEIPTS_DLQ)
        receipts_dlq_arn = (
            f"{self.observation_of(DLQ_NAME).queue_arn.rpartition(':')[0]}:{RECEIPTS_DLQ}"
        )
        policy = json.dumps({"deadLetterTargetArn": receipts_dlq_arn, "maxReceiveCount": 1})
        attributes = {"VisibilityTimeout": "1", "RedrivePolicy": policy}
        self.receipts_url = self.sqs.create_queue(QueueName=RECEIPTS_QUEUE, Attributes=attributes)[
            "QueueUrl"
        ]

    def _send_orders(self, queue_url: str, orders: Iterable[Order]) -> None:
        bodies = [json.dumps(order) for order in orders]
        send_bodies(Caller(self.sqs, queue_url, lambda _: None), bodies)

    def _consume_carelessly(self) -> None:
        def charge_slowly(order: Order) -> None:
            time.sleep(SECONDS_PER_RECEIPT)
            self.payments.charge(order)

        CarelessConsumer(self.sqs, self.receipts_url, charge_slowly).consume()

    def let_all_die(self) -> None:
        """Send orders and receipts, and wait until all are in their DLQs.

        The queues' visibility timeout is too short, so that the consumers fail.
        """
        self._send_orders(self.receipts_url, RECEIPTS)
        poison_order_count = sum(order["address"] is None for order in ORDERS)
        self.say(
            SOURCE_QUEUE_NAME,
            f"{len(ORDERS)} orders come, {poison_order_count} of them without an address, for "
            "more than two minutes: a consumer's late extensions count once a minute",
        )
        careless_consumers = run_consumers(self._consume_carelessly, CARELESS_WORKER_COUNT)
        with run_consumers(self.hasty_consumer.consume, HASTY_WORKER_COUNT), careless_consumers:
            began_at = time.monotonic()
            for first_order in range(0, len(ORDERS), ORDERS_PER_MINUTE):
                minutes_before = first_order // ORDERS_PER_MINUTE
                due_at = began_at + minutes_before * SECONDS_BETWEEN_ORDERS
                time.sleep(max(0, due_at - time.monotonic()))
                orders = ORDERS[first_order : first_order + ORDERS_PER_MINUTE]
                self._send_orders(self.source_url, orders)
                self.until_holding(first_order + len(orders), DLQ_NAME)
            self.until_holding(len(RECEIPTS), RECEIPTS_DLQ)
        self.say(DLQ_NAME, f"all {len(ORDERS)} are DLQ messages now", "red")

    def let_new_orders_through(self) -> None:
        """Send new orders and many updates, and wait until the source queue is empty."""
        new_messages_text = f"{NEW_ORDER_COUNT} new orders, {UPDATE_COUNT:,} updates"
        self.say(SOURCE_QUEUE_NAME, f"{new_messages_text}: do they get through?")
        with run_consumers(self.hasty_consumer.consume, HASTY_WORKER_COUNT):
            self._send_orders(self.source_url, make_orders(NEW_ORDER_COUNT, "new"))
            self.until_working(SOURCE_QUEUE_NAME)
            self._send_orders(
                self.source_url, [{"update": number} for number in range(UPDATE_COUNT)]
            )
            self.until_holding(0, SOURCE_QUEUE_NAME)
        self.print_news()

    def lower_bounds(self) -> None:
        """Lower the redrive's limits in the environment of the deployed Lambda, and print them."""
        lambda_client = self.account.client("lambda")
        function_name = self.account.outputs["RedriveFunction"]
        configuration = lambda_client.get_function_configuration(FunctionName=function_name)
        variables = configuration["Environment"]["Variables"]
        settings = structs.replace(
            RedriveSettings.from_environment(variables), bounds=LOWERED_REDRIVE_BOUNDS
        )
        lambda_client.update_function_configuration(
            FunctionName=function_name,
            Environment={"Variables": {**variables, **settings.to_environment()}},
        )
        lowered_bound_lines = describe_lowered_bounds()
        self.floors_lowered += lowered_bound_lines
        reason_text = (
            "every tenth order is poison, so other bounds hold here than the plan will name: "
        )
        self.say("bounds", reason_text + "; ".join(lowered_bound_lines), "yellow")

    def send_back(self) -> None:
        """Fire the follow-up's schedule each time the redrive can continue, until its case ends.

        The case ends in VERIFIED or ESCALATED. Meanwhile, idempotent consumers handle the orders.
        Raises ScriptFailed after MAXIMUM_REDRIVE_SECONDS.
        """
        self._report_clock_change("the follow-up is fired when there is something to do")
        # A poison order fails on purpose, and each failure would log a traceback.
        logging.getLogger(idempotent.__name__).setLevel(logging.CRITICAL + 1)
        consumer = Careful(
            self.sqs,
            self.source_url,
            self.once_per_order,
            self.payments.charge,
            CAREFUL_TIMEOUT_SECONDS,
        )
        self._printed_stages: set[str] = set()
        deadline = time.monotonic() + MAXIMUM_REDRIVE_SECONDS
        with run_consumers(consumer.consume, CAREFUL_WORKER_COUNT):
            while not self._has_redrive_ended():
                if time.monotonic() > deadline:
                    raise ScriptFailed(
                        f"the redrive did not end in {MAXIMUM_REDRIVE_SECONDS:.0f} s"
                    )
                self._fire_schedule_and_wait()
        self._read_and_print_progress()

    def _has_redrive_ended(self) -> bool:
        states = self.states(DLQ_NAME)
        return State.VERIFIED in states or State.ESCALATED in states

    def _fire_schedule_and_wait(self) -> None:
        """Fire the follow-up's schedule once, and wait until it can be fired again."""
        progress_before = self.progress
        started_at = time.monotonic()
        self.next_minute()
        while (
            self.progress == progress_before
            and time.monotonic() < started_at + MAXIMUM_FOLLOW_UP_RUN_SECONDS
        ):
            self._read_and_print_progress()
        deadline = (
            time.monotonic()
            + PAUSE_BETWEEN_FOLLOW_UP_RUNS_SECONDS
            + compute_remaining_soak_seconds(self.progress)
        )
        while time.monotonic() < deadline and not self._has_redrive_ended():
            self._read_and_print_progress()

    def _read_and_print_progress(self) -> None:
        """Read the redrive's progress after a pause. Print it if its stage is a new one."""
        time.sleep(POLL_INTERVAL_SECONDS)
        progress = self.redrive_store.read_newest_progress(self.observation_of(DLQ_NAME).queue_arn)
        self.progress = progress
        self.print_news()
        if progress is None:
            return
        stage_name = f"{progress.stage} {progress.current.number}"
        if stage_name not in self._printed_stages:
            self._printed_stages.add(stage_name)
            self.say(stage_name, describe_progress(progress), "yellow")

    def _find_quarantine_url(self) -> str | None:
        """Return the URL of the quarantine queue, or None if it does not exist.

        This lists queues, because GetQueueUrl would fail if the queue does not exist, and the
        failed call would become an incident.
        """
        quarantine_name = f"{SOURCE_QUEUE_NAME}-quarantine"
        queue_urls = self.sqs.list_queues(QueueNamePrefix=quarantine_name).get("QueueUrls", [])
        return next(
            (queue_url for queue_url in queue_urls if queue_url.endswith(f"/{quarantine_name}")),
            None,
        )

    def count_messages(self) -> None:
        """Print how many orders are in each place.

        Raises ScriptFailed if nothing was moved or quarantined, if an order is not where it must
        be, or if an order was charged too often or too rarely.
        """
        quarantine_url = self._find_quarantine_url()
        progress = self.progress
        if progress is None or quarantine_url is None:
            raise ScriptFailed("nothing went back, or nothing was put apart")
        quarantined_ids = list_order_ids(self.sqs, quarantine_url)
        ids_in_dlq = list_order_ids(self.sqs, self.dlq_url)
        count_by_place, faults = locate_orders(
            self.once_per_order.handled_keys,
            quarantined_ids,
            ids_in_dlq,
            self.payments.charge_count_by_order,
        )
        self.messages |= count_by_place | {
            "went_back": progress.moved,
            "came_back": progress.returned,
        }
        if faults:
            raise ScriptFailed("; ".join(faults))
        handled_order_count = count_by_place["processed"]
        quarantined_order_count = count_by_place["quarantined"]
        counts_text = (
            f"{handled_order_count} handled, {quarantined_order_count} in quarantine, 0 lost"
        )
        result_text = (
            f"of the first {len(ORDERS)} orders {counts_text}; each customer is charged once"
        )
        later_order_count = progress.moved - len(ORDERS)
        if later_order_count > 0:
            result_text += f"; the other {later_order_count} that went back were sent later"
        self.say("messages", result_text, "bold green")

    def give_receipts_more_time(self) -> None:
        """Raise the visibility timeout of the receipts' queue, as Mendq did for the orders."""
        self.sqs.set_queue_attributes(
            QueueUrl=self.receipts_url, Attributes={"VisibilityTimeout": "30"}
        )

    def consume_receipts_carelessly(self) -> None:
        """Let consumers that are not idempotent handle all receipts.

        Wait until the receipts' queue and its DLQ are empty.
        """
        with run_consumers(self._consume_carelessly, 2):
            self.until_holding(0, RECEIPTS_DLQ, RECEIPTS_QUEUE)

    def compare_charges(self) -> None:
        """Print how many customers each kind of consumer charged more than once.

        Raises ScriptFailed unless no order and every receipt was charged more than once.
        """
        careful_repeat_count = self.payments.count_charged_again(ORDERS)
        careless_repeat_count = self.payments.count_charged_again(RECEIPTS)
        self.messages["charged_again"] = {
            "careful": careful_repeat_count,
            "careless": careless_repeat_count,
        }
        self.say(
            SOURCE_QUEUE_NAME,
            f"its careful consumer charged {careful_repeat_count} customers a second time",
        )
        self.say(
            RECEIPTS_QUEUE,
            f"its careless consumer charged {careless_repeat_count} customers a second time",
        )
        if (careful_repeat_count, careless_repeat_count) != (0, len(RECEIPTS)):
            raise ScriptFailed(
                f"expected none of {SOURCE_QUEUE_NAME} and {len(RECEIPTS)} of {RECEIPTS_QUEUE}"
            )
