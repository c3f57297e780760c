"""Read a failed call from a CloudTrail record: canonical error code, queue and caller.

`read` reads failed SQS calls, and `read_refused_mapping` one kind of failed Lambda call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mendq.model import queue

QUERY_PROTOCOL_CODE_PREFIX = "AWS.SimpleQueueService."
JSON_PROTOCOL_CODE_SUFFIX = "Exception"


# A code of Mendq's own, because Lambda's InvalidParameterValueException has many meanings.
REFUSED_MAPPING_CODE = "QueueTimeoutBelowFunctionTimeout"

# The error codes by the symptom that they show by default. With certain error messages, calls or
# queues, a code shows another symptom, whose entry comes earlier in the catalogue.
ERROR_CODES_BY_SYMPTOM: Mapping[str, tuple[str, ...]] = {
    "queue_missing": ("NonExistentQueue",),
    "empty_receives": ("RequestThrottled", "Throttling"),
    "kms_throttled": ("KmsThrottled",),
    "kms_denied": ("KmsAccessDenied",),
    "kms_key_unusable": (
        *("KmsDisabled", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired"),
        "KmsInvalidKeyUsage",
    ),
    "visibility_timeout_too_short": ("MessageNotInflight",),
    "mapping_refused": (REFUSED_MAPPING_CODE,),
    # VpceAccessDenied is not in the list. CloudTrail reports it only in network activity events,
    # which AWS redacts, and it is not known if they name the queue.
    # https://docs.aws.amazon.com/awscloudtrail/latest/userguide/logging-network-events-with-cloudtrail.html
    "access_denied": ("AccessDenied",),
    # AWS does not document which of these CloudTrail records.
    "credentials_invalid": (
        *("ExpiredToken", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClient"),
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignature"),
        *("IncompleteSignature", "MissingAuthenticationToken"),
    ),
    "invalid_request": (
        *("QueueDeletedRecently", "QueueAlreadyExists", "OverLimit", "ReceiptHandleIsInvalid"),
        *("InvalidParameterValue", "MissingParameter", "BatchRequestTooLong"),
        *("TooManyEntriesInBatchRequest", "EmptyBatchRequest", "BatchEntryIdsNotDistinct"),
        *("InvalidBatchEntryId", "InvalidMessageContents", "InvalidIdFormat"),
        *("InvalidAttributeName", "InvalidAttributeValue", "InvalidAddress", "InvalidSecurity"),
        *("UnsupportedOperation", "PurgeQueueInProgress", "ResourceNotFound"),
    ),
}
KNOWN_ERROR_CODES = frozenset(code for codes in ERROR_CODES_BY_SYMPTOM.values() for code in codes)
# Names that AWS's JSON protocol or KMS uses in place of the canonical names.
_CANONICAL_CODE_BY_NAME = {
    "QueueDoesNotExist": "NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "MissingRequiredParameter": "MissingParameter",
    "KMS.Throttling": "KmsThrottled",
    **{f"KMS.{code[3:]}": code for code in KNOWN_ERROR_CODES if code.startswith("Kms")},
}


def make_canonical_error_code(raw_error_code: str) -> str:
    """Return Mendq's spelling of an error code that AWS's protocols spell in several ways.

    The protocols add prefixes and suffixes, or use other names. From an unknown code, only the
    prefix and suffix are removed.
    """
    code_without_affixes = raw_error_code.rpartition("#")[2]
    code_without_affixes = code_without_affixes.removeprefix(
        QUERY_PROTOCOL_CODE_PREFIX
    ).removesuffix(JSON_PROTOCOL_CODE_SUFFIX)
    return _CANONICAL_CODE_BY_NAME.get(code_without_affixes, code_without_affixes)


# CloudTrail cuts a message at this length. A cut message may end with the caller's text.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-record-contents.html
_CLOUDTRAIL_MESSAGE_LIMIT_BYTES = 1_024

_REFUSED_VALUE_PATTERN = re.compile(
    r" for parameter ([A-Za-z]{1,40}) is invalid\. Reason: ([^\x00-\x1f]{1,400})\Z"
)

# This message and NO_DEDUPLICATION_ID_MESSAGE contain no text of the caller, so they are compared
# as a whole.
_SIZE_LIMIT_PATTERN = re.compile(
    r"One or more parameters are invalid\. Reason: "
    r"Message must be shorter than ([1-9][0-9]{0,8}) bytes\."
)

# SQS's reasons for refusing a receipt handle: its visibility timeout has ended, or its message was
# deleted.
EXPIRED_HANDLE_REASON = "The receipt handle has expired."
DELETED_MESSAGE_REASON = "Message does not exist or is not available for visibility timeout change."
NO_DEDUPLICATION_ID_MESSAGE = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


def may_error_message_be_cut(error_message: str) -> bool:
    """Return True if CloudTrail may have cut the message at the end."""
    return len(error_message.encode()) >= _CLOUDTRAIL_MESSAGE_LIMIT_BYTES


def find_parameter_refusal_reason(error_message: str, parameter: str) -> str | None:
    """Return SQS's reason for refusing the value of `parameter`, from its error message.

    Return None if the message is about something else, or if CloudTrail may have cut it.
    """
    if not error_message.startswith("Value ") or may_error_message_be_cut(error_message):
        return None
    parameter_start = error_message.rfind(" for parameter ")
    if parameter_start < 0:
        return None
    match = _REFUSED_VALUE_PATTERN.match(error_message, parameter_start)
    if not match or match.group(1) != parameter or "Reason: " in match.group(2):
        return None
    return match.group(2)


def is_expired_handle_message(error_message: str) -> bool:
    """Return True if SQS refused a receipt handle because it has expired."""
    return find_parameter_refusal_reason(error_message, "ReceiptHandle") == EXPIRED_HANDLE_REASON


def find_size_limit_bytes(error_message: str) -> int | None:
    """Return the queue's limit in bytes if SQS refused a message that exceeded it, else None."""
    match = _SIZE_LIMIT_PATTERN.fullmatch(error_message)
    return int(match.group(1)) if match else None


