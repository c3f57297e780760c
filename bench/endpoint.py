"""A plain MiniStack on the loopback interface, in a process of its own: AWS for the bench.

Its time is in every wall time here and in no CPU time; nothing of AWS's own latency is.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_account.emulator_environment import emulator_environment
from local_account.where import HOST, endpoint_url
from tests.functions.aws.conftest import ACCOUNT, REGION

STARTS_WITHIN_SECONDS = 60


@contextmanager
def endpoint() -> Iterator[str]:
    """Its URL; this process and its children reach nothing else meanwhile."""
    with tempfile.TemporaryDirectory(prefix="mendq-bench-") as scratch:
        port = _free_port()
        environment = emulator_environment({**os.environ, "AUTH": "false"}, Path(scratch), port)
        environment["MINISTACK_ACCOUNT_ID"] = ACCOUNT
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(endpoint_url(port), process)
            _point_at(endpoint_url(port))
            yield endpoint_url(port)
        finally:
            process.kill()
            process.wait()


def _point_at(url: str) -> None:
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(
        AWS_ENDPOINT_URL=url,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",  # noqa: S106 - nobody's
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_CONFIG_FILE="/nonexistent",
        AWS_SHARED_CREDENTIALS_FILE="/nonexistent",
    )


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_ministack/health", timeout=1).close()  # noqa: S310
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"MiniStack did not start on {url}: run `python -m ministack` to see why")
