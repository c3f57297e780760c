"""Two hundred orders die; what killed them is fixed; those that can be handled go back and are."""

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

SOURCE, DEAD, BESIDE, BESIDE_DEAD = "orders", "orders-dlq", "receipts", "receipts-dlq"
TABLE = "demo-orders-done"
NEW_ORDERS, UPDATES = 30, 2_400
# Twice as many as hold a batch at first: somebody is idle when the visibility timeout is over.
HASTY_WORKERS, CARELESS_WORKERS, CAREFUL_WORKERS = 40, 4, 4
A_RECEIPT_SECONDS, HELD_SECONDS = 0.15, 2
# The queue's maxReceiveCount is 2: a claim must end before the second receive does.
CLAIM_SECONDS = 1
REDRIVE_SECONDS, TICK_SECONDS, TICK_AGAIN_SECONDS = 240.0, 8.0, 1.0
SHIPPED = Bounds()
# Of ten messages one is poison here: at the shipped bounds it would halt.
LOWERED = Bounds(
    halt_returned=50, halt_share=0.25, rate_share=1.0, least_soak_seconds=8, measuring_seconds=240
)


def orders(how_many: int, kind: str, *, with_poison: bool = False) -> tuple[Order, ...]:
    """Orders to be handled; every tenth has no address where some are to be poison."""
    poison = range(7, how_many, 10) if with_poison else range(0)
    return tuple(
        {"order_id": f"{kind}-{n:03}", "address": None if n in poison else f"{n + 1} Elm Street"}
        for n in range(how_many)
    )


ORDERS, RECEIPTS = orders(200, "order", with_poison=True), orders(20, "receipt")


@dataclass
class Payments:
    """Whoever charges customers, for several threads."""

    charged: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def charge(self, order: Order) -> None:
        """Charge; raise NoAddress before anybody pays."""
        if order["address"] is None:
            raise NoAddress(order["order_id"])
        with self._lock:
            self.charged[order["order_id"]] += 1

    def charged_again(self, of: Iterable[Order]) -> int:
        """For how many of these somebody was charged more than once."""
        return sum(self.charged[each["order_id"]] > 1 for each in of)


@dataclass(frozen=True)
class Noting(Once):
    """Remembers as Once does, and notes every key whose work is done, now or before."""

    noted: set[str] = field(default_factory=set)

    def run(self, key: str, work: Callable[[], object]) -> bool:
        """Do the work unless it was done; raise Busy, or as `work`."""
        is_new = super().run(key, work)
        self.noted.add(key)
        return is_new


def order_ids_in(sqs: Any, queue_url: str) -> set[str]:
    """The orders in all messages that can be received; all of them are visible again.

    On a loaded machine some of the updates may have died as well: those are no orders.
    """
    found: dict[str, str] = {}
    while messages := sqs.receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=MOST_ENTRIES, VisibilityTimeout=20
    ).get("Messages", []):
        found |= {
            each["ReceiptHandle"]: json.loads(each["Body"]).get("order_id") for each in messages
        }
    for handle in found:
        sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=handle, VisibilityTimeout=0)
    return set(found.values())


def whereabouts(
    handled_ids: Iterable[str],
    quarantined_ids: Iterable[str],
    dead_ids: Iterable[str],
    charged: Mapping[str, int],
) -> tuple[dict[str, int], list[str]]:
    """Where every order is in the end, and every way in which that is not as claimed."""
    good = {each["order_id"] for each in ORDERS if each["address"]}
    ids = {each["order_id"] for each in ORDERS}
    handled, quarantined = ids & set(handled_ids), ids & set(quarantined_ids)
    dead = ids & set(dead_ids)
    lost = ids - handled - quarantined - dead
    wrong = {
        "lost": lost,
        "left in the DLQ": dead,
        "good and not handled": good - handled,
        "poison and not in quarantine": ids - good - quarantined,
        "handled and in quarantine": handled & quarantined,
        "not charged exactly once": {e for e in ids if charged.get(e, 0) != (e in good)},
    }
    places = {"processed": handled, "quarantined": quarantined, "left": dead, "lost": lost}
    counts = {"messages": len(ids), **{name: len(found) for name, found in places.items()}}
    faults = [
        f"{len(found)} messages {what}: {', '.join(sorted(found)[:3])}"
        for what, found in wrong.items()
        if found
    ]
    return counts, faults