def is_missing_deduplication_id_message(error_message: str) -> bool:
    """Return True if SQS refused a FIFO message because it has no deduplication id."""
    return error_message == NO_DEDUPLICATION_ID_MESSAGE


# The parts that a caller can choose must not contain a space, so that Mendq never mistakes a
# caller's sentence for IAM's. Newer messages end with the policy's ARN:
# https://aws.amazon.com/blogs/security/enhanced-access-denied-error-messages-with-policy-arns/
_ACCESS_REFUSAL_PATTERN = re.compile(
    r"User: (?P<caller>\S{1,512}) is not authorized to perform: \S{1,100}"
    r"(?: on resource: \S{1,256})?"
    r"(?: because no (?P<silent>[A-Za-z -]{1,60}) allows the \S{1,100} action"
    r"| with an explicit deny in (?:an?|the) (?P<denies>[A-Za-z -]{1,100}))"
    r"(?:: arn:\S{1,400}|\.)?"
)

_TRANSITIVE_DENY_MARKER = " transitively through a "
_ACCESS_DENIED = "AccessDenied"


class RefusedBy(StrEnum):
    """The kind of policy that refused a call. Each value is a part of a sentence for people.

    Queue policies and identity policies have two members each, for an explicit deny and for a
    missing allow, because people repair these differently. Other kinds of policy have one member,
    because they can only limit what queue policies and identity policies allow.
    """

    RESOURCE_POLICY_DENIES = "an explicit deny in the queue's policy"
    NO_RESOURCE_POLICY = "no statement in the queue's policy"
    IDENTITY_POLICY_DENIES = "an explicit deny in the caller's identity policy"
    IDENTITY_POLICY = "the caller's identity policy"
    ORGANIZATION_POLICY = "a service or resource control policy"
    PERMISSIONS_BOUNDARY = "a permissions boundary"
    SESSION_POLICY = "a session policy"
    VPC_ENDPOINT_POLICY = "a VPC endpoint policy"
    POLICY_NOT_NAMED = "IAM does not say which"


