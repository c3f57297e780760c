"""One CloudTrail record of one SQS call, in the shape that AWS documents.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html
No failed SQS record is public: that it keeps requestParameters and resources, how its errorCode is
spelled, and readOnly of ReceiveMessage are assumptions. tlsDetails is left out: there is no TLS.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import iam, sts

from local_account.cloudtrail.calls import Answer, Call
from local_account.where import ACCOUNT
from mendq.model.names import DATA_EVENT_NAMES

EVENT_VERSION = "1.11"
HIDDEN = "HIDDEN_DUE_TO_SECURITY_REASONS"
LONGEST_MESSAGE = 1024
# Not in any sample of AWS's, and sensitive.
_LEFT_OUT = frozenset({"ReceiptHandle", "MessageAttributes", "MessageSystemAttributes"})
# Their members are named by the caller, not by the API.
_MAPS = frozenset({"Attributes", "Tags"})
_READING = ("Get", "List", "Receive")
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_ACCOUNT = re.compile(r"\d{12}")


def record_of(
    call: Call, answer: Answer, identity: Mapping[str, Any], at: datetime
) -> dict[str, Any]:
    """The record of a call that `identity` made, as the queue's owner sees it."""
    account = owner_of(call, identity)
    is_data = call.action in DATA_EVENT_NAMES
    record: dict[str, Any] = {
        "eventVersion": EVENT_VERSION,
        "userIdentity": identity,
        "eventTime": _time(at),
        "eventSource": "sqs.amazonaws.com",
        "eventName": call.action,
        "awsRegion": call.region,
        "sourceIPAddress": call.source_ip,
        "userAgent": call.user_agent,
        **_failure(answer),
        "requestParameters": _request_parameters(call, answer, account),
        "responseElements": _response_elements(call, answer),
        "requestID": answer.request_id,
        "eventID": str(uuid.uuid4()),
        "readOnly": call.action.startswith(_READING),
        "eventType": "AwsApiCall",
        "managementEvent": not is_data,
        "recipientAccountId": account,
        "eventCategory": "Data" if is_data else "Management",
    }
    if account != identity["accountId"]:
        record["sharedEventID"] = str(uuid.uuid4())
    if queue := queue_name(call):
        arn = f"arn:aws:sqs:{call.region}:{account}:{queue}"
        record["resources"] = [{"accountId": account, "type": "AWS::SQS::Queue", "ARN": arn}]
    return record


def owner_of(call: Call, identity: Mapping[str, Any]) -> str:
    """The account of the queue that a call names, or the caller's."""
    owner = str(call.parameters.get("QueueUrl") or "").rstrip("/").split("/")[-2:-1]
    return owner[0] if owner and _ACCOUNT.fullmatch(owner[0]) else str(identity["accountId"])


def queue_name(call: Call) -> str:
    """The queue that a call names; a wildcard for ListQueues, as in AWS's records."""
    if call.action == "ListQueues":
        return "*"
    url = str(call.parameters.get("QueueUrl") or "")
    arn = str(call.parameters.get("SourceArn") or "")  # of what is about move tasks
    name = call.parameters.get("QueueName") or arn.rpartition(":")[2]
    return url.rstrip("/").rpartition("/")[2] or str(name)


def _failure(answer: Answer) -> dict[str, str]:
    if answer.error_code is None:
        return {}
    return {
        "errorCode": answer.error_code,
        "errorMessage": (answer.error_message or "")[:LONGEST_MESSAGE],
    }


def _request_parameters(call: Call, answer: Answer, account: str) -> dict[str, Any] | None:
    if answer.error_code in _DENIED:
        return None  # as other services' records of denied calls
    shown: dict[str, Any] = _camel(call.parameters)
    if "queueUrl" in shown:
        host = f"https://sqs.{call.region}.amazonaws.com"
        shown["queueUrl"] = f"{host}/{account}/{queue_name(call)}"
    return shown


def _response_elements(call: Call, answer: Answer) -> dict[str, Any] | None:
    if answer.error_code or call.action.startswith(_READING) or not answer.elements:
        return None
    elements: dict[str, Any] = _camel(answer.elements)
    return elements


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


def account_of(access_key: str) -> str:
    """The account that an access key belongs to; this one for a key that is nobody's."""
    if session := sts._sessions.get(access_key):
        return str(session["Arn"]).split(":")[4]
    if iam_evaluator.is_root_access_key(access_key):
        return access_key if access_key.isdecimal() else ACCOUNT
    return iam_evaluator.find_iam_access_key_account(access_key) or ACCOUNT


def as_seen_by(identity: dict[str, Any], owner: str) -> dict[str, Any]:
    """Who called, as the records of `owner` say: of another account's callers no ARN."""
    if identity["accountId"] == owner:
        return identity
    return {
        "type": "AWSAccount",
        "principalId": identity["principalId"],
        "accountId": identity["accountId"],
    }


def identity_of(access_key: str, account: str) -> dict[str, Any]:
    """The identity behind an access key that MiniStack knows; a bare account for any other."""
    credential = iam_evaluator.resolve_credential(access_key, account)
    if isinstance(credential, iam_evaluator.CredentialResolutionError):
        return {"type": "AWSAccount", "principalId": account, "accountId": account}
    identity: dict[str, Any] = {
        "type": {"User": "IAMUser"}.get(credential.principal_type, credential.principal_type),
        "principalId": credential.principal_id,
        "arn": credential.principal_arn,
        "accountId": credential.account_id,
        "accessKeyId": access_key,
    }
    if credential.principal_type == "User":
        identity["userName"] = credential.principal_name
    if credential.principal_type == "AssumedRole":
        _, role_name, session_name = credential.principal_arn.split("/", 2)
        role = iam._roles.get_scoped(credential.account_id, None, role_name) or {}
        role_id = role.get("RoleId", role_name)
        session = sts._sessions.get(access_key) or {}
        started = datetime.fromtimestamp(session.get("IssuedAt", 0), UTC)
        identity["principalId"] = f"{role_id}:{session_name}"
        identity["sessionContext"] = {
            "sessionIssuer": {
                "type": "Role",
                "principalId": role_id,
                "arn": role.get("Arn", f"arn:aws:iam::{account}:role/{role_name}"),
                "accountId": credential.account_id,
                "userName": role_name,
            },
            "attributes": {"creationDate": _time(started), "mfaAuthenticated": "false"},
        }
    return identity


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
