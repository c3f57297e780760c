"""An SQS call and its answer, read from the wire: the JSON protocol of current SDKs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JSON_TARGET = "AmazonSQS."
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/")


@dataclass(frozen=True)
class Call:
    """What a client asked for."""

    action: str
    parameters: Mapping[str, Any]
    access_key: str
    region: str
    user_agent: str
    source_ip: str


@dataclass(frozen=True)
class Answer:
    """What the client got; `error_code` as SDKs show it, `error_name` as the protocol does."""

    request_id: str
    error_code: str | None
    error_name: str | None
    error_message: str | None
    elements: Mapping[str, Any]


def read_call(
    headers: Mapping[str, str], body: bytes, source_ip: str, default_region: str
) -> Call | None:
    """Read a request; None when it is no call of SQS that AWS would have recorded."""
    target = headers.get("x-amz-target", "")
    parameters = _object(body or b"{}")
    if not target.startswith(JSON_TARGET) or parameters is None:
        return None
    signed = _CREDENTIAL.search(headers.get("authorization", ""))
    return Call(
        action=target.removeprefix(JSON_TARGET),
        parameters=parameters,
        access_key=signed[1] if signed else "",
        region=signed[2] if signed else default_region,
        user_agent=headers.get("user-agent", ""),
        source_ip=source_ip,
    )


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """Read a response; never raises."""
    request_id, content = headers.get("x-amzn-requestid", ""), _object(body) or {}
    if status < 400:
        return Answer(request_id, None, None, None, content)
    name = str(content.get("__type", "")).rpartition("#")[2] or "InternalFailure"
    code = headers.get("x-amzn-query-error", "").partition(";")[0] or name
    message = str(content.get("message") or content.get("Message") or "")
    return Answer(request_id, code, name, message, {})


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
