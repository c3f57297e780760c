"""Measure how long `mendq dlq` takes to group 500 messages with bodies of about 1 MiB."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from rich.console import Console

from bench.rounds import Cost, Measure, Variant, measure_variants
from mendq.redrive.message_groups import SampledMessage, group_sample
from mendq.redrive.messages import Message

# The most messages that `mendq dlq` takes.
MESSAGES = 500
# A body of about 1 MiB. No two bodies have a name in common.
NAMES_PER_BODY = 62_000
ROUNDS = 3
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def measure_large_bodies(
    console: Console, messages: int = MESSAGES, rounds: int = ROUNDS
) -> Measure:
    """Return the time to group the messages, compared with parsing their bodies once."""
    variants = [
        Variant("json.loads of each body", partial(_measure, messages, _parse_bodies)),
        Variant("mendq dlq", partial(_measure, messages, _group_messages)),
    ]
    title = f"mendq dlq: {messages:,} bodies of 1 MiB with new names each"
    return measure_variants(console, "bodies", title, variants, rounds, dropped_rounds=0)


def _measure(messages: int, work: Callable[[Iterator[Message], _Stopwatch], None]) -> Cost:
    """Return the cost of the work, without the time in which the messages are made."""
    stopwatch = _Stopwatch()
    work(_make_messages(messages), stopwatch)
    return Cost(stopwatch.wall_seconds * 1_000, stopwatch.cpu_seconds * 1_000)


class _Stopwatch:
    """Adds up the wall time and the CPU time of `with` blocks."""

    def __init__(self) -> None:
        self.wall_seconds = 0.0
        self.cpu_seconds = 0.0

    def __enter__(self) -> None:
        self._wall_start = time.perf_counter()
        self._cpu_start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall_seconds += time.perf_counter() - self._wall_start
        self.cpu_seconds += time.process_time() - self._cpu_start


def _make_messages(messages: int) -> Iterator[Message]:
    for number in range(messages):
        body = json.dumps({f"k{number}x{index}": 1 for index in range(NAMES_PER_BODY)})
        yield Message(f"m-{number}", body, NOW)


def _parse_bodies(messages: Iterator[Message], stopwatch: _Stopwatch) -> None:
    for message in messages:
        with stopwatch:
            json.loads(message.body)


def _group_messages(messages: Iterator[Message], stopwatch: _Stopwatch) -> None:
    sample: list[SampledMessage] = []
    for message in messages:
        with stopwatch:
            sample.append(SampledMessage.create(message, should_group_by_text=True))
    with stopwatch:
        group_sample(sample, NOW)
