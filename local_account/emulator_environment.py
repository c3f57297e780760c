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

from local_account.where import (
    ACCOUNT,
    ACCOUNT_BY_PROFILE,
    ACCOUNTS_FOLDER,
    CREDENTIALS_FILE_NAME,
    HOST,
    REGION,
    CannotStart,
)

HIGHEST_PORT = 65_535
REMOVAL_SECONDS = 3.0
PROFILE_TEMPLATE = "[{}]\naws_access_key_id = AKIA{}\naws_secret_access_key = {}\nregion = {}\n\n"
TEMPORARY_FOLDER_PREFIX = "mendq-account-"  # begin of the name of an account's temporary folder
LINK_NAME = "scratch"  # link to the temporary folder, in the folder of the port
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "LOG_LEVEL", "AUTH")


def parse_port(text: str) -> int:
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
            problem = "is taken: give another one with PORT, or none for a free one"
        else:
            problem = f"cannot be used ({error.strerror}): give another one with PORT"
        raise CannotStart(f"port {port} {problem}") from error


@contextmanager
def create_folders(port: int) -> Iterator[Path]:
    """Create the account's folders, yield the temporary one, and remove both at the end.

    The folder of the port, build/account/PORT, gets new credentials. Only the current user can read
    the folders. Before that, the folders and processes of accounts that were killed are removed: on
    this port, and on every port that no account listens on.

    Raises CannotStart if a folder cannot be written.
    """
    port_folder = ACCOUNTS_FOLDER / f"{port}"
    parent_folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    for folder in ACCOUNTS_FOLDER.glob("[0-9]*"):
        if folder == port_folder or _is_free(folder.name):
            _remove_account(folder)
    with contextlib.ExitStack() as cleanup:
        try:
            temporary_folder = Path(
                tempfile.mkdtemp(prefix=TEMPORARY_FOLDER_PREFIX, dir=parent_folder)
            )
            cleanup.callback(_remove_folder, temporary_folder)
            port_folder.mkdir(mode=0o700, parents=True)
            cleanup.callback(_remove_folder, port_folder)
            (port_folder / LINK_NAME).symlink_to(temporary_folder)
            _write_credentials(port_folder / CREDENTIALS_FILE_NAME)
        except OSError as error:
            problem = f"{error.filename} cannot be made ({error.strerror})"
            raise CannotStart(f"{problem}: see to its folder, or name another by TMPDIR") from error
        yield temporary_folder


def _is_free(port: str) -> bool:
    with contextlib.suppress(CannotStart):
        listen(parse_port(port)).close()
        return True
    return False


def _write_credentials(path: Path) -> None:
    """Write a random access key for each profile."""
    path.touch(mode=0o600)
    with path.open("w") as file:
        for profile in ACCOUNT_BY_PROFILE:
            access_key = secrets.token_hex(8).upper()
            secret_key = secrets.token_urlsafe(30)
            file.write(PROFILE_TEMPLATE.format(profile, access_key, secret_key, REGION))


def _remove_account(port_folder: Path) -> None:
    """End the processes of an account that was killed, and remove its folders."""
    temporary_folder_link = port_folder / LINK_NAME
    if temporary_folder_link.is_symlink():
        temporary_folder = temporary_folder_link.readlink()
        if temporary_folder.name.startswith(TEMPORARY_FOLDER_PREFIX):
            _end_processes_of(temporary_folder)
            _remove_folder(temporary_folder)
    _remove_folder(port_folder)


def _end_processes_of(temporary_folder: Path) -> None:
    """Kill all processes that have this folder as TMPDIR. Only the account's processes have it.

    Without /proc nothing is killed.
    """
    own_variable = f"TMPDIR={temporary_folder}".encode()
    for environment_file in Path("/proc").glob("[0-9]*/environ"):
        process_id = int(environment_file.parent.name)
        # Open the process first. If it ends now, another process can get its number, and a signal
        # to the open process cannot reach that one.
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(process_id), "rb", 0) as process:
            if own_variable in environment_file.read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)


def end_process_group(process: subprocess.Popen[Any] | None) -> None:
    """Kill a process that leads a process group, and all processes of the group."""
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove_folder(folder: Path) -> None:
    """Remove a folder. Try again for a while if a killed process is still writing to it."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def emulator_environment(
    inherited_environment: Mapping[str, str], temporary_folder: Path, port: int
) -> dict[str, str]:
    """Return all environment variables of the emulator's process.

    Permissions are enforced unless `inherited_environment` has AUTH=false. By MiniStack's defaults,
    nothing is stored after the end, and Lambdas run as processes.

    Args:
        inherited_environment: Environment of the user's shell. Only the variables in
            `INHERITED_VARIABLES` are used.
        temporary_folder: Folder for temporary files.
        port: The account's port.
    """
    return {
        "AUTH": "true",  # roles and queue policies are enforced, as on AWS
        "LOG_LEVEL": "ERROR",
        **{
            name: inherited_environment[name]
            for name in INHERITED_VARIABLES
            if name in inherited_environment
        },
        "HOME": str(temporary_folder),
        "TMPDIR": str(temporary_folder),
        "BIND_HOST": HOST,
        "MINISTACK_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        # Without this, MiniStack would remove the containers of other MiniStacks.
        "DOCKER_HOST": f"unix://{temporary_folder}/no-docker",
        "STATE_DIR": str(temporary_folder / "state"),
        "S3_DATA_DIR": str(temporary_folder / "s3"),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
    }


def enter_environment(environment: Mapping[str, str]) -> None:
    """Replace the environment of this process. Call this before MiniStack is imported."""
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]
