"""What is left between the last look and the write, because SQS has no conditional write."""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median
from typing import Any

from tests.heal.conftest import every_client
from tests.heal.operators import fail
from tests.prove.proof import Proof, Proving
from tests.prove.world import World, world

MENDINGS = 40


class Watch:
    """Each call of AWS with when it was made and answered."""

    def __init__(self, made: World, stack: ExitStack) -> None:
        self.calls: list[tuple[str, float, float]] = []
        self._begun = 0.0
        for client in every_client(made.account.clients):
            events: Any = client.meta.events
            for event, hook in (("before-call", self._begin), ("after-call", self._end)):
                events.register_last(event, hook)
                stack.callback(events.unregister, event, hook)

    def _begin(self, **_: Any) -> None:
        self._begun = time.perf_counter()

    def _end(self, model: Any, **_: Any) -> None:
        self.calls.append((model.name, self._begun, time.perf_counter()))


def window(proving: Proving, assessments: int = MENDINGS) -> None:
    between_calls, ours_ms, whole_ms = [], [], []
    for n in range(assessments):
        with world() as made, ExitStack() as stack:
            queue = made.account.queue(VisibilityTimeout="30")
            made.account.later(minutes=5)
            watch = Watch(made, stack)
            fail(made.account, queue)
        names = [name for name, _, _ in watch.calls]
        write = names.index("SetQueueAttributes")
        look = max(n for n, name in enumerate(names[:write]) if name == "GetQueueAttributes")
        between_calls.append(write - look - 1)
        ours_ms.append((watch.calls[write][1] - watch.calls[look][2]) * 1000)
        whole_ms.append((watch.calls[write][2] - watch.calls[look][1]) * 1000)
        proving.progress((n + 1) / assessments)
    proving.note(
        {
            "assessments": assessments,
            "most_calls_between_look_and_write": max(between_calls),
            "median_ms_from_the_look's_answer_to_the_write": round(median(ours_ms), 2),
            "most_ms_from_the_look's_answer_to_the_write": round(max(ours_ms), 2),
            "median_ms_of_look_and_write_in_moto_without_a_network": round(median(whole_ms), 2),
        }
    )
    proving.holds("no call stands between the look and the write", whether=not any(between_calls))


WINDOW = (
    Proof(
        "window",
        "Between Mendq's last look and its write there is nothing but the way to SQS.",
        window,
    ),
)
