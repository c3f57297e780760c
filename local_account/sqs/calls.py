"""An SQS call and its answer, read from the wire in either of the two protocols."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree as ET

JSON_TARGET = "AmazonSQS."
_SIGNED_FOR_SQS = re.compile(r"Credential=[^,\s]+/sqs/aws4_request")
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/")


@dataclass(frozen=True)
class Call:
    """What a client asked for; `parameters` as the JSON protocol names them."""

    action: str
    parameters: Mapping[str, Any]
    access_key: str
    region: str
    user_agent: str
    source_ip: str


@dataclass(frozen=True)
class Answer:
    """What the client got; `error_code` as SDKs show it, `error_name` as the JSON protocol does."""

    request_id: str
    error_code: str | None
    error_name: str | None
    error_message: str | None
    elements: Mapping[str, Any]


def is_sqs_call(headers: Mapping[str, str]) -> bool:
    """Whether a request is meant for SQS: by its target, or by the service it is signed for."""
    return headers.get("x-amz-target", "").startswith(JSON_TARGET) or bool(
        _SIGNED_FOR_SQS.search(headers.get("authorization", ""))
    )


def read_call(
    headers: Mapping[str, str], path: str, body: bytes, source_ip: str, default_region: str
) -> Call | None:
    """Read a request; None when it is no call of SQS that AWS would have recorded."""
    parsed = _parsed(headers, body)
    if parsed is None:
        return None
    action, parameters = parsed
    if not parameters.get("QueueUrl") and path.count("/") >= 2:
        parameters = {**parameters, "QueueUrl": path}
    signed = _CREDENTIAL.search(headers.get("authorization", ""))
    return Call(
        action=action,
        parameters=parameters,
        access_key=signed[1] if signed else "",
        region=signed[2] if signed else default_region,
        user_agent=headers.get("user-agent", ""),
        source_ip=source_ip,
    )


def _parsed(headers: Mapping[str, str], body: bytes) -> tuple[str, Mapping[str, Any]] | None:
    target = headers.get("x-amz-target", "")
    if target.startswith(JSON_TARGET):
        try:
            parameters = json.loads(body or b"{}")
        except ValueError:
            return None
        if not isinstance(parameters, dict):
            return None
        return target.removeprefix(JSON_TARGET), parameters
    from ministack.services.sqs import _normalise  # noqa: PLC0415  after the environment is set

    form = parse_qs(body.decode("utf-8", "replace"))
    action = form.get("Action", [""])[0]
    return (action, _normalise(action, form)) if action else None


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """Read a response in either protocol; never raises."""
    request_id = headers.get("x-amzn-requestid", "")
    is_json = "json" in headers.get("content-type", "")
    if status < 400:
        elements = _json_object(body) if is_json else {}
        return Answer(request_id, None, None, None, elements)
    code, name, message = _json_error(headers, body) if is_json else _xml_error(body)
    return Answer(request_id, code, name, message, {})


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        content = json.loads(body or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _json_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str, str]:
    content = _json_object(body)
    name = str(content.get("__type", "")).rpartition("#")[2] or "InternalFailure"
    code = headers.get("x-amzn-query-error", "").partition(";")[0] or name
    return code, name, str(content.get("message") or content.get("Message") or "")


def _xml_error(body: bytes) -> tuple[str, str, str]:
    try:
        root = ET.fromstring(body)  # noqa: S314  our own emulator wrote it
    except ET.ParseError:
        return "InternalFailure", "InternalFailure", ""
    text = {each.tag.rpartition("}")[2]: each.text or "" for each in root.iter()}
    code = text.get("Code", "InternalFailure")
    return code, code, text.get("Message", "")
