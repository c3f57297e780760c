"""A CloudTrail record, or the event that carries one, read into a small frozen value.

Every field is somebody else's text: it is cut, checked and never trusted beyond "look at queue Q".
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-record-contents.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from functions.healing import queue_names
from functions.healing.denials import caller_in
from functions.healing.error_codes import canonical

# CloudTrail's own bound on one event.
MAXIMUM_BYTES = 262_144
MAXIMUM_TEXT = 2_048
MAXIMUM_CODE = 128
MAXIMUM_PRINCIPAL = 256
_TIME_FORMS = ("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class FailedCall:
    """One SQS call that failed; times are aware and in UTC, absent texts are empty."""

    event_id: str
    event_time: datetime
    event_name: str
    error_code: str
    raw_error_code: str
    error_message: str
    queue_arn: str | None
    account: str
    region: str
    principal_arn: str
    session_created_at: datetime | None
    request_id: str
    source_ip: str
    requested_visibility_seconds: int | None = None


@dataclass(frozen=True)
class Unreadable:
    """Why a record is no failed call of SQS; `not_failed` and `not_sqs` are no faults."""

    reason: str


def read(record: object) -> FailedCall | Unreadable:
    """Read an EventBridge envelope or a bare CloudTrail record, as a mapping or as bytes of JSON.

    Total: whatever comes in, a FailedCall or an Unreadable comes out and nothing is raised.
    """
    try:
        return _read(record)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return Unreadable("malformed")


def _read(record: object) -> FailedCall | Unreadable:
    parsed = _parsed(record)
    if isinstance(parsed, Unreadable):
        return parsed
    envelope, detail = parsed
    if detail.get("eventSource") != "sqs.amazonaws.com":
        return Unreadable("not_sqs")
    raw_error_code = detail.get("errorCode")
    if raw_error_code in (None, ""):
        return Unreadable("not_failed")
    if not isinstance(raw_error_code, str):
        return Unreadable("error_code_type")
    event_time = _time(detail.get("eventTime"))
    if event_time is None or not _text(detail, "eventID", 128) or not _text(detail, "eventName"):
        return Unreadable("without_id_name_or_time")
    return _failed_call(envelope, detail, encodable(raw_error_code[:MAXIMUM_CODE]), event_time)


def _failed_call(
    envelope: Record, detail: Record, raw_error_code: str, event_time: datetime
) -> FailedCall:
    identity = _mapping(detail.get("userIdentity"))
    session = _mapping(identity.get("sessionContext"))
    region = _text(detail, "awsRegion", 32) or _text(envelope, "region", 32)
    queue_arn = _queue_arn(detail, region)
    error_code = canonical(raw_error_code)
    arn = _text(identity, "arn") or _stranger(detail, identity, error_code)
    principal_arn = encodable(_principal_arn(arn, identity, session)[:MAXIMUM_PRINCIPAL])
    return FailedCall(
        event_id=_text(detail, "eventID", 128),
        event_time=event_time,
        event_name=_text(detail, "eventName", 128),
        error_code=error_code,
        raw_error_code=raw_error_code,
        error_message=_text(detail, "errorMessage"),
        queue_arn=queue_arn,
        account=_account(envelope, detail, identity, queue_arn),
        region=region,
        principal_arn=principal_arn,
        session_created_at=_time(_mapping(session.get("attributes")).get("creationDate")),
        request_id=_text(detail, "requestID", 128),
        source_ip=_text(detail, "sourceIPAddress", 128),
        requested_visibility_seconds=_requested_visibility(detail),
    )


def _parsed(record: object) -> tuple[Record, Record] | Unreadable:
    """(envelope, record): the envelope is empty around a bare record."""
    if isinstance(record, bytes | bytearray | str):
        if len(record) > MAXIMUM_BYTES:
            return Unreadable("too_large")
        record = json.loads(record)
    if not isinstance(record, Mapping):
        return Unreadable("not_a_record")
    if "detail" not in record or "eventSource" in record:
        return {}, record
    detail = record["detail"]
    return (record, detail) if isinstance(detail, Mapping) else Unreadable("not_a_record")


def _queue_arn(detail: Record, region: str) -> str | None:
    """From resources, else the queue's URL, else its name, else the refusal's own words."""
    resources = detail.get("resources")
    for each in resources if isinstance(resources, list) else []:
        arn = queue_names.arn_of(_mapping(each).get("ARN"))
        if arn:
            return arn
    parameters = _mapping(detail.get("requestParameters"))
    account = _text(detail, "recipientAccountId", 12)
    return (
        queue_names.arn_of_url(parameters.get("queueUrl"), region)
        or queue_names.arn_of_name(parameters.get("queueName"), region, account)
        or queue_names.arn_refused_in(_text(detail, "errorMessage"))
    )


def _account(envelope: Record, detail: Record, identity: Record, queue_arn: str | None) -> str:
    return (
        _text(detail, "recipientAccountId", 12)
        or _text(envelope, "account", 12)
        or (queue_arn or "::::").split(":")[4]
        or _text(identity, "accountId", 12)
    )


def _stranger(detail: Record, identity: Record, error_code: str) -> str:
    """Of another account's callers a record may hold no ARN; where IAM refused them, it says who.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html
    """
    arn = caller_in(error_code, _text(detail, "errorMessage"))
    account = "".join(arn.split(":")[4:5])
    is_its = account and account == _text(identity, "accountId", 12)
    return arn if is_its and account != _text(detail, "recipientAccountId", 12) else ""


def _principal_arn(arn: str, identity: Record, session: Record) -> str:
    """The role, not its session: the session's name is the caller's text."""
    issuer = _text(_mapping(session.get("sessionIssuer")), "arn")
    if issuer or ":assumed-role/" not in arn:
        return issuer or arn or _text(identity, "invokedBy") or _text(identity, "principalId")
    prefix, _, name = arn.partition(":assumed-role/")
    return f"{prefix.replace(':sts:', ':iam:')}:role/{name.partition('/')[0]}"


def _requested_visibility(detail: Record) -> int | None:
    value = _mapping(detail.get("requestParameters")).get("visibilityTimeout")
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= 43_200 else None


def _mapping(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


def _text(mapping: Record, key: str, maximum: int = MAXIMUM_TEXT) -> str:
    value = mapping.get(key)
    return encodable(value[:maximum]) if isinstance(value, str) else ""


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced: JSON can spell them and no file or table takes them."""
    return text.encode("utf-8", "replace").decode()


def _time(value: object) -> datetime | None:
    """Both `Z` and `+0000` occur in records."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    for form in _TIME_FORMS:
        try:
            return datetime.strptime(value, form).astimezone(UTC)
        except ValueError:
            continue
    return None
