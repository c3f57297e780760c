"""SES v2's SendEmail: the mails that it took, whole, and who may send from which address.

GET /_mendq/mails gives them, oldest first. `raw` is one to be saved as `.eml`.
A mail that is sent raw takes ses:SendRawEmail as well. Only the sender's address is judged, no
domain that it is verified by, no identity of recipients, and no configuration set.
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsimpleemailservicev2.html
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from email.utils import parseaddr
from typing import Any

import ministack.app
from ministack.core.responses import get_account_id, get_region
from ministack.services import ses_v2

from local_account.hooks import around

SEND = ("POST", "/v2/email/outbound-emails")


class Mails:
    """Everything since the start: nobody gets them."""

    def __init__(self) -> None:
        self._mails: list[dict[str, Any]] = []

    def install(self) -> None:
        """Hook MiniStack, once per process."""

        @around(ministack.app, "_handle_ses_v2_request")
        async def handle(inner: Any, method: str, path: str, *rest: Any) -> Any:
            headers, body, query_params, request_id = rest
            if (method, path.rstrip("/")) != SEND:
                return await inner(method, path, *rest)
            call = json.loads(body)
            address = parseaddr(call.get("FromEmailAddress", ""))[1]
            raw = ("ses:SendRawEmail",) if "Raw" in call.get("Content", {}) else ()
            arn = f"arn:aws:ses:{get_region()}:{get_account_id()}:identity/{address}"
            context = {"ses:FromAddress": address}
            judged = {"resource_arn": arn, "service_context": context, "named_resource": arn}
            for action in ("ses:SendEmail", *raw):
                given = ("sesv2", action, headers, query_params, request_id)
                if denied := ministack.app._enforce_data_plane(*given, **judged):
                    return denied
            answer = await ses_v2.handle_request(method, path, headers, body, query_params)
            if answer[0] == 200:
                self._keep(call)
            return answer

    def _keep(self, call: Mapping[str, Any]) -> None:
        """One SendEmail that SES took; only what was sent raw is kept whole."""
        raw = b64decode(call["Content"].get("Raw", {}).get("Data", "")).decode("utf-8", "replace")
        to = list(call.get("Destination", {}).get("ToAddresses", []))
        self._mails.append({"to": to, "raw": raw})

    def page(self, _asked: Any) -> dict[str, Any]:
        """All of them, whatever is put there."""
        return {"mails": self._mails}
