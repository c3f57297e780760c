"""DuckDB and Polars beside ours, in a process and an installation of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.rounds import ROOT

LOCK = ROOT / "bench" / "peers.txt"
INSTALLED = ROOT / "build" / "bench" / "peers"
Ask = Callable[[str, Sequence[Path]], int]


def installed() -> None:
    """Install what the lock names, each time the lock is another."""
    mark = INSTALLED / "lock.txt"
    if mark.exists() and mark.read_bytes() == LOCK.read_bytes():
        return
    uv = Path(sys.executable).with_name("uv")
    into = ("--python", sys.executable, "--target", str(INSTALLED))
    from_lock = ("--require-hashes", "-r", str(LOCK))
    subprocess.run([str(uv), "pip", "install", "--quiet", *into, *from_lock], check=True)
    mark.write_bytes(LOCK.read_bytes())


@contextmanager
def asked() -> Iterator[Ask]:
    """A function of a peer's name and files: the failed SQS calls that it counts in them."""
    paths = os.pathsep.join((str(ROOT), str(INSTALLED)))
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.peer_answers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
    )
    with process:
        yield partial(_ask, process)


def _ask(process: subprocess.Popen[str], peer: str, files: Sequence[Path]) -> int:
    question = json.dumps({"peer": peer, "files": [str(each) for each in files]})
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("it was started without pipes")
    process.stdin.write(f"{question}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"{peer} gave no answer: its own words stand above")
    return int(answer)
