"""Build the CloudTrail record of a call from the HTTP request and its answer.

The record has the fields that AWS documents. Calls to SQS are read only in the JSON protocol of
current SDKs. `service_changes` has the calls to other services that are recorded.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html

AWS has published no record of a failed SQS call. Three things are therefore assumed: that such a
record has requestParameters and resources, how errorCode is spelled, and that ReceiveMessage is
readOnly. tlsDetails is left out, because the local account has no TLS.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ministack.core import iam_evaluator
from ministack.services import iam, sts

from local_account.permissions import find_account_of_access_key
from mendq.model.names import DATA_EVENT_NAMES

EVENT_VERSION = "1.11"
HIDDEN_MESSAGE_BODY_TEXT = "HIDDEN_DUE_TO_SECURITY_REASONS"
JSON_TARGET_PREFIX = "AmazonSQS."
MAXIMUM_MESSAGE_CHARACTERS = 1024
# Parameters that no record has: they are in none of AWS's samples, and they are sensitive.
_OMITTED_PARAMETERS = frozenset({"ReceiptHandle", "MessageAttributes", "MessageSystemAttributes"})
# The caller chooses the keys in these parameters, so the keys are not changed to camel case.
_PARAMETERS_WITH_CALLER_KEYS = frozenset({"Attributes", "Tags"})
_READ_ACTION_PREFIXES = ("Get", "List", "Receive")
_ACCOUNT_PATTERN = re.compile(r"\d{12}")
# Access key, Region and service.
_CREDENTIAL_PATTERN = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/")
Record = dict[str, Any]


@dataclass(frozen=True)
class HttpExchange:
    """An HTTP call and its answer. The names of headers are in lower case."""

    headers: Mapping[str, str]
    body: bytes
    source_ip: str
    status: int
    answer_headers: Mapping[str, str]
    answer_body: bytes


class EventKind(NamedTuple):
    """The kind of event that a record is: service, such as `sqs.amazonaws.com`, name and class."""

    source: str
    name: str
    is_data_event: bool
    is_read_only: bool


def make_record(exchange: HttpExchange) -> Record | None:
    """Return the CloudTrail record of an SQS call, as the queue's account receives it.

    None if the request has no credential, or if its body is not a JSON object.
    """
    parameters = parse_object(exchange.body or b"{}")
    answer_content = parse_object(exchange.answer_body) or {}
    credential_match = _CREDENTIAL_PATTERN.search(exchange.headers.get("authorization", ""))
    if parameters is None or credential_match is None:
        return None
    access_key, region, _ = credential_match.groups()
    action = exchange.headers["x-amz-target"].removeprefix(JSON_TARGET_PREFIX)
    caller_identity = make_user_identity(access_key, find_account_of_access_key(access_key))
    account, queue_name = _find_account_and_queue(
        action, parameters, str(caller_identity["accountId"])
    )
    is_data_event = action in DATA_EVENT_NAMES
    is_read_only = action.startswith(_READ_ACTION_PREFIXES)
    kind = EventKind("sqs.amazonaws.com", action, is_data_event, is_read_only)
    request_parameters = _to_camel_case(parameters)
    if "queueUrl" in request_parameters:
        queue_url = f"https://sqs.{region}.amazonaws.com/{account}/{queue_name}"
        request_parameters["queueUrl"] = queue_url
    record = _build_record(exchange, kind, request_parameters, answer_content)
    record |= {
        "userIdentity": _hide_foreign_caller(caller_identity, account),
        "awsRegion": region,
        "recipientAccountId": account,
    }
    if account != caller_identity["accountId"]:
        record["sharedEventID"] = str(uuid.uuid4())
    if queue_name:
        queue_arn = f"arn:aws:sqs:{region}:{account}:{queue_name}"
        record["resources"] = [{"accountId": account, "type": "AWS::SQS::Queue", "ARN": queue_arn}]
    return record


def find_service(headers: Mapping[str, str]) -> str:
    """Return the service that a call's signature names; empty if it names none."""
    credential_match = _CREDENTIAL_PATTERN.search(headers.get("authorization", ""))
    return credential_match[3] if credential_match else ""


def make_change_record(
    exchange: HttpExchange,
    event_source: str,
    event_name: str,
    parameters: Mapping[str, Any],
    answer_content: Mapping[str, Any],
) -> Record | None:
    """Return the record of a change in the caller's own account.

    Args:
        exchange: The call.
        event_source: The service, such as `kms.amazonaws.com`.
        event_name: The event's name.
        parameters: The call's parameters.
        answer_content: The answer.

    Returns:
        The record, without `resources`; None if the call has no credential.
    """
    credential_match = _CREDENTIAL_PATTERN.search(exchange.headers.get("authorization", ""))
    if credential_match is None:
        return None
    access_key, region, _ = credential_match.groups()
    caller_identity = make_user_identity(access_key, find_account_of_access_key(access_key))
    kind = EventKind(event_source, event_name, is_data_event=False, is_read_only=False)
    record = _build_record(exchange, kind, _to_camel_case(parameters), answer_content)
    return record | {
        "userIdentity": caller_identity,
        "awsRegion": region,
        "recipientAccountId": caller_identity["accountId"],
    }


