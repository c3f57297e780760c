"""SES v2's SendEmail: store the accepted mails, and check who may send from which address.

GET /_mendq/mails returns the mails, oldest first. `raw` can be saved as an `.eml` file. Nothing is
delivered. A raw mail needs the permission ses:SendRawEmail too. Permissions are checked only on the
identity of the sender's address: not on its domain, on the recipients' identities or on a
configuration set.
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

from local_account.hooks import replace_functions

SEND_EMAIL_METHOD_AND_PATH = ("POST", "/v2/email/outbound-emails")


class AcceptedMails:
    """All mails that SES v2 has accepted since the start. No mail is delivered."""

    def __init__(self) -> None:
        self._mails: list[dict[str, Any]] = []

    def install(self) -> None:
        """Make MiniStack check the caller's permissions for a mail, and store accepted mails.

        Call this once per process.
        """

        @replace_functions(ministack.app, "_handle_ses_v2_request")
        async def handle_ses_call(
            original_function: Any, method: str, path: str, *other_arguments: Any
        ) -> Any:
            headers, body, query_params, request_id = other_arguments
            if (method, path.rstrip("/")) != SEND_EMAIL_METHOD_AND_PATH:
                return await original_function(method, path, *other_arguments)
            request = json.loads(body)
            sender_address = parseaddr(request.get("FromEmailAddress", ""))[1]
            required_actions = ["ses:SendEmail"]
            if "Raw" in request.get("Content", {}):
                required_actions.append("ses:SendRawEmail")
            identity_arn = (
                f"arn:aws:ses:{get_region()}:{get_account_id()}:identity/{sender_address}"
            )
            for required_action in required_actions:
                denial_response = ministack.app._enforce_data_plane(
                    "sesv2",
                    required_action,
                    headers,
                    query_params,
                    request_id,
                    resource_arn=identity_arn,
                    service_context={"ses:FromAddress": sender_address},
                    named_resource=identity_arn,
                )
                if denial_response:
                    return denial_response
            response = await ses_v2.handle_request(method, path, headers, body, query_params)
            if response[0] == 200:
                self._store_mail(request)
            return response

    def _store_mail(self, request: Mapping[str, Any]) -> None:
        """Store an accepted mail as {"to": recipients, "raw": the whole mail}.

        `raw` is empty if the mail was not sent raw.
        """
        raw_text = b64decode(request["Content"].get("Raw", {}).get("Data", "")).decode(
            "utf-8", "replace"
        )
        recipients = list(request.get("Destination", {}).get("ToAddresses", []))
        self._mails.append({"to": recipients, "raw": raw_text})

    def page(self, _body: Any) -> dict[str, Any]:
        """Return {"mails": [..]}: all accepted mails, oldest first. Ignore the request's body."""
        return {"mails": self._mails}