# The members for an explicit deny and for a missing allow, by the policy's name in IAM's message.
_POLICIES_BY_IAM_NAME = {
    "resource-based policy": (RefusedBy.RESOURCE_POLICY_DENIES, RefusedBy.NO_RESOURCE_POLICY),
    "identity-based policy": (RefusedBy.IDENTITY_POLICY_DENIES, RefusedBy.IDENTITY_POLICY),
    "service control policy": (RefusedBy.ORGANIZATION_POLICY, RefusedBy.ORGANIZATION_POLICY),
    "resource control policy": (RefusedBy.ORGANIZATION_POLICY, RefusedBy.ORGANIZATION_POLICY),
    "permissions boundary": (RefusedBy.PERMISSIONS_BOUNDARY, RefusedBy.PERMISSIONS_BOUNDARY),
    "session policy": (RefusedBy.SESSION_POLICY, RefusedBy.SESSION_POLICY),
    # AWS's own example spells it this way.
    "sessions policy": (RefusedBy.SESSION_POLICY, RefusedBy.SESSION_POLICY),
    "VPC endpoint policy": (RefusedBy.VPC_ENDPOINT_POLICY, RefusedBy.VPC_ENDPOINT_POLICY),
}


_UNKNOWN_POLICIES = (RefusedBy.POLICY_NOT_NAMED, RefusedBy.POLICY_NOT_NAMED)


def find_refusing_policy(error_code: str, error_message: str) -> RefusedBy | None:
    """Return the policy that refused a call; None if the error is not about missing access.

    Args:
        error_code: The canonical error code.
        error_message: AWS's error message. If it names no policy, return
            RefusedBy.POLICY_NOT_NAMED.
    """
    if error_code != _ACCESS_DENIED:
        return None
    refusal = _parse_access_refusal(error_message)
    if refusal is None:
        return RefusedBy.POLICY_NOT_NAMED
    if refusal["silent"]:
        _, policy_without_allow = _POLICIES_BY_IAM_NAME.get(refusal["silent"], _UNKNOWN_POLICIES)
        return policy_without_allow
    denying_policy, _ = _POLICIES_BY_IAM_NAME.get(
        refusal["denies"].rpartition(_TRANSITIVE_DENY_MARKER)[2], _UNKNOWN_POLICIES
    )
    return denying_policy


def _parse_access_refusal(error_message: str) -> re.Match[str] | None:
    """Return the parts of IAM's error message about a refused call.

    Return None if the message has another form, or if CloudTrail may have cut it.
    """
    return (
        None
        if may_error_message_be_cut(error_message)
        else _ACCESS_REFUSAL_PATTERN.fullmatch(error_message)
    )


# CloudTrail's limit for one event.
MAXIMUM_EVENT_BYTES = 262_144
MAXIMUM_RECORD_TEXT_LENGTH = 2_048
MAXIMUM_ERROR_CODE_LENGTH = 128
MAXIMUM_PRINCIPAL_LENGTH = 256
# Long enough for the SDK's name and, on Lambda, the runtime.
MAXIMUM_USER_AGENT_LENGTH = 200
CloudTrailRecord = Mapping[str, Any]


@dataclass(frozen=True)
class FailedCall:
    """One SQS call that failed.

    Attributes:
        event_id: CloudTrail's id of the event.
        event_time: When the call was made, in UTC.
        event_name: The call, such as `SendMessage`.
        error_code: The canonical error code.
        raw_error_code: The error code as AWS spelled it.
        error_message: AWS's message; empty if there is none. It may contain the caller's text.
        queue_arn: The queue; None if the call names no valid queue.
        account: The account whose trail recorded the call, which normally owns the queue. If the
            record does not name it, the queue's account, or else the caller's.
        region: The region of the call.
        principal_arn: The ARN of the caller's role or user, or else the AWS service or the
            principal id. Empty if the record names no caller.
        session_created_at: When the caller's session began; None if the record has no such time.
        request_id: AWS's id of the request.
        source_ip: The caller's address; empty if the record names none.
        user_agent: The caller's program. The caller chose this text.
        requested_visibility_seconds: The visibility timeout that the call requested; None if it
            requested none.
        refused_function_seconds: The timeout in seconds of the Lambda function for which an event
            source mapping was refused; None for a call to SQS.
    """

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
    refused_function_seconds: int | None = None

    @property
    def may_be_a_race(self) -> bool:
        """True if the call failed because the message was already deleted, which may be harmless.

        The call tried to change the visibility timeout of a message in a standard queue. There is
        no fault if the same consumer had deleted the message. There is a fault if another consumer
        had received the message again and deleted it. Only the queue's metrics can show which.
        """
        is_message_deleted = (
            find_parameter_refusal_reason(self.error_message, "ReceiptHandle")
            == DELETED_MESSAGE_REASON
        )
        is_invalid_parameter = self.error_code == "InvalidParameterValue"
        return is_message_deleted and is_invalid_parameter and not queue.is_fifo_arn(self.queue_arn)

    @property
    def refused_by(self) -> RefusedBy | None:
        """The policy that refused the call; None if the error is not about missing access."""
        return find_refusing_policy(self.error_code, self.error_message)


