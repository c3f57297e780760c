"""One CloudTrail record of one SQS call and its answer, in the shape that AWS documents.

Calls are read from the wire: the JSON protocol of current SDKs.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html
No failed SQS record is public: that it keeps requestParameters and resources, how its errorCode is
spelled, and readOnly of ReceiveMessage are assumptions. tlsDetails is left out: there is no TLS.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import iam, sts

from local_account.permissions import account_of
from mendq.model.names import DATA_EVENT_NAMES

EVENT_VERSION = "1.11"
HIDDEN = "HIDDEN_DUE_TO_SECURITY_REASONS"
JSON_TARGET = "AmazonSQS."
LONGEST_MESSAGE = 1024
# Not in any sample of AWS's, and sensitive.
_LEFT_OUT = frozenset({"ReceiptHandle", "MessageAttributes", "MessageSystemAttributes"})
# Their members are named by the caller, not by the API.
_MAPS = frozenset({"Attributes", "Tags"})
_READING = ("Get", "List", "Receive")
_ACCOUNT = re.compile(r"\d{12}")
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/")
Record = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """A call and its answer, as they went over the wire; names of headers are in lower case."""

    headers: Mapping[str, str]
    body: bytes
    source_ip: str
    status: int
    answer_headers: Mapping[str, str]
    answer_body: bytes


def record_of(exchange: Exchange) -> Record | None:
    """The record that the queue's owner gets; None where AWS would have recorded nothing."""
    parameters, answer = _object(exchange.body or b"{}"), _object(exchange.answer_body) or {}
    error_name = str(answer.get("__type", "")).rpartition("#")[2] or "InternalFailure"
    signed = _CREDENTIAL.search(exchange.headers.get("authorization", ""))
    if parameters is None or signed is None:
        return None
    failed, (access_key, region) = exchange.status >= 400, signed.groups()
    action = exchange.headers["x-amz-target"].removeprefix(JSON_TARGET)
    caller = identity_of(access_key, account_of(access_key))
    account, queue = _queue_of(action, parameters, str(caller["accountId"]))
    failure = _failure(exchange.answer_headers, error_name, answer) if failed else {}
    is_denied = failure.get("errorCode") in ("AccessDenied", "AccessDeniedException")
    is_data, is_reading = action in DATA_EVENT_NAMES, action.startswith(_READING)
    shown = _camel(parameters)
    if "queueUrl" in shown:
        shown["queueUrl"] = f"https://sqs.{region}.amazonaws.com/{account}/{queue}"
    record: Record = {
        "eventVersion": EVENT_VERSION,
        "userIdentity": _as_seen_by(caller, account),
        "eventTime": _time(datetime.now(UTC)),
        "eventSource": "sqs.amazonaws.com",
        "eventName": action,
        "awsRegion": region,
        "sourceIPAddress": exchange.source_ip,
        "userAgent": exchange.headers.get("user-agent", ""),
        **failure,
        # Nothing, as in other services' records of denied calls.
        "requestParameters": None if is_denied else shown,
        "responseElements": None if failed or is_reading or not answer else _camel(answer),
        "requestID": exchange.answer_headers.get("x-amzn-requestid", ""),
        "eventID": str(uuid.uuid4()),
        "readOnly": is_reading,
        "eventType": "AwsApiCall",
        "managementEvent": not is_data,
        "recipientAccountId": account,
        "eventCategory": "Data" if is_data else "Management",
    }
    if account != caller["accountId"]:
        record["sharedEventID"] = str(uuid.uuid4())
    if queue:
        arn = f"arn:aws:sqs:{region}:{account}:{queue}"
        record["resources"] = [{"accountId": account, "type": "AWS::SQS::Queue", "ARN": arn}]
    return record


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _queue_of(action: str, parameters: Mapping[str, Any], caller: str) -> tuple[str, str]:
    """(account, name) of the queue that a call names; a wildcard for ListQueues, as in AWS's."""
    *_, owner, name = ["", "", *str(parameters.get("QueueUrl") or "").rstrip("/").split("/")]
    source = str(parameters.get("SourceArn") or "")  # of what is about move tasks
    name = name or str(parameters.get("QueueName") or source.rpartition(":")[2])
    account = owner if _ACCOUNT.fullmatch(owner) else caller
    return account, "*" if action == "ListQueues" else name


def _failure(
    headers: Mapping[str, str], error_name: str, answer: Mapping[str, Any]
) -> dict[str, str]:
    """The code as SDKs show it, and the message."""
    code = headers.get("x-amzn-query-error", "").partition(";")[0] or error_name
    message = str(answer.get("message") or answer.get("Message") or "")
    return {"errorCode": code, "errorMessage": message[:LONGEST_MESSAGE]}


def _camel(value: Any) -> Any:
    """Names as CloudTrail writes them; bodies hidden, handles and attributes of messages gone."""
    if isinstance(value, Mapping):
        return {
            name[:1].lower() + name[1:]: _shown(name, each)
            for name, each in value.items()
            if name not in _LEFT_OUT
        }
    return [_camel(each) for each in value] if isinstance(value, list) else value


def _shown(name: str, value: Any) -> Any:
    if name == "MessageBody":
        return HIDDEN
    return value if name in _MAPS else _camel(value)


def _as_seen_by(identity: Mapping[str, Any], owner: str) -> Mapping[str, Any]:
    """Who called, as the records of `owner` say: of another account's callers no ARN."""
    if identity["accountId"] == owner:
        return identity
    shown = {name: identity[name] for name in ("principalId", "accountId")}
    return {"type": "AWSAccount", **shown}


def identity_of(access_key: str, account: str) -> dict[str, Any]:
    """The identity behind an access key that the account issued: no other key's call gets here."""
    credential: Any = iam_evaluator.resolve_credential(access_key, account)
    identity: dict[str, Any] = {
        "type": credential.principal_type,
        "principalId": credential.principal_id,
        "arn": credential.principal_arn,
        "accountId": credential.account_id,
        "accessKeyId": access_key,
    }
    if credential.principal_type == "User":
        identity |= {"type": "IAMUser", "userName": credential.principal_name}
    if credential.principal_type == "AssumedRole":
        _, role_name, session_name = credential.principal_arn.split("/", 2)
        role = iam._roles.get_scoped(credential.account_id, None, role_name) or {}
        role_id, arn = role.get("RoleId", role_name), f"arn:aws:iam::{account}:role/{role_name}"
        session = sts._sessions.get(access_key) or {}
        started = _time(datetime.fromtimestamp(session.get("IssuedAt", 0), UTC))
        issuer = {"type": "Role", "principalId": role_id, "arn": role.get("Arn", arn)}
        issuer |= {"accountId": credential.account_id, "userName": role_name}
        attributes = {"creationDate": started, "mfaAuthenticated": "false"}
        identity["principalId"] = f"{role_id}:{session_name}"
        identity["sessionContext"] = {"sessionIssuer": issuer, "attributes": attributes}
    return identity


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
