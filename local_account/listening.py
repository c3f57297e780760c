"""The socket of the account, taken before anything else starts."""

from __future__ import annotations

import errno
import socket

from local_account.cannot_start import CannotStart
from local_account.where import HOST

BACKLOG = 128
HIGHEST_PORT = 65_535


def port_of(text: str) -> int:
    """The port that `text` is; raise CannotStart where it is none."""
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise CannotStart(f"PORT {text} is not a port: give a number from 0 to {HIGHEST_PORT}")
    return int(text)


def listen(port: int) -> socket.socket:
    """Listen on the loopback interface; port 0 takes a free one. Raise CannotStart when taken."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((HOST, port))
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise CannotStart(_refusal(port, error)) from error
    return taken


def _refusal(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken: give another one with PORT, or none for a free one"
    return f"port {port} cannot be used ({error.strerror}): give another one with PORT"
