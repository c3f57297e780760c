"""The loopback interface stands in for TLS.

Policies demand `aws:SecureTransport`; nothing leaves this machine, so the account sees every call
as secure, as a proxy that ends TLS would tell it. That TLS is really used is not emulated.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from local_account.cloudtrail.middleware import Application, Receive, Send

_ENDED_TLS = (b"x-forwarded-proto", b"https")


class SecureTransport:
    """An ASGI application around another that marks what comes in as having come over TLS."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _ENDED_TLS]}
        await self._inner(scope, receive, send)
