"""CloudTrail records as text, made fast: what varies goes into templates that are made once.

The shapes are AWS's samples; every name in them is made up. 70 of 100 are calls of SQS, one of
100 failed, and who fails is one queue of the half hour, so that failures come in bursts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple

DAY = datetime(2026, 11, 10, tzinfo=UTC)
DAY_SECONDS = 86_400
SQS_SHARE, FAILED_SHARE = 0.70, 0.01
QUEUES, SESSIONS = 40, 3_000
BURST_SECONDS = 1_800
HIDDEN = "HIDDEN_DUE_TO_SECURITY_REASONS"
_JAVA = (
    "aws-sdk-java/2.25.31 Linux/5.10.219-229.866.amzn2int.x86_64 OpenJDK_64-Bit_Server_VM/17.0.11 "
    "Java/17.0.11 vendor/Amazon.com_Inc. io/sync http/Apache cfg/retry-mode/standard"
)
_PYTHON = (
    "Boto3/1.34.131 md/Botocore#1.34.131 ua/2.0 os/linux#6.1.94-99.176.amzn2023.aarch64 "
    "md/arch#aarch64 lang/python#3.12.3 md/pyimpl#CPython exec-env/AWS_ECS_FARGATE"
)
_SERVICES = ("orders", "billing", "shipping", "catalog", "payments", "search", "mail", "stock")
_SQS_CALLS = ("ReceiveMessage", "SendMessage", "DeleteMessage", "ChangeMessageVisibility")
# (event, code, message): what becomes an incident, what is only counted, what nobody labels.
_FAILURES = (
    ("ChangeMessageVisibility", "MessageNotInflight", "The message referred to isn't in flight."),
    ("SendMessage", "AccessDenied", "Access to the resource is denied."),
    ("ReceiveMessage", "KmsThrottled", "Rate exceeded (Service: AWSKMS; Status Code: 400)"),
    ("SendMessage", "InvalidParameterValue", "One or more parameters cannot be validated."),
    ("SendMessage", "AWS.SimpleQueueService.NonExistentQueue", "The queue does not exist."),
    ("ReceiveMessage", "RequestThrottled", "The request was denied due to request throttling."),
    ("SendMessage", "InternalFailure", "We encountered an internal error. Please try again."),
)
_OTHER_CALLS = (
    ("s3.amazonaws.com", "GetObject"),
    ("s3.amazonaws.com", "PutObject"),
    ("kms.amazonaws.com", "Decrypt"),
    ("sts.amazonaws.com", "AssumeRole"),
    ("lambda.amazonaws.com", "Invoke"),
)


class Branch(NamedTuple):
    """An account and region of the made-up organization."""

    account: str
    region: str


BRANCHES = (
    Branch("123456789012", "us-east-1"),
    Branch("123456789012", "us-east-1"),
    Branch("123456789012", "eu-west-1"),
    Branch("210987654321", "us-east-1"),
    Branch("210987654321", "eu-west-1"),
    Branch("111122223333", "us-west-2"),
)


class Call(NamedTuple):
    """What decides a record's shape; `kind` and `queue` are numbers."""

    is_sqs: bool
    failed: bool
    kind: int
    queue: int


@dataclass(frozen=True)
class Records:
    """`texts` are JSON objects; `failed_sqs_calls` of them are what the night looks for."""

    texts: list[str]
    failed_sqs_calls: int


def records(branch: Branch, seconds: Iterator[int], seed: str, size: int) -> Records:
    """Each of the next of `seconds` of the day; the same seed gives the same failures."""
    draw = Random(seed)  # noqa: S311 - the same files every time are the point
    texts, failed_sqs_calls = [], 0
    for _ in range(size):
        second = next(seconds)
        is_sqs, failed = draw.random() < SQS_SHARE, draw.random() < FAILED_SHARE
        kind = draw.getrandbits(16)
        queue = second // BURST_SECONDS * 7 % QUEUES if failed else draw.randrange(QUEUES)
        session = _session(draw.randrange(SESSIONS))
        template = _template(branch, Call(is_sqs, failed, kind % 4, queue), session["role"])
        texts.append(template % (_varying(draw, second) | session))
        failed_sqs_calls += is_sqs and failed
    return Records(texts, failed_sqs_calls)


