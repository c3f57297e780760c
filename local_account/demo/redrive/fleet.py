"""Consumers that go on for as long as a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SECONDS = 15


@contextmanager
def consuming(consume: Callable[[], object], workers: int) -> Iterator[None]:
    """So many threads that do nothing else; each ends its round when the block is left."""
    enough = threading.Event()

    def work() -> None:
        while not enough.is_set():
            consume()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        enough.set()
        for each in threads:
            each.join(timeout=STOP_SECONDS)
