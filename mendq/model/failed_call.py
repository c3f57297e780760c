"""A failed SQS call as CloudTrail records it: canonical error code, message, queue and
principal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mendq.model import queue

QUERY_PREFIX = "AWS.SimpleQueueService."
EXCEPTION_SUFFIX = "Exception"


# What a code of SQS means by itself; where the message, the call or the queue can make it another
# symptom, that symptom's entry stands before this one in the catalogue.
CODES: Mapping[str, tuple[str, ...]] = {
    "queue_missing": ("NonExistentQueue",),
    "empty_receives": ("RequestThrottled", "Throttling"),
    "kms_throttled": ("KmsThrottled",),
    "kms_denied": ("KmsAccessDenied",),
    "kms_key_unusable": (
        *("KmsDisabled", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired"),
        "KmsInvalidKeyUsage",
    ),
    "visibility_timeout_too_short": ("MessageNotInflight",),
    "access_denied": ("AccessDenied", "VpceAccessDenied"),
    "invalid_request": (
        *("QueueDeletedRecently", "QueueAlreadyExists", "OverLimit", "ReceiptHandleIsInvalid"),
        *("InvalidParameterValue", "MissingParameter", "BatchRequestTooLong"),
        *("TooManyEntriesInBatchRequest", "EmptyBatchRequest", "BatchEntryIdsNotDistinct"),
        *("InvalidBatchEntryId", "InvalidMessageContents", "InvalidIdFormat"),
        *("InvalidAttributeName", "InvalidAttributeValue", "InvalidAddress", "InvalidSecurity"),
        *("UnsupportedOperation", "PurgeQueueInProgress", "ResourceNotFound"),
    ),
}
KNOWN_CODES = frozenset(code for codes in CODES.values() for code in codes)
# The JSON protocol's or KMS's name where it is another word.
_OTHER_NAMES = {
    "QueueDoesNotExist": "NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "MissingRequiredParameter": "MissingParameter",
    "KMS.Throttling": "KmsThrottled",
    **{f"KMS.{code[3:]}": code for code in KNOWN_CODES if code.startswith("Kms")},
}


def canonical_code(raw_error_code: str) -> str:
    """The canonical code of any spelling; a code that nobody listed keeps its bare name."""
    bare = raw_error_code.rpartition("#")[2]
    bare = bare.removeprefix(QUERY_PREFIX).removesuffix(EXCEPTION_SUFFIX)
    return _OTHER_NAMES.get(bare, bare)


# CloudTrail cuts a message here, and what is left at the end may be the caller's text.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-record-contents.html
_CUT_AT_BYTES = 1_024

_VALUE_FOR = re.compile(
    r" for parameter ([A-Za-z]{1,40}) is invalid\. Reason: ([^\x00-\x1f]{1,400})\Z"
)

# These two hold nothing of the caller's, so the whole message is SQS's word.
_SHORTER_THAN = re.compile(
    r"One or more parameters are invalid\. Reason: "
    r"Message must be shorter than ([1-9][0-9]{0,8}) bytes\."
)

# SQS's reason for refusing a receipt handle whose message was deleted.
OWN_DELETE = "Message does not exist or is not available for visibility timeout change."
NO_DEDUPLICATION_ID = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


def may_be_cut(error_message: str) -> bool:
    """Whether CloudTrail may have cut it: then its end says nothing."""
    return len(error_message.encode()) >= _CUT_AT_BYTES


def refusal_reason(error_message: str, parameter: str) -> str | None:
    """SQS's reason for refusing `parameter`; None where the message has another form or is cut."""
    if not error_message.startswith("Value ") or may_be_cut(error_message):
        return None
    start = error_message.rfind(" for parameter ")
    found = _VALUE_FOR.match(error_message, start) if start >= 0 else None
    if not found or found.group(1) != parameter or "Reason: " in found.group(2):
        return None
    return found.group(2)


