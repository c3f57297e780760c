"""One CloudTrail record of one SQS call, in the shape that AWS documents.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
No failed SQS record is public: that it keeps requestParameters and resources, how its errorCode is
spelled, and readOnly of ReceiveMessage are assumptions. tlsDetails is left out: there is no TLS.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from infra.data_events import DATA_EVENT_NAMES
from local_account.sqs.calls import Answer, Call

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


class Spelling(StrEnum):
    """How errorCode is written; AWS does not document which."""

    QUERY = "query"
    JSON = "json"


def record_of(
    call: Call,
    answer: Answer,
    identity: Mapping[str, Any],
    at: datetime,
    spelling: Spelling = Spelling.QUERY,
) -> dict[str, Any]:
    """The record of a call that `identity` made, as the queue's owner sees it."""
    account = owner_of(call, identity)
    is_data = call.action in DATA_EVENT_NAMES
    record: dict[str, Any] = {
        "eventVersion": EVENT_VERSION,
        "userIdentity": identity,
        "eventTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "sqs.amazonaws.com",
        "eventName": call.action,
        "awsRegion": call.region,
        "sourceIPAddress": call.source_ip,
        "userAgent": call.user_agent,
        **_failure(answer, spelling),
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


def _failure(answer: Answer, spelling: Spelling) -> dict[str, str]:
    code = answer.error_name if spelling is Spelling.JSON else answer.error_code
    if code is None:
        return {}
    return {"errorCode": code, "errorMessage": (answer.error_message or "")[:LONGEST_MESSAGE]}


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
