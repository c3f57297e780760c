"""The mails that SES took, whole: nobody gets them.

GET /_mendq/mails gives them, oldest first; DELETE forgets them. `raw` is one to be saved as `.eml`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from email import message_from_string
from email.policy import default
from typing import Any

from local_account.switch import SwitchRefused


class Mails:
    """Everything since the start, or since they were forgotten."""

    def __init__(self) -> None:
        self._mails: list[dict[str, Any]] = []

    def keep(self, call: Mapping[str, Any]) -> None:
        """One SendEmail that SES took; only what was sent raw is kept whole."""
        content = call.get("Content", {})
        raw = b64decode(content.get("Raw", {}).get("Data", "")).decode("utf-8", "replace")
        subject = content.get("Simple", {}).get("Subject", {}).get("Data", "")
        self._mails.append(
            {
                "from": call.get("FromEmailAddress", ""),
                "to": list(call.get("Destination", {}).get("ToAddresses", [])),
                "subject": str(message_from_string(raw, policy=default)["Subject"] or subject),
                "sent_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "raw": raw,
            }
        )

    def replace(self, asked: object) -> None:
        """None can be put there; raises SwitchRefused."""
        raise SwitchRefused(f"mails are sent by SES, not put here: {asked!r:.40}")

    def end(self) -> None:
        """Forget them."""
        self._mails.clear()

    def as_json(self) -> dict[str, Any]:
        return {"mails": self._mails}
