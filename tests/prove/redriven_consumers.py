"""What waits in a DLQ, and those who handle what goes back."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mendq.model.limits import Bounds
from tests.prove.memory_queue import MemoryQueue, Message


@dataclass(frozen=True)
class Mix:
    """What waits in a DLQ, and who works at its source.

    `poison` is never handled, `slow` often takes longer than its visibility timeout, `parked` is
    sent to the DLQ by its consumer, which deletes it. `leading_poison` of the poison is before all
    others; a FIFO queue keeps that order. `others` died in another source of the DLQ. `groups` of a
    FIFO queue; 0 for a standard one. `unsteady` is how likely SQS is at its worst at any moment. A
    call takes `call_seconds` of the Lambda's time, a receive of nothing a second more; 0: none
    takes any.
    """

    good: int
    poison: int = 0
    slow: int = 0
    parked: int = 0
    leading_poison: int = 0
    others: int = 0
    groups: int = 0
    bounds: Bounds = field(default_factory=Bounds)
    deletes_per_second: float = 100.0
    needed_seconds: int = 20
    receives: int = 3
    unsteady: float = 0.0
    call_seconds: float = 0.0


@dataclass
class Consumers:
    """They read the source; `processed` counts by body, as often as the work was done.

    `forwarded` is what they send on to other queues: a new message, the attributes with it.
    """

    queue: MemoryQueue
    random: random.Random
    processed: Counter[str] = field(default_factory=Counter)
    busy: list[tuple[float, Message, str, float]] = field(default_factory=list)
    forwarded: list[Message] = field(default_factory=list)

    def work(self, now: float) -> None:
        self._finish(now)
        visibility = int(self.queue.attributes["VisibilityTimeout"])
        while received := self.queue.receive(10, now, visibility):
            self._begin(received, now, visibility)

    def _finish(self, now: float) -> None:
        done = [work for work in self.busy if work[0] <= now]
        self.busy = [work for work in self.busy if work[0] > now]
        for done_at, message, handle, until in done:
            self.processed[message.body] += 1
            self.forwarded.append(message.copy_unread(now))
            if done_at < until:
                self.queue.delete(handle, now if self.queue.is_fifo is False else done_at)

    def _begin(self, received: Sequence[Message], now: float, visibility: int) -> None:
        self.busy += [
            (
                now + visibility * self._share(message.body),
                message,
                message.handle,
                now + visibility,
            )
            for message in received
            if not message.body.startswith(("poison", "parked"))
        ]
        for message in received:
            if message.body.startswith("parked"):
                self._park(message, now)

    def _park(self, message: Message, now: float) -> None:
        assert self.queue.dlq is not None
        self.queue.dlq.put(message.copy_unread(now), now)
        self.queue.delete(message.handle, now)

    def _share(self, body: str) -> float:
        slow = body.startswith("slow")
        return self.random.uniform(0.5, 2.0) if slow else self.random.uniform(0.1, 0.9)