@dataclass(frozen=True)
class UnreadableRecord:
    """The reason why a record could not be read as a failed SQS call.

    The reasons `not_failed` and `not_sqs` are normal. All other reasons mean a faulty record.
    """

    reason: str


def read(record: object) -> FailedCall | UnreadableRecord:
    """Return the failed call in a CloudTrail record, or the reason why it could not be read.

    `record` is a CloudTrail record or the EventBridge event around it, as a mapping or as JSON.
    Never raise an error: for any other input, return an UnreadableRecord.
    """
    try:
        return _parse_record(record)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return UnreadableRecord("malformed")


def _parse_record(record: object) -> FailedCall | UnreadableRecord:
    envelope_and_detail = _split_envelope(record)
    if isinstance(envelope_and_detail, UnreadableRecord):
        return envelope_and_detail
    envelope, detail = envelope_and_detail
    if detail.get("eventSource") != "sqs.amazonaws.com":
        return UnreadableRecord("not_sqs")
    raw_error_code = detail.get("errorCode")
    if raw_error_code in (None, ""):
        return UnreadableRecord("not_failed")
    if not isinstance(raw_error_code, str):
        return UnreadableRecord("error_code_type")
    event_time = _read_time(detail.get("eventTime"))
    if (
        event_time is None
        or not _read_text(detail, "eventID", 128)
        or not _read_text(detail, "eventName")
    ):
        return UnreadableRecord("without_id_name_or_time")
    return _make_failed_call(
        envelope,
        detail,
        replace_lone_surrogates(raw_error_code[:MAXIMUM_ERROR_CODE_LENGTH]),
        event_time,
    )


# Lambda's message for a mapping whose queue has a shorter visibility timeout than the function. It
# was seen in public reports; AWS does not document it. It contains no text of the caller.
_REFUSED_MAPPING_PATTERN = re.compile(
    r"(?:Invalid request provided: )?Queue visibility timeout: (?P<queue>[0-9]{1,5}) seconds "
    r"is less than Function timeout: (?P<function>[0-9]{1,5}) seconds"
)
MAPPING_CALLS = ("CreateEventSourceMapping", "UpdateEventSourceMapping")
# CloudTrail adds the date of Lambda's API version to the name, such as
# CreateEventSourceMapping20150331.
_API_VERSION_PATTERN = re.compile(r"20[0-9]{6}(?:v[0-9])?\Z")


def read_refused_mapping(record: object) -> FailedCall | None:
    """Return the failed call if Lambda refused an event source mapping because of two timeouts.

    Lambda creates no mapping, and changes none, whose queue has a visibility timeout below the
    function's timeout. CloudTrail records the failed call as a management event of Lambda. The
    result's error code is QueueTimeoutBelowFunctionTimeout, and its call has no API version.

    Args:
        record: A CloudTrail record or the EventBridge event around it, as a mapping or as JSON.

    Returns:
        The call. None for every other record, and if the record cannot be read.
    """
    try:
        return _parse_refused_mapping(record)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


