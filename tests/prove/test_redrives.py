"""Redrive proofs on a sample of their faults, and the queue in memory that they use."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.account.account import ACCOUNT, REGION
from tests.prove.memory_queue import MemoryQueue
from tests.prove.memory_queue import Message as Stored
from tests.prove.proof import Proving
from tests.prove.redrive_faults import struck_everywhere


def test_redrive_loses_no_message_if_faults_strike_a_sample_of_its_calls() -> None:
    """At some of the calls of each scene; `make prove` strikes them all."""
    proving = Proving()
    struck_everywhere(proving, 0.04)
    assert proving.failures == []


def _queue(name: str = "orders", **over: Any) -> MemoryQueue:
    always = Random(1)  # noqa: S311 - the same order every time
    queue = MemoryQueue(f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}", always, **over)
    for n in range(4):
        queue.put(Stored(f"m{n}", 0, group=f"g{n % 2}"), 0)
    return queue


def test_memory_queue_hides_received_messages_and_moves_them_to_the_dlq_as_sqs_does() -> None:
    dead = _queue("orders-dlq")
    queue = _queue(most_receives=2, dlq=dead)
    assert [len(queue.receive(10, second, 30)) for second in (0, 29, 30, 60)] == [4, 0, 4, 0]
    died = {message.body for message in dead.messages.values() if message.source_arn == queue.arn}
    assert died == {"m0", "m1", "m2", "m3"}


def test_memory_queue_hides_a_message_group_while_its_first_message_is_in_flight() -> None:
    fifo = _queue("orders.fifo")
    (first,) = fifo.receive(1, 0, 30)
    assert first.group == "g0"
    assert {message.group for message in fifo.receive(10, 1, 30)} == {"g1"}, (
        "behind it none is shown"
    )


def test_memory_queue_deletes_a_fifo_message_only_before_its_visibility_timeout_ends() -> None:
    fifo = _queue("orders.fifo")
    (first,) = fifo.receive(1, 0, 30)
    assert [fifo.delete(first.handle, second) for second in (31, 29)] == [False, True]
