"""Build the CloudTrail record of an SQS call from the HTTP request and its answer.

The record has the shape that AWS documents. Only the JSON protocol of current SDKs is read.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html

AWS has published no record of a failed SQS call. Assumptions are: such a record has
requestParameters and resources, the spelling of errorCode, and readOnly of ReceiveMessage.
tlsDetails is left out, because the local account has no TLS.
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
# Parameters that no record has: they are in none of AWS's samples, and they are sensitive.
_LEFT_OUT = frozenset({"ReceiptHandle", "MessageAttributes", "MessageSystemAttributes"})
# Their keys are chosen by the caller and not by the API, so they keep their upper case.
_MAPS = frozenset({"Attributes", "Tags"})
_READING = ("Get", "List", "Receive")
_ACCOUNT = re.compile(r"\d{12}")
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/")
Record = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """An HTTP call and its answer. The names of headers are in lower case."""

    headers: Mapping[str, str]
    body: bytes
    source_ip: str
    status: int
    answer_headers: Mapping[str, str]
    answer_body: bytes


def record_of(exchange: Exchange) -> Record | None:
    """Return the CloudTrail record of an SQS call, as the account of the queue gets it.

    None if the request has no credential, or if its body is not a JSON object.
    """
    parameters = _object(exchange.body or b"{}")
    answer = _object(exchange.answer_body) or {}
    credential = _CREDENTIAL.search(exchange.headers.get("authorization", ""))
    if parameters is None or credential is None:
        return None
    access_key, region = credential.groups()
    action = exchange.headers["x-amz-target"].removeprefix(JSON_TARGET)
    caller = identity_of(access_key, account_of(access_key))
    account, queue = _queue_of(action, parameters, str(caller["accountId"]))
    has_failed = exchange.status >= 400
    failure = _failure(exchange.answer_headers, answer) if has_failed else {}
    is_denied = failure.get("errorCode") in ("AccessDenied", "AccessDeniedException")
    is_data = action in DATA_EVENT_NAMES
    is_reading = action.startswith(_READING)
    request_parameters = _to_camel_case(parameters)
    if "queueUrl" in request_parameters:
        queue_url = f"https://sqs.{region}.amazonaws.com/{account}/{queue}"
        request_parameters["queueUrl"] = queue_url
    has_response = bool(answer) and not has_failed and not is_reading
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
        # Records of denied calls to other services have no parameters either.
        "requestParameters": None if is_denied else request_parameters,
        "responseElements": _to_camel_case(answer) if has_response else None,
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
    """Return the account and the name of the queue that a call names.

    The account is the one in `QueueUrl`, otherwise the caller's. The name is `*` for
    ListQueues, as in AWS's records.
    """
    path = str(parameters.get("QueueUrl") or "").rstrip("/").split("/")
    name = path[-1]
    owner = path[-2] if len(path) > 1 else ""
    if not name:
        move_task_source = str(parameters.get("SourceArn") or "")
        name = str(parameters.get("QueueName") or move_task_source.rpartition(":")[2])
    account = owner if _ACCOUNT.fullmatch(owner) else caller
    return account, "*" if action == "ListQueues" else name


def _failure(headers: Mapping[str, str], answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the error's code, as SDKs show it, and its message."""
    error_name = str(answer.get("__type", "")).rpartition("#")[2] or "InternalFailure"
    code = headers.get("x-amzn-query-error", "").partition(";")[0] or error_name
    message = str(answer.get("message") or answer.get("Message") or "")
    return {"errorCode": code, "errorMessage": message[:LONGEST_MESSAGE]}


def _to_camel_case(value: Any) -> Any:
    """Return parameters with their names in camel case, as CloudTrail writes them.

    Message bodies are hidden; receipt handles and message attributes are left out.
    """
    if isinstance(value, list):
        return [_to_camel_case(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    parameters: dict[str, Any] = {}
    for name, parameter in value.items():
        if name in _LEFT_OUT:
            continue
        camel_name = name[:1].lower() + name[1:]
        if name == "MessageBody":
            parameters[camel_name] = HIDDEN
        elif name in _MAPS:
            parameters[camel_name] = parameter
        else:
            parameters[camel_name] = _to_camel_case(parameter)
    return parameters


def _as_seen_by(identity: Mapping[str, Any], owner: str) -> Mapping[str, Any]:
    """Return the caller as the records of the account `owner` show it.

    If the caller is from another account, these records do not show the caller's ARN.
    """
    if identity["accountId"] == owner:
        return identity
    return {
        "type": "AWSAccount",
        "principalId": identity["principalId"],
        "accountId": identity["accountId"],
    }


def identity_of(access_key: str, account: str) -> dict[str, Any]:
    """Return `userIdentity` of the caller with this access key, which `account` issued."""
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
        role_id = role.get("RoleId", role_name)
        session = sts._sessions.get(access_key) or {}
        issued_at = datetime.fromtimestamp(session.get("IssuedAt", 0), UTC)
        identity["principalId"] = f"{role_id}:{session_name}"
        identity["sessionContext"] = {
            "sessionIssuer": {
                "type": "Role",
                "principalId": role_id,
                "arn": role.get("Arn", f"arn:aws:iam::{account}:role/{role_name}"),
                "accountId": credential.account_id,
                "userName": role_name,
            },
            "attributes": {"creationDate": _time(issued_at), "mfaAuthenticated": "false"},
        }
    return identity


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
