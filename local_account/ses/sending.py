"""SES v2's SendEmail: who may send from which address, which MiniStack judges by no resource.

A mail that is sent raw takes ses:SendRawEmail as well. Only the sender's identity is judged, not
those of recipients, nor configuration sets.
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsimpleemailservicev2.html
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from email.utils import parseaddr
from typing import Any

import ministack.app
from ministack.core.responses import get_account_id, get_region
from ministack.services import ses_v2

from local_account.ses.mails import Mails

SEND = ("POST", "/v2/email/outbound-emails")
FROM = "ses:FromAddress"
Answer = tuple[int, Mapping[str, str], bytes]
Handle = Callable[..., Awaitable[Any]]


def install(mails: Mails) -> None:
    """Hook MiniStack, once per process."""
    ministack.app._handle_ses_v2_request = _sending(ministack.app._handle_ses_v2_request, mails)


def _sending(handle: Handle, mails: Mails) -> Handle:
    async def handling(method: str, path: str, *rest: Any) -> Any:
        headers, body, query_params, request_id = rest
        if (method, path.rstrip("/")) != SEND:
            return await handle(method, path, *rest)
        call = _read(body)
        for action in _actions(call):
            if denied := _denied(action, call, headers, query_params, request_id):
                return denied
        answer: Answer = await ses_v2.handle_request(method, path, headers, body, query_params)
        if answer[0] == 200:
            mails.keep(call)
        return answer

    return handling


def _read(body: bytes) -> dict[str, Any]:
    try:
        call = json.loads(body)
    except ValueError:
        return {}
    return call if isinstance(call, dict) else {}


def _actions(call: Mapping[str, Any]) -> Iterator[str]:
    yield "ses:SendEmail"
    if "Raw" in call.get("Content", {}):
        yield "ses:SendRawEmail"


def _denied(
    action: str,
    call: Mapping[str, Any],
    headers: Mapping[str, str],
    query_params: Mapping[str, Any],
    request_id: str,
) -> Answer | None:
    address = parseaddr(call.get("FromEmailAddress", ""))[1]
    arn = identity_arn(address)
    denied: Answer | None = ministack.app._enforce_data_plane(
        "sesv2",
        action,
        headers,
        query_params,
        request_id,
        resource_arn=arn,
        service_context={FROM: address},
        named_resource=arn,
    )
    return denied


def identity_arn(address: str) -> str:
    """What the address is verified by: itself, its domain or one above; itself where nothing is."""
    labels = address.rpartition("@")[2].split(".")
    domains = (".".join(labels[n:]) for n in range(len(labels) - 1))
    known = (each for each in (address, *domains) if each in ses_v2._identities)
    name = next(known, address)
    return f"arn:aws:ses:{get_region()}:{get_account_id()}:identity/{name}"
