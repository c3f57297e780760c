"""The mails that SES v2 took, whole: nobody gets them.

GET /_mendq/mails gives them, oldest first. `raw` is one to be saved as `.eml`.
"""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, datetime
from email import message_from_string
from email.policy import default
from typing import Any

from ministack.services import ses_v2

from local_account.account_page import SwitchRefused
from local_account.hooks import around

SEND = ("POST", "/v2/email/outbound-emails")


class Mails:
    """Everything since the start."""

    def __init__(self) -> None:
        self._mails: list[dict[str, Any]] = []

    def install(self) -> None:
        """Hook MiniStack, once per process."""

        @around(ses_v2, "handle_request")
        async def handle(inner: Any, method: str, path: str, *rest: Any) -> Any:
            answer = await inner(method, path, *rest)
            if (method, path.rstrip("/"), answer[0]) == (*SEND, 200):
                self._keep(json.loads(rest[1]))
            return answer

    def _keep(self, call: dict[str, Any]) -> None:
        """One SendEmail that SES took; only what was sent raw is kept whole."""
        raw = b64decode(call["Content"].get("Raw", {}).get("Data", "")).decode("utf-8", "replace")
        self._mails.append(
            {
                "from": call.get("FromEmailAddress", ""),
                "to": call.get("Destination", {}).get("ToAddresses", []),
                "subject": str(message_from_string(raw, policy=default)["Subject"]),
                "sent_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "raw": raw,
            }
        )

    def page(self, asked: Any) -> dict[str, Any]:
        """All of them; none can be put there."""
        if asked is not None:
            raise SwitchRefused("mails are sent by SES, not put here")
        return {"mails": self._mails}
