"""Handling of the signals that end a process, so that a command can finish what it has begun."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event

# Sent if the terminal is closed or a supervisor ends the process. Handled like Ctrl-C.
_TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_STANDARD_ERROR_DESCRIPTOR = 2


@contextmanager
def treat_signals_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM and SIGHUP inside the block. Main thread only."""
    with _handle_signals(signal.default_int_handler, *_TERMINATION_SIGNALS):
        yield


@contextmanager
def stop_on_signal(announcement: str) -> Iterator[Event]:
    """Set the yielded event at the first SIGTERM, SIGHUP or Ctrl-C, and print `announcement`.

    A second signal raises KeyboardInterrupt, for people who cannot wait for an orderly end.
    """
    stop_event = Event()

    def request_stop(*_: object) -> None:
        if stop_event.is_set():
            raise KeyboardInterrupt
        stop_event.set()
        # A signal handler must not write to Python's own streams: a write may be under way.
        with suppress(OSError):
            os.write(_STANDARD_ERROR_DESCRIPTOR, f"\n{announcement}\n".encode())

    with _handle_signals(request_stop, *_TERMINATION_SIGNALS, signal.SIGINT):
        yield stop_event


@contextmanager
def _handle_signals(handler: Callable[..., None], *signals: signal.Signals) -> Iterator[None]:
    """Use `handler` for these signals inside the block, and the earlier handlers after it."""
    earlier_handlers = {
        signal_number: signal.signal(signal_number, handler) for signal_number in signals
    }
    try:
        yield
    finally:
        for signal_number, earlier_handler in earlier_handlers.items():
            signal.signal(signal_number, earlier_handler)
