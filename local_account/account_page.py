"""What the account says about itself: GET /_mendq/account."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from local_account.cloudtrail.middleware import Application, Receive, Send

PATH = "/_mendq/account"


class AccountPage:
    """An ASGI application around another that answers one path itself."""

    def __init__(self, inner: Application, describe: Callable[[], Mapping[str, Any]]) -> None:
        self._inner = inner
        self._describe = describe

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._inner(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = json.dumps(self._describe()).encode()
        await send({"type": "http.response.body", "body": body})
