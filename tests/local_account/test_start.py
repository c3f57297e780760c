"""How a start ends that is broken off: with everything that it began, and without a word."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local_account.where import ACCOUNT, CACHE, REPOSITORY
from tests.local_account.conftest import TINY
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account
COMMAND = [sys.executable, "-m", "local_account"]
HERE = ("--assembly", str(TINY))


def test_a_signal_ends_it_while_it_begins(tmp_path: Path) -> None:
    with _running(tmp_path, *HERE) as process:
        _until(process, "listens on")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_calls_in_flight_do_not_hold_it_up(tmp_path: Path) -> None:
    """Neither a long poll nor a Lambda that somebody waits for."""
    with _running(tmp_path, *HERE) as process:
        ready = _until(process, "ready ")
        endpoint_url = ready.split()[1]
        assert ready == f"ready {endpoint_url} account={ACCOUNT} region=us-east-1\n"
        _until(process, f"  export AWS_ENDPOINT_URL={endpoint_url}")
        lambdas, sqs = (_client(name, endpoint_url) for name in ("lambda", "sqs"))
        (function,) = lambdas.list_functions()["Functions"]
        url = sqs.create_queue(QueueName="polled")["QueueUrl"]
        sleep = {"FunctionName": function["FunctionName"], "Payload": b'{"sleep_seconds": 20}'}
        calls = (
            partial(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=20),
            partial(lambdas.invoke, **sleep),
        )
        with ThreadPoolExecutor() as pool:
            waiting = [pool.submit(_ignoring_its_end, call) for call in calls]
            logs = _client("logs", endpoint_url)
            eventually(lambda: _processes_that_know(tmp_path / "scratch")[1:])  # the Lambda's
            assert logs.describe_log_groups()["logGroups"] == []  # it has not returned
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
            assert all(each.result() for each in waiting)


def _client(service_name: str, endpoint_url: str) -> Any:
    once = Config(retries={"total_max_attempts": 1})
    return boto3.client(service_name, endpoint_url=endpoint_url, config=once)


def _ignoring_its_end(call: Callable[[], object]) -> bool:
    with contextlib.suppress(BotoCoreError, ClientError):
        call()
    return True


def test_the_end_of_whoever_started_it_breaks_off_synthesizing(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"queues": [f"never-seen-{uuid.uuid4()}"]}))
    before = set(CACHE.glob(".synth-*"))
    with _running(tmp_path, "--settings", str(settings), "--stop-with-parent") as process:
        _until(process, "synthesizing")
        eventually(lambda: set(CACHE.glob(".synth-*")) - before)
        begun = set(CACHE.glob(".synth-*")) - before
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
    # What others synthesize beside it ends as well, under a name of its own.
    eventually(lambda: not begun & set(CACHE.glob(".synth-*")), seconds=180)


def test_a_signal_to_make_alone_ends_it(tmp_path: Path) -> None:
    """As in `kill -INT $(pidof make)`, which make does not hand on."""
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"account:\n\t@{' '.join((*COMMAND, *HERE))}\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        ["make", "--file", str(makefile), "account"],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        _until(process, "listens on")
        process.send_signal(signal.SIGINT)
        process.wait(10)
    eventually(lambda: list(scratch.iterdir()) == [] and _processes_that_know(scratch) == [])


@contextmanager
def _running(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """An account with a temporary folder of its own, which it has to leave empty."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert (list(scratch.iterdir()), _processes_that_know(scratch)) == ([], [])


def _until(process: subprocess.Popen[str], said: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if said in line:
            return line
    pytest.fail(f"it never said {said!r}")


def _processes_that_know(folder: Path) -> list[int]:
    """The processes that got the folder in their environment: those of the account."""
    known = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (each / "environ").read_bytes():
                known.append(int(each.name))
    return known
