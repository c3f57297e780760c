"""Kill `mendq redrive` or `mendq quarantine return` at a call of SQS, and run it again.

A message that was sent and not deleted yet is then in both queues, because SQS has no transaction.
The next run sends it again, and that is the only copy.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import EndpointConnectionError
from moto.sqs.models import sqs_backends

from mendq.redrive.mover import MOST_MESSAGES_PER_RECEIVE
from tests.account.account import ACCOUNT, REGION
from tests.account.faults import Killed
from tests.account.receivers import confirm_receiver
from tests.cli.builders import Operator
from tests.cli.redrive.builders import OrdersQueues, make_orders_queues, write_sealed

REDRIVE = ("redrive", "orders", "--all", "--yes", "--json")
QUARANTINE_RETURN = ("quarantine", "return", "orders", "--all", "--yes", "--json")
BODIES = [f"m{number}" for number in range(23)]
EVENTS = ("before-call", "after-call")


class Kill:
    """Kills the process before or after a call of SQS. From then on, no call gets through."""

    def __init__(self, queues: OrdersQueues, event: str, strike_at: int) -> None:
        self.calls = 0
        self.strike_at = strike_at
        self.is_dead = False
        self.killed_call = ""
        clients = queues.operator.account.clients
        for client in (clients.sqs, clients.sqs_for_writing):
            client.meta.events.register("before-call.sqs", self._refuse_call_of_dead_process)
            client.meta.events.register_last(f"{event}.sqs", self._count_call)

    def _refuse_call_of_dead_process(self, **_: Any) -> None:
        if self.is_dead:
            raise EndpointConnectionError(endpoint_url="moto")

    def _count_call(self, event_name: str, **_: Any) -> None:
        if self.killed_call or threading.current_thread() is not threading.main_thread():
            return
        self.calls += 1
        if self.calls == self.strike_at:
            self.is_dead = True
            self.killed_call = event_name.rpartition(".")[2]
            raise Killed


def make_full_dlq(operator: Operator) -> OrdersQueues:
    """Make `orders` and its DLQ with BODIES."""
    queues = make_orders_queues(operator)
    for body in BODIES:
        queues.write(body)
    return queues


def make_full_quarantine(operator: Operator) -> OrdersQueues:
    """Make `orders` and its quarantine with BODIES, all with Mendq's seal."""
    queues = make_orders_queues(operator)
    operator.aws.tag(queues.source, mendq="observe")
    queues.messages = operator.aws.queue("orders-quarantine", tag=None, VisibilityTimeout="600")
    confirm_receiver(operator.aws, queues.messages)
    for body in BODIES:
        write_sealed(queues, body)
    return queues


def run_killed(queues: OrdersQueues, command: Sequence[str], event: str, strike_at: int) -> Kill:
    """Run a command that dies at its call of this number, and let all its holds run out."""
    kill = Kill(queues, event, strike_at)
    with suppress(Killed):
        queues.operator.run(*command)
    kill.is_dead = False
    # After the run, the claim and the visibility timeouts of its messages end.
    later = datetime.now(UTC) + timedelta(minutes=5)
    assert queues.redrive_store.claim(queues.dlq, "the clock", later) is not None
    queues.redrive_store.release(queues.dlq, "the clock")
    _end_visibility_timeouts(queues.messages)
    return kill


def _end_visibility_timeouts(queue_arn: str) -> None:
    queue = sqs_backends[ACCOUNT][REGION].queues[queue_arn.rpartition(":")[2]]
    for message in list(queue.pending_messages):
        message.change_visibility(0)
        queue.pending_messages.remove(message)


def find_faults(queues: OrdersQueues, kill: Kill) -> list[str]:
    """Return what is wrong after the last run: messages that are lost, left behind or copied."""
    count_by_body = Counter(_read_all_bodies(queues, queues.source))
    left = queues.count_visible_messages(queues.messages)
    faults: list[str] = []
    if left:
        faults.append(f"{left} messages are left behind")
    if lost := sorted(set(BODIES) - count_by_body.keys()):
        faults.append(f"lost: {lost}")
    if invented := sorted(count_by_body.keys() - set(BODIES)):
        faults.append(f"never sent: {invented}")
    copies = [body for body, count in count_by_body.items() if count > 1]
    if len(copies) > MOST_MESSAGES_PER_RECEIVE or max(count_by_body.values(), default=0) > 2:
        faults.append(f"copied beyond the batch that was on its way: {copies}")
    if copies and kill.killed_call not in {"SendMessageBatch", "DeleteMessageBatch"}:
        faults.append(f"copied although it died at {kill.killed_call}: {copies}")
    return faults


def _read_all_bodies(queues: OrdersQueues, queue_arn: str) -> Iterable[str]:
    return [message.body for message in queues.take_messages(queue_arn)]
