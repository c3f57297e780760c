"""Test that a killed `mendq redrive` loses no message.

The process may die at any call of SQS. A message that was sent and not deleted yet is then in both
queues, because SQS has no transaction. The next run sends it again, and that is the only copy.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from moto.sqs.models import sqs_backends

from tests.account.account import ACCOUNT, REGION
from tests.account.faults import Killed
from tests.cli.redrive.builders import OrdersQueues
from tests.waiting import replace_sleep

MESSAGES = 23
# The calls of SQS at which the process dies.
KILLS = [(event, call) for event in ("before-call", "after-call") for call in (3, 6, 9, 11, 13)]


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


def end_claim(queues: OrdersQueues) -> None:
    """Let the claim of the killed process run out."""
    later = datetime.now(UTC) + timedelta(minutes=5)
    assert queues.redrive_store.claim(queues.dlq, "the clock", later) is not None
    queues.redrive_store.release(queues.dlq, "the clock")


def end_visibility_timeouts(queue_arn: str) -> None:
    """Make all messages of a queue visible, as SQS does after the process is dead."""
    queue = sqs_backends[ACCOUNT][REGION].queues[queue_arn.rpartition(":")[2]]
    for message in list(queue.pending_messages):
        message.change_visibility(0)
        queue.pending_messages.remove(message)


def run_until_killed(queues: OrdersQueues, kill: Kill) -> None:
    with suppress(Killed):
        queues.operator.run("redrive", "orders", "--all", "--yes", "--json")
    kill.is_dead = False


@pytest.mark.parametrize(("event", "strike_at"), KILLS)
def test_redrive_killed_at_any_call_loses_no_message_and_copies_only_what_it_was_sending(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, event: str, strike_at: int
) -> None:
    replace_sleep(monkeypatch)
    for number in range(MESSAGES):
        queues.write(f"m{number}")
    kill = Kill(queues, event, strike_at)
    run_until_killed(queues, kill)
    assert kill.killed_call
    end_claim(queues)
    end_visibility_timeouts(queues.messages)
    left = queues.count_visible_messages(queues.messages)
    if left:
        answer = queues.redrive("--all", "--yes")
        assert answer["moved"] == left
    assert queues.count_visible_messages(queues.messages) == 0
    count_by_body = Counter(message.body for message in queues.take_messages(queues.source))
    assert count_by_body.keys() == {f"m{number}" for number in range(MESSAGES)}
    copies = [body for body, count in count_by_body.items() if count > 1]
    assert len(copies) <= 10, "at most the batch that was on its way"
    assert not copies or kill.killed_call in {"SendMessageBatch", "DeleteMessageBatch"}
    assert max(count_by_body.values()) <= 2
