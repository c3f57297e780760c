"""Mendq's errors by cause: a read failed, AWS refused, or a request is wrong.

Several modules have errors of their own besides these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from mendq.model.failed_call import RefusedBy, find_refusing_policy, make_canonical_error_code

# Error codes with which a retry may help. `is_transient_error` also looks at the HTTP status.
TRANSIENT_ERROR_CODES = frozenset(
    {
        *("InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable"),
        *("ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "RequestExpired"),
        *("UnrecognizedClientException", "TooManyRequestsException"),
        *("RequestThrottled", "SlowDown", "Throttling", "ThrottlingException"),
        *("LimitExceededException", "ProvisionedThroughputExceededException"),
        *("TransactionConflictException", "TransactionInProgressException"),
    }
)


class FactsUnavailable(Exception):
    """AWS could not be read. The read itself changed nothing."""


class QueueGone(FactsUnavailable):
    """The queue does not exist any more."""


class StepFailed(Exception):
    """A write to a queue failed, and may succeed later.

    It is possible that AWS carried the write out and only the answer was lost.
    """


class CaseStoreUnavailable(Exception):
    """The case store cannot be read or written. Mendq changes nothing without it."""


class CaseMoved(CaseStoreUnavailable):
    """Another run has changed the item since it was read. Nothing was recorded."""


class CaseStoreUnreadable(Exception):
    """An item of the case store has a form that Mendq does not write. A person must look at it."""


class QueueRefusesUs(Exception):
    """The queue's own policy denies Mendq access. Mendq then does not change the queue."""


class NotificationNotSent(Exception):
    """SNS did not accept a notification.

    The notification stays in the case store. A later run sends it, or drops it if its case has
    moved.
    """


class EventNotPut(NotificationNotSent):
    """People got the notification, but its event could not be put on the event bus yet."""


class ProbeNotSent(Exception):
    """The probe's call did not fail with the expected error, so no failed call is recorded."""


class RetryLater(Exception):
    """Mendq cannot act now for a reason that will pass. AWS must deliver the events again."""


class OwnerUnavailable(Exception):
    """The Lambda that must make a change could not be called.

    The case waits, and the Lambda is called again later.
    """


class CaseUnreadable(Exception):
    """A request to a Lambda is malformed, or names a queue of another account or region.

    The sender must correct the request.
    """


class EventUnreadable(Exception):
    """The event cannot be read, and will not be readable if it is delivered again.

    The event must be put aside for a person.
    """


@contextmanager
def translate_aws_errors(subject: str) -> Iterator[None]:
    """Turn AWS's errors of the `with` block into QueueRefusesUs or FactsUnavailable.

    The message of the new error begins with `subject`, which names the thing that was read.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and _is_refused_by_queue_policy(error):
            raise QueueRefusesUs(f"{subject}: {error}") from error
        raise FactsUnavailable(f"{subject}: {error}") from error


@contextmanager
def translate_queue_errors(subject: str, queue_arn: str) -> Iterator[None]:
    """Turn AWS's errors of the `with` block into QueueGone, QueueRefusesUs or FactsUnavailable.

    QueueGone means that the queue does not exist. `subject` names the thing that was read.
    """
    with translate_aws_errors(f"{subject} {queue_arn}"):
        try:
            yield
        except ClientError as error:
            if make_canonical_error_code(error_code_of(error)) == "NonExistentQueue":
                raise QueueGone(queue_arn) from error
            raise


def error_code_of(error: ClientError) -> str:
    """Return AWS's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_access_denied(error: Exception) -> bool:
    """Return True if AWS refused a call because access is denied.

    AWS's error codes for this contain "Denied".
    """
    return isinstance(error, ClientError) and "Denied" in error_code_of(error)


def is_transient_error(error: Exception) -> bool:
    """Return True if a retry may help after this error.

    Then it is also possible that AWS carried the request out and only the answer was lost. Return
    True for every error that is not a ClientError, such as a lost connection.
    """
    if not isinstance(error, ClientError):
        return True
    http_status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (
        http_status >= 500
        or http_status in (408, 429)
        or error_code_of(error) in TRANSIENT_ERROR_CODES
    )


def _is_refused_by_queue_policy(error: ClientError) -> bool:
    """Return True if the error says that the queue's own policy denies Mendq access."""
    error_message = str(error.response.get("Error", {}).get("Message", ""))
    return (
        find_refusing_policy(make_canonical_error_code(error_code_of(error)), error_message)
        is RefusedBy.RESOURCE_POLICY_DENIES
    )


def summarize_error_cause(error: Exception) -> str:
    """Return the cause of an error in two or three words, for logs."""
    if isinstance(error, FactsUnavailable | CaseStoreUnavailable):
        return "could not look"
    if isinstance(error, ClientError | BotoCoreError | StepFailed | NotificationNotSent):
        return "AWS refused"
    return "a fault"
