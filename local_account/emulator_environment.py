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
MAXIMUM_REMOVAL_SECONDS = 3.0
PROFILE_TEMPLATE = "[{}]\naws_access_key_id = AKIA{}\naws_secret_access_key = {}\nregion = {}\n\n"
# The name of an account's temporary folder begins with this.
TEMPORARY_FOLDER_PREFIX = "mendq-account-"
TEMPORARY_FOLDER_LINK_NAME = "scratch"  # link to the temporary folder, in the folder of the port
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "LOG_LEVEL", "AUTH")


def parse_port(port_text: str) -> int:
    """Return the port number in `port_text`. Raises CannotStart if it is not a port number."""
    if not port_text.isdecimal() or int(port_text) > HIGHEST_PORT:
        raise CannotStart(f"PORT {port_text} is not a port: give a number from 0 to {HIGHEST_PORT}")
    return int(port_text)


def open_listening_socket(port: int) -> socket.socket:
    """Return a socket that listens on the loopback interface. Port 0 means any free port.

    Raises CannotStart if the port is taken or cannot be used.
    """
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            port_fault = "is taken: give another one with PORT, or none for a free one"
        else:
            port_fault = f"cannot be used ({error.strerror}): give another one with PORT"
        raise CannotStart(f"port {port} {port_fault}") from error


@contextmanager
def create_folders(port: int) -> Iterator[Path]:
    """Create the account's two folders, and yield the temporary one. Remove both after the block.

    The other folder, build/account/PORT, gets a file with new credentials. Only the current user
    can read the folders. First, remove the folders and processes that earlier, killed accounts have
    left on this port and on every port on which nothing listens.

    Raises CannotStart if a folder cannot be written.
    """
    port_folder = ACCOUNTS_FOLDER / f"{port}"
    parent_folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    for account_folder in ACCOUNTS_FOLDER.glob("[0-9]*"):
        if account_folder == port_folder or _is_port_free(account_folder.name):
            _remove_account(account_folder)
    with contextlib.ExitStack() as cleanup_stack:
        try:
            temporary_folder = Path(
                tempfile.mkdtemp(prefix=TEMPORARY_FOLDER_PREFIX, dir=parent_folder)
            )
            cleanup_stack.callback(_remove_folder, temporary_folder)
            port_folder.mkdir(mode=0o700, parents=True)
            cleanup_stack.callback(_remove_folder, port_folder)
            (port_folder / TEMPORARY_FOLDER_LINK_NAME).symlink_to(temporary_folder)
            _write_credentials(port_folder / CREDENTIALS_FILE_NAME)
        except OSError as error:
            folder_fault = f"{error.filename} cannot be made ({error.strerror})"
            raise CannotStart(
                f"{folder_fault}: see to its folder, or name another by TMPDIR"
            ) from error
        yield temporary_folder


def _is_port_free(port: str) -> bool:
    with contextlib.suppress(CannotStart):
        open_listening_socket(parse_port(port)).close()
        return True
    return False


def _write_credentials(path: Path) -> None:
    """Write a credentials file with a new random access key for each profile."""
    path.touch(mode=0o600)
    with path.open("w") as credentials_file:
        for profile in ACCOUNT_BY_PROFILE:
            access_key = secrets.token_hex(8).upper()
            secret_key = secrets.token_urlsafe(30)
            credentials_file.write(PROFILE_TEMPLATE.format(profile, access_key, secret_key, REGION))


def _remove_account(port_folder: Path) -> None:
    """Kill the processes that a killed account has left, and remove its folders."""
    temporary_folder_link = port_folder / TEMPORARY_FOLDER_LINK_NAME
    if temporary_folder_link.is_symlink():
        temporary_folder = temporary_folder_link.readlink()
        if temporary_folder.name.startswith(TEMPORARY_FOLDER_PREFIX):
            _kill_processes_using(temporary_folder)
            _remove_folder(temporary_folder)
    _remove_folder(port_folder)


def _kill_processes_using(temporary_folder: Path) -> None:
    """Kill all processes that have this folder as TMPDIR: only the account's processes have it.

    Without /proc, nothing is killed.
    """
    tmpdir_variable = f"TMPDIR={temporary_folder}".encode()
    for environment_file in Path("/proc").glob("[0-9]*/environ"):
        process_id = int(environment_file.parent.name)
        # Open the process first. If it ends now, another process can get its number, and a signal
        # to the open process cannot reach that one.
        with (
            contextlib.suppress(OSError),
            os.fdopen(os.pidfd_open(process_id), "rb", 0) as process_file,
        ):
            if tmpdir_variable in environment_file.read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process_file.fileno(), signal.SIGKILL)


def end_process_group(process: subprocess.Popen[Any] | None) -> None:
    """Kill the process group that `process` leads, and wait for the process.

    If the process has ended, or is None, do nothing.
    """
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove_folder(folder: Path) -> None:
    """Remove a folder. Retry for at most MAXIMUM_REMOVAL_SECONDS, then leave what is still there.

    A killed process can still write to the folder.
    """
    deadline = time.monotonic() + MAXIMUM_REMOVAL_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def make_emulator_environment(
    inherited_environment: Mapping[str, str], temporary_folder: Path, port: int
) -> dict[str, str]:
    """Return all environment variables of the emulator's process.

    Permissions are enforced unless `inherited_environment` has AUTH=false. MiniStack's defaults are
    kept for the rest: no data is stored after the end, and Lambdas run as processes.

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
