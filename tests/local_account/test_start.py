"""How a start ends that cannot succeed, and how one ends that is broken off."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
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

from local_account.where import CACHE, REPOSITORY
from tests.local_account.assemblies import write_assembly
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "local_account", *arguments]


def _refused(*arguments: str, **environment: str) -> str:
    """The only line of a start that is refused."""
    done = subprocess.run(
        _command(*arguments),
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert _refused("--port", port).startswith(f"make account: port {port} is taken: ")


def test_an_unwritable_folder(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.touch()
    assert f"the folder {folder} cannot be written" in _refused(TMPDIR=str(folder))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--settings", "missing.json"), "cannot be read (No such file or directory)"),
        (("--port", "many"), "PORT many is not a port: give a number"),
        (("--assembly", "nowhere"), "holds no cloud assembly with one stack"),
        (("--nonsense",), "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str) -> None:
    assert said in _refused(*arguments)


@pytest.mark.parametrize(
    ("number", "after"), [(signal.SIGINT, "listens on"), (signal.SIGTERM, "ready")]
)
def test_a_signal_ends_it_at_any_time(tmp_path: Path, number: int, after: str) -> None:
    assembly = write_assembly(tmp_path / "cdk.out")
    with _running(tmp_path, "--assembly", str(assembly)) as process:
        _until(process, after)
        _ended_by(process, number)


def test_calls_in_flight_do_not_hold_it_up(tmp_path: Path) -> None:
    """Neither a long poll nor a Lambda that somebody waits for."""
    assembly = write_assembly(tmp_path / "cdk.out")
    with _running(tmp_path, "--assembly", str(assembly)) as process:
        endpoint_url = _until(process, "ready").split()[1]
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


def test_a_signal_breaks_off_synthesizing(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"queues": [f"never-seen-{uuid.uuid4()}"]}))
    before = set(CACHE.glob(".synth-*"))
    with _running(tmp_path, "--settings", str(settings)) as process:
        _until(process, "synthesizing")
        eventually(lambda: set(CACHE.glob(".synth-*")) - before)
        begun = set(CACHE.glob(".synth-*")) - before
        _ended_by(process, signal.SIGTERM)
    # What others synthesize beside it ends as well, under a name of its own.
    eventually(lambda: not begun & set(CACHE.glob(".synth-*")), seconds=180)


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    assembly = write_assembly(tmp_path / "cdk.out")
    options = ("--assembly", str(assembly), "--stop-with-parent")
    with _running(tmp_path, *options) as process:
        _until(process, "ready")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_make_alone_ends_it(tmp_path: Path, number: int) -> None:
    """As in `kill -INT $(pidof make)`: make hands on neither SIGINT nor, of course, SIGKILL."""
    assembly = write_assembly(tmp_path / "cdk.out")
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"account:\n\t@{' '.join(_command('--assembly', str(assembly)))}\n")
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
        _until(process, "ready")
        process.send_signal(number)
        process.wait(10)
    eventually(lambda: list(scratch.iterdir()) == [] and _processes_that_know(scratch) == [])


@contextmanager
def _running(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """An account with a temporary folder of its own, which it has to leave empty."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        _command(*arguments),
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert list(scratch.iterdir()) == []
    assert _processes_that_know(scratch) == []


def _until(process: subprocess.Popen[str], said: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if said in line:
            return line
    pytest.fail(f"it never said {said!r}")


def _ended_by(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    assert process.wait(30) == 0


def _processes_that_know(folder: Path) -> list[int]:
    """The processes that got the folder in their environment: those of the account."""
    known = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            environment = (each / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in environment:
            known.append(int(each.name))
    return known
