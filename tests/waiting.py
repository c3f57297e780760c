"""Let a test wait without time passing."""

from __future__ import annotations

import threading
import time

import pytest


def replace_sleep(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record how long the calling thread sleeps, in seconds, and return at once.

    Other threads do sleep: a loop in one of them, such as py4j's, would otherwise run without a
    pause and be recorded too.
    """
    seconds = list[float]()
    sleep = time.sleep
    test_thread = threading.current_thread()

    def record(duration_seconds: float) -> None:
        if threading.current_thread() is test_thread:
            seconds.append(duration_seconds)
        else:
            sleep(duration_seconds)

    monkeypatch.setattr("time.sleep", record)
    return seconds
