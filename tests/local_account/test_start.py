"""An interrupted start of the local account ends all it began and prints no error."""

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

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local_account.launcher import make_shell_exports
from local_account.where import (
    ACCOUNT,
    ACCOUNTS_FOLDER,
    HOST,
    REPOSITORY,
    make_client,
    make_operator_variables,
)
from tests.local_account.accounts import TINY_ASSEMBLY
from tests.local_account.queues import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.account
CALL_SECONDS = 20
COMMAND = [sys.executable, "-m", "local_account"]
HERE = ("--assembly", str(TINY_ASSEMBLY))


def test_sigint_during_start_ends_the_local_account_with_exit_code_0(tmp_path: Path) -> None:
    with _run_account(tmp_path, *HERE) as process:
        _read_until(process, "listens on")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.long
@pytest.mark.clock
def test_sigterm_ends_the_local_account_despite_a_long_poll_and_a_running_lambda(
    tmp_path: Path,
) -> None:
    """A long poll and a running Lambda must not delay the end."""
    with _run_account(tmp_path, *HERE) as process:
        ready = _read_until(process, "ready ")
        endpoint_url = ready.split()[1]
        assert ready == f"ready {endpoint_url} account={ACCOUNT} region=us-east-1\n"
        assert process.stdout is not None
        exported = [next(process.stdout) for _ in make_operator_variables(endpoint_url)]
        assert "".join(exported) == make_shell_exports(endpoint_url)
        lambdas, sqs = (_client(name, endpoint_url) for name in ("lambda", "sqs"))
        (function,) = lambdas.list_functions()["Functions"]
        url = sqs.create_queue(QueueName="polled")["QueueUrl"]
        sleep = {
            "FunctionName": function["FunctionName"],
            "Payload": f'{{"sleep_seconds": {CALL_SECONDS}}}'.encode(),
        }
        calls = (
            partial(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=CALL_SECONDS),
            partial(lambdas.invoke, **sleep),
        )
        with ThreadPoolExecutor() as pool:
            waiting = [pool.submit(_ignoring_its_end, call) for call in calls]
            logs = _client("logs", endpoint_url)
            eventually(lambda: _processes_that_know(f"{tmp_path / 'scratch'}")[1:])  # the Lambda's
            assert logs.describe_log_groups()["logGroups"] == []  # it has not returned
            process.send_signal(signal.SIGTERM)
            assert process.wait(CALL_SECONDS - 2) == 0
            assert all(future.result() for future in waiting)


def _client(service_name: str, endpoint_url: str) -> Any:
    return make_client(service_name, endpoint_url, config=Config(retries={"total_max_attempts": 1}))


def _ignoring_its_end(call: Callable[[], object]) -> bool:
    with contextlib.suppress(BotoCoreError, ClientError):
        call()
    return True


@pytest.mark.long
def test_local_account_stops_synthesizing_if_its_parent_process_ends(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"queues": [f"never-seen-{uuid.uuid4()}"]}))
    with _run_account(tmp_path, "--settings", str(settings), "--stop-with-parent") as process:
        _read_until(process, "synthesizing")
        (scratch,) = (tmp_path / "scratch").iterdir()
        (folder,) = (
            link.parent for link in ACCOUNTS_FOLDER.glob("*/scratch") if link.readlink() == scratch
        )
        eventually((folder / "assembly").exists)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE_SECONDS) == 0
        assert not folder.exists()


@pytest.mark.long
def test_next_start_removes_files_and_processes_of_a_killed_local_account(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    port = _free_port()
    here = (*HERE, "--port", f"{port}")
    with _run_account(tmp_path, *here) as first:
        endpoint_url = _read_until(first, "ready ").split()[1]
        (left,) = scratch.iterdir()
        lambdas = _client("lambda", endpoint_url)
        (function,) = lambdas.list_functions()["Functions"]
        name = function["FunctionName"]
        event = b'{"touch": "begun", "sleep_seconds": 60}'
        lambdas.invoke(InvocationType="Event", FunctionName=name, Payload=event)
        eventually((left / "begun").exists)
        first.kill()
        first.wait()
        # Somebody else's, who means nearly the same folder.
        others = {**os.environ, "TMPDIR": f"{left}-not"}
        with (
            subprocess.Popen(["sleep", "60"], env=others) as bystander,
            _run_account(tmp_path, *HERE) as second,
        ):
            _read_until(second, "ready ")
            eventually(lambda: _processes_that_know(f"{left}") == [bystander.pid])
            bystander.kill()
            assert not left.exists()
            assert not (ACCOUNTS_FOLDER / f"{port}").exists()
            second.send_signal(signal.SIGTERM)
            assert second.wait(PATIENCE_SECONDS) == 0


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        return int(taken.getsockname()[1])


def test_sigint_to_make_alone_ends_the_local_account_and_removes_its_files(tmp_path: Path) -> None:
    """As in `kill -INT $(pidof make)`, which make does not hand on."""
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"account:\n\t@{' '.join((*COMMAND, *HERE))}\n")
    scratch = tmp_path / "scratch"
    with _start_process(scratch, "make", "--file", str(makefile), "account") as process:
        _read_until(process, "listens on")
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
    eventually(lambda: list(scratch.iterdir()) == [] and _processes_that_know(f"{scratch}") == [])


@contextmanager
def _run_account(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """An account with a temporary folder of its own, which it has to leave empty."""
    scratch = tmp_path / "scratch"
    with _start_process(scratch, *COMMAND, *arguments) as process:
        try:
            yield process
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert (list(scratch.iterdir()), _processes_that_know(f"{scratch}")) == ([], [])


def _start_process(scratch: Path, *command: str) -> subprocess.Popen[str]:
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read_until(process: subprocess.Popen[str], said: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if said in line:
            return line
    pytest.fail(f"it never said {said!r}")


def _processes_that_know(word: str) -> list[int]:
    """The processes that got it in their environment."""
    known = []
    for process_folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (process_folder / "environ").read_bytes()
            if word.encode() in environment:
                known.append(int(process_folder.name))
    return known