def _parse_refused_mapping(record: object) -> FailedCall | None:
    envelope_and_detail = _split_envelope(record)
    if isinstance(envelope_and_detail, UnreadableRecord):
        return None
    envelope, detail = envelope_and_detail
    event_name = _API_VERSION_PATTERN.sub("", _read_text(detail, "eventName", 128))
    event_time = _read_time(detail.get("eventTime"))
    raw_error_code = _read_text(detail, "errorCode", MAXIMUM_ERROR_CODE_LENGTH)
    message_match = _REFUSED_MAPPING_PATTERN.match(_read_text(detail, "errorMessage"))
    if (
        detail.get("eventSource") != "lambda.amazonaws.com"
        or event_name not in MAPPING_CALLS
        or make_canonical_error_code(raw_error_code) != "InvalidParameterValue"
        or message_match is None
        or event_time is None
        or not _read_text(detail, "eventID", 128)
    ):
        return None
    request_parameters = mapping_or_empty(detail.get("requestParameters"))
    return replace(
        _make_failed_call(envelope, detail, raw_error_code, event_time),
        event_name=event_name,
        error_code=REFUSED_MAPPING_CODE,
        queue_arn=queue.queue_arn_or_none(request_parameters.get("eventSourceArn")),
        refused_function_seconds=int(message_match["function"]),
    )


def _make_failed_call(
    envelope: CloudTrailRecord, detail: CloudTrailRecord, raw_error_code: str, event_time: datetime
) -> FailedCall:
    identity = mapping_or_empty(detail.get("userIdentity"))
    session_context = mapping_or_empty(identity.get("sessionContext"))
    region = _read_text(detail, "awsRegion", 32) or _read_text(envelope, "region", 32)
    queue_arn = _find_queue_arn(detail, region)
    error_code = make_canonical_error_code(raw_error_code)
    caller_arn = _read_text(identity, "arn") or _find_caller_in_refusal(
        detail, identity, error_code
    )
    principal_arn = replace_lone_surrogates(
        find_principal(identity, caller_arn)[:MAXIMUM_PRINCIPAL_LENGTH]
    )
    return FailedCall(
        event_id=_read_text(detail, "eventID", 128),
        event_time=event_time,
        event_name=_read_text(detail, "eventName", 128),
        error_code=error_code,
        raw_error_code=raw_error_code,
        error_message=_read_text(detail, "errorMessage"),
        queue_arn=queue_arn,
        account=_find_account(envelope, detail, identity, queue_arn),
        region=region,
        principal_arn=principal_arn,
        session_created_at=_read_time(
            mapping_or_empty(session_context.get("attributes")).get("creationDate")
        ),
        request_id=_read_text(detail, "requestID", 128),
        source_ip=_read_text(detail, "sourceIPAddress", 128),
        user_agent=_read_text(detail, "userAgent", MAXIMUM_USER_AGENT_LENGTH),
        requested_visibility_seconds=_read_requested_visibility(detail),
    )


def _split_envelope(record: object) -> tuple[CloudTrailRecord, CloudTrailRecord] | UnreadableRecord:
    """Return the EventBridge event (the envelope) and the CloudTrail record in it.

    The envelope is empty if `record` is the CloudTrail record itself. Return an UnreadableRecord if
    `record` is too large, or is not a CloudTrail record.
    """
    if isinstance(record, bytes | bytearray | str):
        if len(record) > MAXIMUM_EVENT_BYTES:
            return UnreadableRecord("too_large")
        record = json.loads(record)
    if not isinstance(record, Mapping):
        return UnreadableRecord("not_a_record")
    if "detail" not in record or "eventSource" in record:
        return {}, record
    detail = record["detail"]
    return (record, detail) if isinstance(detail, Mapping) else UnreadableRecord("not_a_record")


def _find_queue_arn(detail: CloudTrailRecord, region: str) -> str | None:
    """Return the ARN of the call's queue; None if the record names no queue.

    The ARN comes from the record's resources, or else from the queue's URL or name in the request,
    or else from IAM's error message.
    """
    resources = detail.get("resources")
    for resource in resources if isinstance(resources, list) else []:
        arn = queue.queue_arn_or_none(mapping_or_empty(resource).get("ARN"))
        if arn:
            return arn
    request_parameters = mapping_or_empty(detail.get("requestParameters"))
    # GetQueueUrl may name a queue of another account.
    owner_account = request_parameters.get("queueOwnerAWSAccountId") or detail.get(
        "recipientAccountId"
    )
    return (
        queue.arn_of_url(request_parameters.get("queueUrl"), region)
        or queue.arn_of_name(request_parameters.get("queueName"), region, f"{owner_account}")
        or queue.find_refused_arn(_read_text(detail, "errorMessage"))
    )