def _varying(draw: Random, second: int) -> dict[str, str]:
    digits = f"{draw.getrandbits(704):0176x}"
    return {
        "time": (DAY + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "event": _uuid(digits[:32]),
        "request": _uuid(digits[32:64]),
        "message": _uuid(digits[64:96]),
        "shared": _uuid(digits[96:128]),
        "digest": digits[128:160],
        "group": digits[160:168],
        "host": digits[144:],
    }


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@cache
def _session(number: int) -> dict[str, str]:
    """An instance that assumed a role."""
    draw = Random(f"session {number}")  # noqa: S311 - the same again
    began = DAY + timedelta(seconds=draw.randrange(-3600, DAY_SECONDS))
    return {
        "role": f"{draw.choice(_SERVICES)}-worker",
        "key": "".join(draw.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        "instance": f"i-0{draw.getrandbits(64):016x}",
        "began": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "address": f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(256)}",
    }


@cache
def _template(branch: Branch, call: Call, role: str) -> str:
    """JSON with %(name)s for what `_varying` and `_session` give."""
    called = _sqs_call(branch, call) if call.is_sqs else _other_call(branch, call)
    record = {
        "eventVersion": "1.11",
        "userIdentity": _identity(branch, role),
        "eventTime": "%(time)s",
        "eventSource": called.pop("eventSource"),
        "eventName": called.pop("eventName"),
        "awsRegion": branch.region,
        "sourceIPAddress": "%(address)s",
        "userAgent": _JAVA if len(role) % 2 else _PYTHON,
        **called,
        "requestID": "%(request)s",
        "eventID": "%(event)s",
        "sharedEventID": "%(shared)s",
        "eventType": "AwsApiCall",
        "managementEvent": False,
        "recipientAccountId": branch.account,
        "eventCategory": "Data",
        "tlsDetails": {
            "tlsVersion": "TLSv1.3",
            "cipherSuite": "TLS_AES_128_GCM_SHA256",
            "clientProvidedHostHeader": f"sqs.{branch.region}.amazonaws.com",
        },
    }
    return json.dumps(record, separators=(",", ":"))


def _sqs_call(branch: Branch, call: Call) -> dict[str, Any]:
    name = f"{_SERVICES[call.queue % len(_SERVICES)]}-{call.queue:02}"
    event, code, message = _FAILURES[call.queue % len(_FAILURES)]
    event = event if call.failed else _SQS_CALLS[call.kind]
    request: dict[str, Any] = {
        "queueUrl": f"https://sqs.{branch.region}.amazonaws.com/{branch.account}/{name}"
    }
    response: dict[str, Any] | None = None
    if event == "SendMessage":
        request |= {
            "messageBody": HIDDEN,
            "messageGroupId": "%(group)s",
            "messageDeduplicationId": "%(host)s%(digest)s",
        }
        response = {"mD5OfMessageBody": "%(digest)s", "messageId": "%(message)s"}
    elif event == "ReceiveMessage":
        names = ["SentTimestamp", "ApproximateReceiveCount", "MessageGroupId", "TraceHeader"]
        request |= {"maxNumberOfMessages": 10, "waitTimeSeconds": 20, "attributeNames": names}
    elif event == "ChangeMessageVisibility":
        request |= {"visibilityTimeout": 30}
    failure = {"errorCode": code, "errorMessage": message} if call.failed else {}
    arn = f"arn:aws:sqs:{branch.region}:{branch.account}:{name}"
    return {
        "eventSource": "sqs.amazonaws.com",
        "eventName": event,
        **failure,
        "requestParameters": request,
        "responseElements": None if call.failed else response,
        "readOnly": event == "ReceiveMessage",
        "resources": [{"accountId": branch.account, "type": "AWS::SQS::Queue", "ARN": arn}],
    }


def _other_call(branch: Branch, call: Call) -> dict[str, Any]:
    source, event = _OTHER_CALLS[call.kind]
    bucket = f"{_SERVICES[call.kind]}-documents-{branch.account}-{branch.region}"
    denied = {"errorCode": "AccessDenied", "errorMessage": "Access Denied"}
    return {
        "eventSource": source,
        "eventName": event,
        **(denied if call.failed else {}),
        "requestParameters": {
            "bucketName": bucket,
            "Host": f"{bucket}.s3.{branch.region}.amazonaws.com",
            "key": "documents/2026/11/10/%(group)s/%(message)s.json",
        },
        "responseElements": {"x-amz-server-side-encryption": "aws:kms"},
        "additionalEventData": {
            "SignatureVersion": "SigV4",
            "CipherSuite": "TLS_AES_128_GCM_SHA256",
            "bytesTransferredIn": 0,
            "AuthenticationMethod": "AuthHeader",
            "x-amz-id-2": "%(host)s%(digest)s",
            "bytesTransferredOut": 4096,
        },
        "readOnly": event != "PutObject",
        "resources": [{"type": "AWS::S3::Object", "ARN": f"arn:aws:s3:::{bucket}/documents"}],
    }


def _identity(branch: Branch, role: str) -> dict[str, Any]:
    role_id = f"AROA{sha256(role.encode()).hexdigest()[:17].upper()}"
    issuer = {
        "type": "Role",
        "principalId": role_id,
        "arn": f"arn:aws:iam::{branch.account}:role/service-role/{role}",
        "accountId": branch.account,
        "userName": role,
    }
    attributes = {"creationDate": "%(began)s", "mfaAuthenticated": "false"}
    return {
        "type": "AssumedRole",
        "principalId": f"{role_id}:%(instance)s",
        "arn": f"arn:aws:sts::{branch.account}:assumed-role/{role}/%(instance)s",
        "accountId": branch.account,
        "accessKeyId": "ASIA%(key)s",
        "sessionContext": {
            "sessionIssuer": issuer,
            "attributes": attributes,
            "ec2RoleDelivery": "2.0",
        },
    }
