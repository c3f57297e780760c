"""Serving the emulator on a socket that is already listening, until told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

GRACE_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75

Application = Callable[[Any, Any, Any], Awaitable[None]]


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
