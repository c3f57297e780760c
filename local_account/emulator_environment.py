"""Prepare the port, the folders and the environment variables before MiniStack is imported.

MiniStack reads its settings when it is imported, and passes its environment to every Lambda. A
variable of the user's shell could therefore hide that the stack forgot to set it. So only the
variables that are named here are passed on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_account.where import ACCOUNT, CREDENTIALS, HOST, PORTS, PROFILES, REGION, CannotStart

HIGHEST_PORT = 65_535
REMOVED_WITHIN_SECONDS = 3.0
PROFILE = "[{}]\naws_access_key_id = AKIA{}\naws_secret_access_key = {}\nregion = {}\n\n"
SCRATCH = "mendq-account-"  # begin of the name of an account's temporary folder
LINK = "scratch"  # link to the temporary folder, in the folder of the port
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LOG_LEVEL", "AUTH")


def port_of(text: str) -> int:
    """Return the port number in `text`. Raises CannotStart if it is not a port number."""
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise CannotStart(f"PORT {text} is not a port: give a number from 0 to {HIGHEST_PORT}")
    return int(text)


def listen(port: int) -> socket.socket:
    """Listen on the loopback interface. Port 0 means any free port.

    Raises CannotStart if the port is taken or cannot be used.
    """
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            text = "is taken: give another one with PORT, or none for a free one"
        else:
            text = f"cannot be used ({error.strerror}): give another one with PORT"
        raise CannotStart(f"port {port} {text}") from error


@contextmanager
def folders(port: int) -> Iterator[Path]:
    """Create the account's folders, yield the temporary one, and remove both at the end.

    The folder of the port, build/account/PORT, gets new credentials. Only the current user can read
    the folders. Before that, the folders and processes of accounts that were killed are removed: on
    this port, and on every port that no account listens on.

    Raises CannotStart if a folder cannot be written.
    """
    port_folder = PORTS / f"{port}"
    parent = os.environ.get("TMPDIR") or tempfile.gettempdir()
    for folder in PORTS.glob("[0-9]*"):
        if folder == port_folder or _is_free(folder.name):
            _clear(folder)
    with contextlib.ExitStack() as cleanup:
        try:
            scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=parent))
            cleanup.callback(_remove, scratch)
            port_folder.mkdir(mode=0o700, parents=True)
            cleanup.callback(_remove, port_folder)
            (port_folder / LINK).symlink_to(scratch)
            _write_credentials(port_folder / CREDENTIALS)
        except OSError as error:
            text = f"{error.filename} cannot be made ({error.strerror})"
            raise CannotStart(f"{text}: see to its folder, or name another by TMPDIR") from error
        yield scratch


def _is_free(port: str) -> bool:
    with contextlib.suppress(CannotStart):
        listen(port_of(port)).close()
        return True
    return False


def _write_credentials(path: Path) -> None:
    """Write a random access key for each profile."""
    path.touch(mode=0o600)
    with path.open("w") as file:
        for profile in PROFILES:
            access_key = secrets.token_hex(8).upper()
            secret = secrets.token_urlsafe(30)
            file.write(PROFILE.format(profile, access_key, secret, REGION))


def _clear(port_folder: Path) -> None:
    """End the processes of an account that was killed, and remove its folders."""
    link = port_folder / LINK
    if link.is_symlink():
        scratch = link.readlink()
        if scratch.name.startswith(SCRATCH):
            _end_processes_of(scratch)
            _remove(scratch)
    _remove(port_folder)


def _end_processes_of(scratch: Path) -> None:
    """Kill all processes that have this folder as TMPDIR. Only the account's processes have it.

    Without /proc nothing is killed.
    """
    ours = f"TMPDIR={scratch}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        number = int(environment.parent.name)
        # Open the process first. If it ends now, another process can get its number, and a signal
        # to the open process cannot reach that one.
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(number), "rb", 0) as process:
            if ours in environment.read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)


def end_group(process: subprocess.Popen[Any] | None) -> None:
    """Kill a process that leads a process group, and all processes of the group."""
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove(folder: Path) -> None:
    """Remove a folder. Try again for a while if a killed process is still writing to it."""
    until = time.monotonic() + REMOVED_WITHIN_SECONDS
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)


def emulator_environment(inherited: Mapping[str, str], scratch: Path, port: int) -> dict[str, str]:
    """Return all environment variables of the emulator's process.

    Permissions are enforced unless `inherited` has AUTH=false. By MiniStack's defaults, nothing is
    stored after the end, and Lambdas run as processes.

    Args:
        inherited: Environment of the user's shell. Only the variables in `PASSED_ON` are used.
        scratch: Folder for temporary files.
        port: The account's port.
    """
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
        # Without this, MiniStack would remove the containers of other MiniStacks.
        "DOCKER_HOST": f"unix://{scratch}/no-docker",
        "STATE_DIR": str(scratch / "state"),
        "S3_DATA_DIR": str(scratch / "s3"),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
    }


def enter(environment: Mapping[str, str]) -> None:
    """Replace the environment of this process. Call this before MiniStack is imported."""
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]
