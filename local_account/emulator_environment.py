"""What is taken before MiniStack is imported: the port, a folder, and the environment it sees.

MiniStack reads its settings when it is imported and hands its own environment to every Lambda, so
a variable of the caller would hide one that the stack forgot. Only what is named here passes.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from local_account.where import ACCOUNT, HOST, REGION, CannotStart

HIGHEST_PORT = 65_535
REMOVED_WITHIN_SECONDS = 3.0
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LOG_LEVEL", "AUTH")


def port_of(text: str) -> int:
    """The port that `text` is; raise CannotStart where it is none."""
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise CannotStart(f"PORT {text} is not a port: give a number from 0 to {HIGHEST_PORT}")
    return int(text)


def listen(port: int) -> socket.socket:
    """Listen on the loopback interface; port 0 takes a free one. Raise CannotStart when taken."""
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        what = "is taken" if taken else f"cannot be used ({error.strerror})"
        remedy = "give another one with PORT" + (", or none for a free one" if taken else "")
        raise CannotStart(f"port {port} {what}: {remedy}") from error


def new_scratch_folder() -> Path:
    """A fresh folder for everything that the account writes; raise CannotStart when none is."""
    parent = os.environ.get("TMPDIR") or tempfile.gettempdir()
    try:
        return Path(tempfile.mkdtemp(prefix="mendq-account-", dir=parent))
    except OSError as error:
        said = f"the folder {parent} cannot be written ({error.strerror})"
        raise CannotStart(f"{said}: name another one with TMPDIR") from error


def remove(scratch: Path) -> None:
    """Remove the folder, although what has just been killed may still be writing to it."""
    until = time.monotonic() + REMOVED_WITHIN_SECONDS
    while scratch.exists() and time.monotonic() < until:
        shutil.rmtree(scratch, ignore_errors=True)


def emulator_environment(inherited: Mapping[str, str], scratch: Path, port: int) -> dict[str, str]:
    """Every variable that the emulator's process may have; AUTH is on unless AUTH=false."""
    return {
        "AUTH": "true",  # roles and queue policies are enforced, as on AWS
        "LOG_LEVEL": "ERROR",
        **{name: inherited[name] for name in PASSED_ON if name in inherited},
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "BIND_HOST": HOST,
        "MINISTACK_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": f"unix://{scratch}/no-docker",  # or it reaps containers of other MiniStacks
        "PERSIST_STATE": "0",
        "S3_PERSIST": "0",
        "STATE_DIR": str(scratch / "state"),
        "S3_DATA_DIR": str(scratch / "s3"),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
    }


def enter(environment: Mapping[str, str]) -> None:
    """Make `environment` the whole environment of this process, before MiniStack is imported."""
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]
