"""Every known spelling of an SQS error code, brought to one canonical code.

How CloudTrail spells them is not documented, so every form that SQS, its SDKs and its older
protocol use is accepted:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

QUERY_PREFIX = "AWS.SimpleQueueService."
EXCEPTION_SUFFIX = "Exception"

# (canonical code, the JSON protocol's name where it differs by more than prefix and suffix)
_CODES: tuple[tuple[str, str | None], ...] = (
    ("NonExistentQueue", "QueueDoesNotExist"),
    ("QueueDeletedRecently", None),
    ("QueueAlreadyExists", "QueueNameExists"),
    ("OverLimit", None),
    ("RequestThrottled", None),
    ("Throttling", None),
    ("KmsThrottled", "KMS.Throttling"),
    ("KmsAccessDenied", "KMS.AccessDenied"),
    ("KmsDisabled", "KMS.Disabled"),
    ("KmsInvalidState", "KMS.InvalidState"),
    ("KmsNotFound", "KMS.NotFound"),
    ("KmsOptInRequired", "KMS.OptInRequired"),
    ("KmsInvalidKeyUsage", "KMS.InvalidKeyUsage"),
    ("MessageNotInflight", None),
    ("ReceiptHandleIsInvalid", None),
    ("InvalidParameterValue", None),
    ("MissingParameter", "MissingRequiredParameter"),
    ("BatchRequestTooLong", None),
    ("TooManyEntriesInBatchRequest", None),
    ("EmptyBatchRequest", None),
    ("BatchEntryIdsNotDistinct", None),
    ("InvalidBatchEntryId", None),
    ("InvalidMessageContents", None),
    ("InvalidIdFormat", None),
    ("InvalidAttributeName", None),
    ("InvalidAttributeValue", None),
    ("InvalidAddress", None),
    ("InvalidSecurity", None),
    ("UnsupportedOperation", None),
    ("PurgeQueueInProgress", None),
    ("ResourceNotFound", None),
    ("AccessDenied", None),
    ("VpceAccessDenied", None),
)

KNOWN_CODES = frozenset(canonical for canonical, _ in _CODES)
_BY_OTHER_NAME = {other: canonical for canonical, other in _CODES if other}


def canonical(raw_error_code: str) -> str:
    """The canonical code of any spelling; a code that nobody listed keeps its bare name."""
    bare = raw_error_code.rpartition("#")[2]
    bare = bare.removeprefix(QUERY_PREFIX).removesuffix(EXCEPTION_SUFFIX)
    return _BY_OTHER_NAME.get(bare, bare)