def lowered() -> list[str]:
    """The bounds that the story has otherwise, as a person reads them."""
    shipped, here = asdict(SHIPPED), asdict(LOWERED)
    differing = [name for name in shipped if here[name] != shipped[name]]
    return [f"redrive.{name}: {here[name]:g} instead of {shipped[name]:g}" for name in differing]


def sentence(progress: RedriveProgress) -> str:
    """What a stage sends, or why one is over; how far it has come in all."""
    sends = progress.because or f"{progress.current.size} messages at most"
    return f"{sends}; {progress.moved} went back in all, {progress.returned} came back"


def seconds_left(progress: RedriveProgress | None) -> float:
    """How long a soak lasts yet."""
    if progress is None or progress.stage is not At.SOAK or progress.current.soak_ends_at is None:
        return 0.0
    return max(0.0, (progress.current.soak_ends_at - datetime.now(UTC)).total_seconds())


class RedriveStage(Stage):
    """The stage with a shop on it: consumers, their memory, customers who pay."""

    progress: RedriveProgress | None = None

    def open_shop(self) -> None:
        """Make the table that remembers, and a queue beside, which nobody gave to Mendq."""
        self.sqs, dynamodb = (self.account.client(n, config=ONCE) for n in ("sqs", "dynamodb"))
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.payments, self.memory = Payments(), Noting(dynamodb, TABLE, CLAIM_SECONDS)
        self.hasty = Hasty(
            replace(self.running[SOURCE].caller, sqs=self.sqs),
            Once(dynamodb, TABLE, CLAIM_SECONDS),
            self.payments.charge,
        )
        self.source, self.dead = (self.seen(name).queue_url for name in (SOURCE, DEAD))
        self.case_store = RedriveStore(dynamodb, self.account.outputs["CaseTable"])
        self.sqs.create_queue(QueueName=BESIDE_DEAD)
        arn = f"{self.seen(DEAD).queue_arn.rpartition(':')[0]}:{BESIDE_DEAD}"
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
        given = {"VisibilityTimeout": "1", "RedrivePolicy": policy}
        self.beside = self.sqs.create_queue(QueueName=BESIDE, Attributes=given)["QueueUrl"]

    def _send(self, url: str, bodies: Iterable[Order]) -> None:
        send(Caller(self.sqs, url, lambda _: None), list(map(json.dumps, bodies)))

    def _consume_carelessly(self) -> None:
        def work(order: Order) -> None:
            time.sleep(A_RECEIPT_SECONDS)
            self.payments.charge(order)

        Careless(self.sqs, self.beside, work).consume()

    def let_all_die(self) -> None:
        """Have every order and receipt die of a visibility timeout that is too short."""
        self._send(self.source, ORDERS)
        self._send(self.beside, RECEIPTS)
        poison = sum(each["address"] is None for each in ORDERS)
        self.say(SOURCE, f"{len(ORDERS)} orders come, {poison} of them without an address")
        careless = consuming(self._consume_carelessly, CARELESS_WORKERS)
        with consuming(self.hasty.consume, HASTY_WORKERS), careless:
            self.until_holding(len(ORDERS), DEAD)
            self.until_holding(len(RECEIPTS), BESIDE_DEAD)
        self.say(DEAD, f"all {len(ORDERS)} are DLQ messages now", "red")

    def let_new_orders_through(self) -> None:
        """Send orders and much else besides, and wait until all of it is handled."""
        new = f"{NEW_ORDERS} new orders, {UPDATES:,} updates"
        self.say(SOURCE, f"{new}: do they get through?")
        with consuming(self.hasty.consume, HASTY_WORKERS):
            self._send(self.source, orders(NEW_ORDERS, "new"))
            self.until_working(SOURCE)
            self._send(self.source, [{"update": n} for n in range(UPDATES)])
            self.until_holding(0, SOURCE)
        self.look()

    def lower_bounds(self) -> None:
        """Set the redrive's bounds in the deployed Lambda's own environment, and say so."""
        client, name = self.account.client("lambda"), self.account.outputs["RedriveFunction"]
        given = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        settings = structs.replace(RedriveSettings.from_environment(given), bounds=LOWERED)
        variables = {**given, **settings.to_environment()}
        client.update_function_configuration(
            FunctionName=name, Environment={"Variables": variables}
        )
        self.floors_lowered += lowered()
        told = "every tenth order is poison, so other bounds hold here than the plan will name: "
        self.say("bounds", told + "; ".join(lowered()), "yellow")

    def send_back(self) -> None:
        """Fire the follow-up whenever the redrive has something to do, until its case has ended.

        Meanwhile consumers are at work that it cannot hurt.
        """
        self._say_of_the_clock("the follow-up is fired when there is something to do")
        # A poison order fails by design, each time with a trace.
        logging.getLogger(idempotent.__name__).setLevel(logging.CRITICAL + 1)
        consumer = Careful(self.sqs, self.source, self.memory, self.payments.charge, HELD_SECONDS)
        self._said: set[str] = set()
        deadline = time.monotonic() + REDRIVE_SECONDS
        with consuming(consumer.consume, CAREFUL_WORKERS):
            while not self._has_ended():
                if time.monotonic() > deadline:
                    raise ScriptFailed(f"the redrive did not end in {REDRIVE_SECONDS:.0f} s")
                self._tick()
        self._look_at_progress()

    def _has_ended(self) -> bool:
        return bool({State.VERIFIED, State.ESCALATED} & {*self.states(DEAD)})

    def _tick(self) -> None:
        """Fire the follow-up; return when there is something to be seen at the next."""
        before, began = self.progress, time.monotonic()
        self.next_minute()
        while self.progress == before and time.monotonic() < began + TICK_SECONDS:
            self._look_at_progress()
        until = time.monotonic() + TICK_AGAIN_SECONDS + seconds_left(self.progress)
        while time.monotonic() < until and not self._has_ended():
            self._look_at_progress()

    def _look_at_progress(self) -> None:
        """Look, and say each stage once."""
        time.sleep(LOOK_EVERY_SECONDS)
        self.progress = progress = self.case_store.newest(self.seen(DEAD).queue_arn)
        self.look()
        what = f"{progress.stage} {progress.current.number}" if progress else ""
        if progress and what not in self._said:
            self._said.add(what)
            self.say(what, sentence(progress), "yellow")

    def _quarantine(self) -> str | None:
        """Its URL, without a call that fails, which would be an incident."""
        name = f"{SOURCE}-quarantine"
        urls = self.sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", [])
        return next((url for url in urls if url.endswith(f"/{name}")), None)

    def count_messages(self) -> None:
        """Count every message; raise ScriptFailed where one is not where it should be."""
        quarantine, progress = self._quarantine(), self.progress
        if progress is None or quarantine is None:
            raise ScriptFailed("nothing went back, or nothing was put apart")
        apart, dead = order_ids_in(self.sqs, quarantine), order_ids_in(self.sqs, self.dead)
        counts, faults = whereabouts(self.memory.noted, apart, dead, self.payments.charged)
        self.messages |= counts | {"went_back": progress.moved, "came_back": progress.returned}
        if faults:
            raise ScriptFailed("; ".join(faults))
        found = f"{counts['processed']} handled, {counts['quarantined']} in quarantine, 0 lost"
        said = f"of the first {len(ORDERS)} orders {found}; each customer is charged once"
        if (later := progress.moved - len(ORDERS)) > 0:
            said += f"; the other {later} that went back were sent later"
        self.say("messages", said, "bold green")

    def give_receipts_more_time(self) -> None:
        """Do by hand what Mendq did for the orders."""
        self.sqs.set_queue_attributes(QueueUrl=self.beside, Attributes={"VisibilityTimeout": "30"})

    def consume_receipts_carelessly(self) -> None:
        """Have those that came back handled by a consumer that remembers nothing."""
        with consuming(self._consume_carelessly, 2):
            self.until_holding(0, BESIDE_DEAD, BESIDE)

    def compare_charges(self) -> None:
        """Show whom either consumer charged for what came back; raise ScriptFailed."""
        careful, careless = map(self.payments.charged_again, (ORDERS, RECEIPTS))
        self.messages["charged_again"] = {"careful": careful, "careless": careless}
        self.say(SOURCE, f"its careful consumer charged {careful} customers a second time")
        self.say(BESIDE, f"its careless consumer charged {careless} customers a second time")
        if (careful, careless) != (0, len(RECEIPTS)):
            raise ScriptFailed(f"expected none of {SOURCE} and {len(RECEIPTS)} of {BESIDE}")
