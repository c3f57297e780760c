"""Every known spelling of an SQS error code, brought to one canonical code.

How CloudTrail spells them is not documented, so every form that SQS, its SDKs and its older
protocol use is accepted:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

from dataclasses import dataclass

QUERY_PREFIX = "AWS.SimpleQueueService."
EXCEPTION_SUFFIX = "Exception"


@dataclass(frozen=True)
class ErrorCode:
    """A code of SQS; `other` is the JSON protocol's or KMS's name where it is another word.

    `label` is what it means by itself; where the message, the call or the queue can make it
    another symptom, that symptom's entry stands before this one in the catalogue.
    """

    canonical: str
    label: str
    other: str | None = None


CODES: tuple[ErrorCode, ...] = (
    ErrorCode("NonExistentQueue", "queue_missing", "QueueDoesNotExist"),
    ErrorCode("QueueDeletedRecently", "caller_bug"),
    ErrorCode("QueueAlreadyExists", "caller_bug", "QueueNameExists"),
    ErrorCode("OverLimit", "caller_bug"),
    ErrorCode("RequestThrottled", "empty_receives"),
    ErrorCode("Throttling", "empty_receives"),
    ErrorCode("KmsThrottled", "kms_throttled", "KMS.Throttling"),
    ErrorCode("KmsAccessDenied", "kms_denied", "KMS.AccessDenied"),
    ErrorCode("KmsDisabled", "kms_key_unusable", "KMS.Disabled"),
    ErrorCode("KmsInvalidState", "kms_key_unusable", "KMS.InvalidState"),
    ErrorCode("KmsNotFound", "kms_key_unusable", "KMS.NotFound"),
    ErrorCode("KmsOptInRequired", "kms_key_unusable", "KMS.OptInRequired"),
    ErrorCode("KmsInvalidKeyUsage", "kms_key_unusable", "KMS.InvalidKeyUsage"),
    ErrorCode("MessageNotInflight", "lease_expired"),
    ErrorCode("ReceiptHandleIsInvalid", "caller_bug"),
    ErrorCode("InvalidParameterValue", "caller_bug"),
    ErrorCode("MissingParameter", "caller_bug", "MissingRequiredParameter"),
    ErrorCode("BatchRequestTooLong", "caller_bug"),
    ErrorCode("TooManyEntriesInBatchRequest", "caller_bug"),
    ErrorCode("EmptyBatchRequest", "caller_bug"),
    ErrorCode("BatchEntryIdsNotDistinct", "caller_bug"),
    ErrorCode("InvalidBatchEntryId", "caller_bug"),
    ErrorCode("InvalidMessageContents", "caller_bug"),
    ErrorCode("InvalidIdFormat", "caller_bug"),
    ErrorCode("InvalidAttributeName", "caller_bug"),
    ErrorCode("InvalidAttributeValue", "caller_bug"),
    ErrorCode("InvalidAddress", "caller_bug"),
    ErrorCode("InvalidSecurity", "caller_bug"),
    ErrorCode("UnsupportedOperation", "caller_bug"),
    ErrorCode("PurgeQueueInProgress", "caller_bug"),
    ErrorCode("ResourceNotFound", "caller_bug"),
    ErrorCode("AccessDenied", "access_denied"),
    ErrorCode("VpceAccessDenied", "access_denied"),
)

KNOWN_CODES = frozenset(each.canonical for each in CODES)
_BY_OTHER_NAME = {each.other: each.canonical for each in CODES if each.other}


def codes_labelled(label: str) -> tuple[str, ...]:
    """The canonical codes that mean this by themselves."""
    return tuple(each.canonical for each in CODES if each.label == label)


def canonical(raw_error_code: str) -> str:
    """The canonical code of any spelling; a code that nobody listed keeps its bare name."""
    bare = raw_error_code.rpartition("#")[2]
    bare = bare.removeprefix(QUERY_PREFIX).removesuffix(EXCEPTION_SUFFIX)
    return _BY_OTHER_NAME.get(bare, bare)