def size_limit_bytes(error_message: str) -> int | None:
    """The limit that a message was too long for; None where SQS says something else."""
    found = _SHORTER_THAN.fullmatch(error_message)
    return int(found.group(1)) if found else None


def asks_for_deduplication_id(error_message: str) -> bool:
    """Whether SQS could not tell a FIFO message from its duplicate."""
    return error_message == NO_DEDUPLICATION_ID


# No part that a caller fills in may hold a space, so no caller's sentence is taken for IAM's. Newer
# messages end with the policy's ARN:
# https://aws.amazon.com/blogs/security/enhanced-access-denied-error-messages-with-policy-arns/
_REFUSAL = re.compile(
    r"User: (?P<caller>\S{1,512}) is not authorized to perform: \S{1,100}"
    r"(?: on resource: \S{1,256})?"
    r"(?: because no (?P<silent>[A-Za-z -]{1,60}) allows the \S{1,100} action"
    r"| with an explicit deny in (?:an?|the) (?P<denies>[A-Za-z -]{1,100}))"
    r"(?:: arn:\S{1,400}|\.)?"
)

_THROUGH = " transitively through a "
_DENIED = "AccessDenied"


class RefusedBy(StrEnum):
    """The policies that IAM names, and whether they deny or only do not allow where that matters.

    An organization's, a boundary, a session's and an endpoint's policy bound what others grant.
    """

    RESOURCE_POLICY_DENIES = "an explicit deny in the queue's policy"
    NO_RESOURCE_POLICY = "no statement in the queue's policy"
    IDENTITY_POLICY_DENIES = "an explicit deny in the caller's identity policy"
    IDENTITY_POLICY = "the caller's identity policy"
    ABOVE_THE_ACCOUNT = "a service or resource control policy"
    PERMISSIONS_BOUNDARY = "a permissions boundary"
    SESSION_POLICY = "a session policy"
    VPC_ENDPOINT_POLICY = "a VPC endpoint policy"
    NOT_SAID = "IAM does not say which"


# Where it denies, and where it only does not allow.
_NAMED = {
    "resource-based policy": (RefusedBy.RESOURCE_POLICY_DENIES, RefusedBy.NO_RESOURCE_POLICY),
    "identity-based policy": (RefusedBy.IDENTITY_POLICY_DENIES, RefusedBy.IDENTITY_POLICY),
    "service control policy": (RefusedBy.ABOVE_THE_ACCOUNT,) * 2,
    "resource control policy": (RefusedBy.ABOVE_THE_ACCOUNT,) * 2,
    "permissions boundary": (RefusedBy.PERMISSIONS_BOUNDARY,) * 2,
    "session policy": (RefusedBy.SESSION_POLICY,) * 2,
    # So spelled in AWS's own example.
    "sessions policy": (RefusedBy.SESSION_POLICY,) * 2,
    "VPC endpoint policy": (RefusedBy.VPC_ENDPOINT_POLICY,) * 2,
}


def refusing_policy(error_code: str, error_message: str) -> RefusedBy | None:
    """The policy behind an access denial (canonical code); None where the call is none."""
    if error_code == "VpceAccessDenied":
        return RefusedBy.VPC_ENDPOINT_POLICY
    if error_code != _DENIED:
        return None
    found = _refusal(error_message)
    if found is None:
        return RefusedBy.NOT_SAID
    name = found["silent"] or found["denies"].rpartition(_THROUGH)[2]
    return _NAMED.get(name, (RefusedBy.NOT_SAID,) * 2)[bool(found["silent"])]


def _refusal(error_message: str) -> re.Match[str] | None:
    return None if may_be_cut(error_message) else _REFUSAL.fullmatch(error_message)


