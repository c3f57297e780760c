"""Signals that end a process end what it has begun as well."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import NoReturn

# A closed terminal and a supervisor's word, as Ctrl-C.
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_STDERR = 2


@contextmanager
def as_interrupts() -> Iterator[None]:
    """They raise KeyboardInterrupt for as long as the block lasts; in the main thread only."""
    before = {each: signal.signal(each, _interrupt) for each in _ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def stoppable(announced: str) -> Iterator[Event]:
    """The first of them, or Ctrl-C, sets the event and says at once what is `told`.

    Whoever cannot wait for that sends a second, which raises KeyboardInterrupt.
    """
    stop = Event()

    def ask(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # Python's own streams must not be written from here: a write may be under way.
        with suppress(OSError):
            os.write(_STDERR, f"\n{announced}\n".encode())

    before = {each: signal.signal(each, ask) for each in (*_ENDING, signal.SIGINT)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
