"""Signals that end a process end what it has begun as well."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event

# A closed terminal and a supervisor's word, as Ctrl-C.
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_STDERR = 2


@contextmanager
def treat_signals_as_interrupts() -> Iterator[None]:
    """They raise KeyboardInterrupt for as long as the block lasts; in the main thread only."""
    with _handled_by(signal.default_int_handler, *_ENDING):
        yield


@contextmanager
def stop_on_signal(announced: str) -> Iterator[Event]:
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

    with _handled_by(ask, *_ENDING, signal.SIGINT):
        yield stop


@contextmanager
def _handled_by(handler: Callable[..., None], *signals: signal.Signals) -> Iterator[None]:
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, was in before.items():
            signal.signal(each, was)
