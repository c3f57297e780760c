"""The socket of the account, taken before anything else starts, and serving on it."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from local_account.cannot_start import CannotStart
from local_account.where import HOST

BACKLOG = 128
HIGHEST_PORT = 65_535
GRACE_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75

Application = Callable[[Any, Any, Any], Awaitable[None]]


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


async def serve_until(
    stopped: asyncio.Event, listening: socket.socket, application: Application
) -> None:
    """Serve `application` until `stopped` is set, then let go within GRACE_SECONDS."""
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.errorlog = None
    config.accesslog = None
    config.graceful_timeout = GRACE_SECONDS
    config.shutdown_timeout = GRACE_SECONDS * 4
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    await serve(application, config, shutdown_trigger=stopped.wait)
