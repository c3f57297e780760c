"""Memory and time of a process and of what it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.process_tree import Peak, cpu_seconds, measured, sampled

MEGABYTES = 150
HOLD = f"""
import sys
held = bytearray({MEGABYTES} * 1024 * 1024)
held[::1024] = b"x" * len(held[::1024])
print("holding", flush=True)
sys.stdin.read()
"""


@contextmanager
def _child(code: str) -> Iterator[Any]:
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as process:
        yield process


def _wait_for(peak: Peak, at_least: float) -> None:
    until = time.monotonic() + 30
    while peak.bytes < at_least and time.monotonic() < until:
        time.sleep(0.02)


def test_what_a_grandchild_holds_counts() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])"
    with _child(code) as process, sampled(process.pid) as peak:
        assert process.stdout.readline() == "holding\n"
        _wait_for(peak, MEGABYTES * 1e6)
    assert MEGABYTES * 1e6 <= peak.bytes < 10 * MEGABYTES * 1e6


def test_what_others_hold_does_not_count() -> None:
    with _child(HOLD) as holding, _child("input()") as other, sampled(other.pid) as peak:
        assert holding.stdout.readline() == "holding\n"
        _wait_for(peak, 1)
    assert 0 < peak.bytes < MEGABYTES * 1e6


def test_time_of_an_ended_child_counts() -> None:
    busy = "import time; began = time.process_time()\nwhile time.process_time() < began + 0.3: pass"

    def go() -> None:
        subprocess.run([sys.executable, "-c", busy], check=True)

    cost = measured(go)
    assert cost.cpu_ms >= 300
    assert cost.wall_ms >= 300


def test_a_process_that_is_gone_has_used_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert cpu_seconds(process.pid) == 0
    assert cpu_seconds(os.getpid()) > 0