def _build_record(
    exchange: HttpExchange,
    kind: EventKind,
    request_parameters: Mapping[str, Any],
    answer_content: Mapping[str, Any],
) -> Record:
    """Return a call's record, without its caller, Region, account and resources."""
    has_failed = exchange.status >= 400
    failure_fields = (
        _make_failure_fields(exchange.answer_headers, answer_content) if has_failed else {}
    )
    is_denied = failure_fields.get("errorCode") in ("AccessDenied", "AccessDeniedException")
    has_response_elements = bool(answer_content) and not has_failed and not kind.is_read_only
    return {
        "eventVersion": EVENT_VERSION,
        "eventTime": _format_time(datetime.now(UTC)),
        "eventSource": kind.source,
        "eventName": kind.name,
        "sourceIPAddress": exchange.source_ip,
        "userAgent": exchange.headers.get("user-agent", ""),
        **failure_fields,
        # Records of denied calls to other services have no parameters either.
        "requestParameters": None if is_denied else request_parameters,
        "responseElements": _to_camel_case(answer_content) if has_response_elements else None,
        "requestID": exchange.answer_headers.get("x-amzn-requestid", ""),
        "eventID": str(uuid.uuid4()),
        "readOnly": kind.is_read_only,
        "eventType": "AwsApiCall",
        "managementEvent": not kind.is_data_event,
        "eventCategory": "Data" if kind.is_data_event else "Management",
    }


def parse_object(body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object in a body, or None if the body is none."""
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _find_account_and_queue(
    action: str, parameters: Mapping[str, Any], caller_account: str
) -> tuple[str, str]:
    """Return the account and the name of the queue that a call is about.

    The account is the one in `QueueUrl`, otherwise the caller's. The name is `*` for
    ListQueues, as in AWS's records, and empty if the call names no queue.
    """
    url_segments = str(parameters.get("QueueUrl") or "").rstrip("/").split("/")
    queue_name = url_segments[-1]
    account_in_url = url_segments[-2] if len(url_segments) > 1 else ""
    if not queue_name:
        move_task_source_arn = str(parameters.get("SourceArn") or "")
        queue_name = str(parameters.get("QueueName") or move_task_source_arn.rpartition(":")[2])
    account = account_in_url if _ACCOUNT_PATTERN.fullmatch(account_in_url) else caller_account
    return account, "*" if action == "ListQueues" else queue_name


def _make_failure_fields(headers: Mapping[str, str], response: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields errorCode, as SDKs show the code, and errorMessage of a failed call."""
    named_type = str(response.get("__type") or headers.get("x-amzn-errortype", ""))
    error_name = named_type.rpartition("#")[2].partition(":")[0] or "InternalFailure"
    error_code = headers.get("x-amzn-query-error", "").partition(";")[0] or error_name
    message = str(response.get("message") or response.get("Message") or "")
    return {"errorCode": error_code, "errorMessage": message[:MAXIMUM_MESSAGE_CHARACTERS]}


def _to_camel_case(value: Any) -> Any:
    """Return parameters with their names in camel case, as CloudTrail writes them.

    The keys in `Attributes` and `Tags` are not changed. Message bodies are hidden; receipt handles
    and message attributes are left out.
    """
    if isinstance(value, list):
        return [_to_camel_case(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    parameters: dict[str, Any] = {}
    for name, parameter in value.items():
        if name in _OMITTED_PARAMETERS:
            continue
        camel_name = name[:1].lower() + name[1:]
        if name == "MessageBody":
            parameters[camel_name] = HIDDEN_MESSAGE_BODY_TEXT
        elif name in _PARAMETERS_WITH_CALLER_KEYS:
            parameters[camel_name] = parameter
        else:
            parameters[camel_name] = _to_camel_case(parameter)
    return parameters


def _hide_foreign_caller(identity: Mapping[str, Any], record_account: str) -> Mapping[str, Any]:
    """Return `userIdentity` as the records of the account `record_account` show it.

    If the caller is from another account, these records do not show the caller's ARN.
    """
    if identity["accountId"] == record_account:
        return identity
    return {
        "type": "AWSAccount",
        "principalId": identity["principalId"],
        "accountId": identity["accountId"],
    }


def make_user_identity(access_key: str, account: str) -> dict[str, Any]:
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
        role_record = iam._roles.get_scoped(credential.account_id, None, role_name) or {}
        role_id = role_record.get("RoleId", role_name)
        session = sts._sessions.get(access_key) or {}
        issued_at = datetime.fromtimestamp(session.get("IssuedAt", 0), UTC)
        identity["principalId"] = f"{role_id}:{session_name}"
        identity["sessionContext"] = {
            "sessionIssuer": {
                "type": "Role",
                "principalId": role_id,
                "arn": role_record.get("Arn", f"arn:aws:iam::{account}:role/{role_name}"),
                "accountId": credential.account_id,
                "userName": role_name,
            },
            "attributes": {"creationDate": _format_time(issued_at), "mfaAuthenticated": "false"},
        }
    return identity


def _format_time(date_time: datetime) -> str:
    return date_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