# CloudTrail's own bound on one event.
MAXIMUM_BYTES = 262_144
MAXIMUM_TEXT = 2_048
MAXIMUM_CODE = 128
MAXIMUM_PRINCIPAL = 256
# As much of it as names the SDK and, on Lambda, where it ran.
MAXIMUM_USER_AGENT = 200
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
    user_agent: str = ""
    requested_visibility_seconds: int | None = None

    @property
    def may_be_a_race(self) -> bool:
        """True if the call itself proves nothing, but the queue's metrics may.

        It extends a message that is gone from a standard queue. The consumer's own delete may have
        been faster, or that of another consumer that received the message again.
        """
        is_gone = refusal_reason(self.error_message, "ReceiptHandle") == OWN_DELETE
        is_invalid = self.error_code == "InvalidParameterValue"
        return is_gone and is_invalid and not queue.on_fifo(self.queue_arn)


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
    identity = mapping_in(detail.get("userIdentity"))
    session = mapping_in(identity.get("sessionContext"))
    region = _text(detail, "awsRegion", 32) or _text(envelope, "region", 32)
    queue_arn = _queue_arn(detail, region)
    error_code = canonical_code(raw_error_code)
    arn = _text(identity, "arn") or _stranger(detail, identity, error_code)
    principal_arn = encodable(principal_of(identity, arn)[:MAXIMUM_PRINCIPAL])
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
        session_created_at=_time(mapping_in(session.get("attributes")).get("creationDate")),
        request_id=_text(detail, "requestID", 128),
        source_ip=_text(detail, "sourceIPAddress", 128),
        user_agent=_text(detail, "userAgent", MAXIMUM_USER_AGENT),
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
        arn = queue.arn_of(mapping_in(each).get("ARN"))
        if arn:
            return arn
    parameters = mapping_in(detail.get("requestParameters"))
    # GetQueueUrl may ask for a queue of another account.
    owner = parameters.get("queueOwnerAWSAccountId") or detail.get("recipientAccountId")
    return (
        queue.arn_of_url(parameters.get("queueUrl"), region)
        or queue.arn_of_name(parameters.get("queueName"), region, f"{owner}")
        or queue.arn_refused_in(_text(detail, "errorMessage"))
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
    refusal = _refusal(_text(detail, "errorMessage")) if error_code == _DENIED else None
    arn = refusal["caller"] if refusal else ""
    account = "".join(arn.split(":")[4:5])
    is_its = account and account == _text(identity, "accountId", 12)
    return arn if is_its and account != _text(detail, "recipientAccountId", 12) else ""


def principal_of(identity: Record, arn: str) -> str:
    """The role, not its session: the session's name is the caller's text, in an id as in an ARN."""
    session = mapping_in(identity.get("sessionContext"))
    named = _text(mapping_in(session.get("sessionIssuer")), "arn") or arn
    whose = role_arn(named) or _text(identity, "invokedBy")
    return whose or _text(identity, "principalId").partition(":")[0]


def role_arn(arn: str) -> str:
    """The ARN that IAM has for a role, whether `arn` is that or a session's; any other as it is.

    But for a federated user's, whose name is the caller's text: that is left out.

    AWS's one published record of an SQS data event spells a session's issuer as an assumed role,
    records of management events as IAM does. A session's ARN has lost its role's path.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
    """
    head, of_a_session, name = arn.partition(":assumed-role/")
    if not of_a_session:
        before, federated, _ = arn.partition(":federated-user/")
        return before + federated
    return f"{head.replace(':sts:', ':iam:')}:role/{name.partition('/')[0]}"


def _requested_visibility(detail: Record) -> int | None:
    value = mapping_in(detail.get("requestParameters")).get("visibilityTimeout")
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= 43_200 else None


def mapping_in(value: object) -> Record:
    """`value`, empty where it is none."""
    return value if isinstance(value, Mapping) else {}


def _text(mapping: Record, key: str, maximum: int = MAXIMUM_TEXT) -> str:
    value = mapping.get(key)
    return encodable(value[:maximum]) if isinstance(value, str) else ""


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced: JSON can spell them and no file or table takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _time(value: object) -> datetime | None:
    """Both `Z` and `+0000` occur in records; a time of no zone is nobody's."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    with suppress(ValueError):
        at = datetime.fromisoformat(value)
        return None if at.tzinfo is None else at.astimezone(UTC)
    return None
