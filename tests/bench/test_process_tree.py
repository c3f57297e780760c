"""Memory and time of a process and of what it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench.process_tree import Peak, Process, measured, sampled, tree, used_between

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
    assert tree(process.pid) == []
    assert sum(each.cpu_seconds for each in tree(os.getpid())) > 0


BUSY, WORKER = Process(1, 0, 10, 4, 0), Process(2, 1, 7, 1, 0)


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ([BUSY, WORKER], 0),
        ([BUSY._replace(own_seconds=12), WORKER._replace(own_seconds=10)], 5),
        ([BUSY, WORKER, Process(3, 2, 5, 0, 0)], 5),
        ([BUSY._replace(children_seconds=4 + 8 + 3)], 3),
        ([BUSY], 0),
        ([BUSY._replace(own_seconds=12)], 2),
    ],
    ids=["idle", "both busy", "a new one", "ended, waited for", "ended, lost", "lost, and busy"],
)
def test_who_ended_takes_along_what_it_used_before(after: list[Process], seconds: float) -> None:
    assert used_between([BUSY, WORKER], after) == seconds