def _find_account(
    envelope: CloudTrailRecord,
    detail: CloudTrailRecord,
    identity: CloudTrailRecord,
    queue_arn: str | None,
) -> str:
    return (
        _read_text(detail, "recipientAccountId", 12)
        or _read_text(envelope, "account", 12)
        or (queue_arn or "::::").split(":")[4]
        or _read_text(identity, "accountId", 12)
    )


def _find_caller_in_refusal(
    detail: CloudTrailRecord, identity: CloudTrailRecord, error_code: str
) -> str:
    """Return the caller's ARN from IAM's error message, if the caller is of another account.

    CloudTrail may record no ARN for such a caller. Return an empty text for any other caller.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html
    """
    refusal = (
        _parse_access_refusal(_read_text(detail, "errorMessage"))
        if error_code == _ACCESS_DENIED
        else None
    )
    if refusal is None:
        return ""
    caller_arn = refusal["caller"]
    caller_account = "".join(caller_arn.split(":")[4:5])
    is_account_of_identity = caller_account and caller_account == _read_text(
        identity, "accountId", 12
    )
    is_caller_of_another_account = caller_account != _read_text(detail, "recipientAccountId", 12)
    return caller_arn if is_account_of_identity and is_caller_of_another_account else ""


def find_principal(identity: CloudTrailRecord, caller_arn: str) -> str:
    """Return the ARN of the caller's role or user.

    If there is none, return the AWS service that called, or else the principal id. A session's name
    is left out, because the caller chose that text.

    Args:
        identity: The element `userIdentity` of the CloudTrail record.
        caller_arn: The caller's ARN; empty if it is not known.
    """
    session_context = mapping_or_empty(identity.get("sessionContext"))
    issuer_arn = (
        _read_text(mapping_or_empty(session_context.get("sessionIssuer")), "arn") or caller_arn
    )
    role_or_service = role_arn(issuer_arn) or _read_text(identity, "invokedBy")
    return role_or_service or _read_text(identity, "principalId").partition(":")[0]


def role_arn(arn: str) -> str:
    """Return the role's IAM ARN if `arn` is the ARN of a role's session.

    The result lacks the role's path, because a session's ARN does not contain it. From the ARN of a
    federated user, the user's name is removed, because the caller chose that text. Any other ARN is
    returned unchanged.

    This gives a role one spelling: AWS's only published record of an SQS data event has the ARN of
    the role's session, but records of management events have the role's IAM ARN.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
    """
    arn_before_role, session_marker, role_and_session_name = arn.partition(":assumed-role/")
    if not session_marker:
        arn_start, federated_marker, _ = arn.partition(":federated-user/")
        return arn_start + federated_marker
    arn_start = arn_before_role.replace(":sts:", ":iam:")
    return f"{arn_start}:role/{role_and_session_name.partition('/')[0]}"


def _read_requested_visibility(detail: CloudTrailRecord) -> int | None:
    requested_seconds = mapping_or_empty(detail.get("requestParameters")).get("visibilityTimeout")
    if isinstance(requested_seconds, bool) or not isinstance(requested_seconds, int):
        return None
    return requested_seconds if 0 <= requested_seconds <= 43_200 else None


def mapping_or_empty(value: object) -> CloudTrailRecord:
    """Return `value` if it is a mapping, otherwise an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def _read_text(
    mapping: CloudTrailRecord, key: str, maximum_length: int = MAXIMUM_RECORD_TEXT_LENGTH
) -> str:
    text = mapping.get(key)
    return replace_lone_surrogates(text[:maximum_length]) if isinstance(text, str) else ""


def replace_lone_surrogates(text: str) -> str:
    """Return `text` with `?` in place of each lone surrogate, so that UTF-8 can encode it.

    JSON can contain lone surrogates (halves of a character), but files and tables cannot.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _read_time(value: object) -> datetime | None:
    """Return a time in UTC; None if `value` is unreadable or has no time zone.

    CloudTrail's records spell UTC as `Z` or `+0000`.
    """
    if not isinstance(value, str) or len(value) > 40:
        return None
    with suppress(ValueError):
        time = datetime.fromisoformat(value)
        return None if time.tzinfo is None else time.astimezone(UTC)
    return None
