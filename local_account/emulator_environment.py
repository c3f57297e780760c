"""What is taken before MiniStack is imported: the port, folders, and the environment it sees.

MiniStack reads its settings when it is imported and hands its own environment to every Lambda, so
a variable of the caller would hide one that the stack forgot. Only what is named here passes.
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
SCRATCH, LINK = "mendq-account-", "scratch"
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


@contextmanager
def folders(port: int) -> Iterator[Path]:
    """New credentials in the folder of a port that is listened on, and a folder for all else.

    Both can be read by nobody else and are gone at the end. What accounts have left that were
    killed, on this port or on one that nobody listens on, goes first. Raises CannotStart where a
    folder cannot be written.
    """
    own, parent = PORTS / f"{port}", os.environ.get("TMPDIR") or tempfile.gettempdir()
    for each in PORTS.glob("[0-9]*"):
        if each == own or _is_free(each.name):
            _clear(each)
    with contextlib.ExitStack() as made:
        try:
            scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=parent))
            made.callback(_remove, scratch)
            own.mkdir(mode=0o700, parents=True)
            made.callback(_remove, own)
            (own / LINK).symlink_to(scratch)
            _write_credentials(own / CREDENTIALS)
        except OSError as error:
            said = f"{error.filename} cannot be made ({error.strerror})"
            raise CannotStart(f"{said}: see to its folder, or name another by TMPDIR") from error
        yield scratch


def _is_free(port: str) -> bool:
    with contextlib.suppress(CannotStart):
        listen(port_of(port)).close()
        return True
    return False


def _write_credentials(path: Path) -> None:
    """A random access key for each profile."""
    path.touch(mode=0o600)
    with path.open("w") as file:
        for each in PROFILES:
            access_key, secret = secrets.token_hex(8).upper(), secrets.token_urlsafe(30)
            file.write(PROFILE.format(each, access_key, secret, REGION))


def _clear(own: Path) -> None:
    """End the processes of an account that was killed, and remove its folders."""
    left = own / LINK
    if left.is_symlink() and (scratch := left.readlink()).name.startswith(SCRATCH):
        _end_processes_of(scratch)
        _remove(scratch)
    _remove(own)


def _end_processes_of(scratch: Path) -> None:
    """Kill what was started with this folder as its TMPDIR: nobody else's process was.

    Where there is no /proc, they end by themselves or not at all.
    """
    ours = f"TMPDIR={scratch}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        number = int(environment.parent.name)
        # Held on to first: should it end now, its number may be another's, but this is not.
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(number), "rb", 0) as process:
            if ours in environment.read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)


def end_group(process: subprocess.Popen[Any] | None) -> None:
    """End a process that leads a group of its own, with all that it started."""
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove(folder: Path) -> None:
    """Remove a folder, although what has just been killed may still be writing to it."""
    until = time.monotonic() + REMOVED_WITHIN_SECONDS
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)


def emulator_environment(inherited: Mapping[str, str], scratch: Path, port: int) -> dict[str, str]:
    """Every variable that the emulator's process may have; AUTH is on unless AUTH=false.

    MiniStack persists nothing and runs Lambdas as processes where it is told nothing else.
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
        "DOCKER_HOST": f"unix://{scratch}/no-docker",  # or it reaps containers of other MiniStacks
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
