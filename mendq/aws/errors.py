"""Exceptions that several packages of Mendq use, and functions that recognize AWS's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from mendq.model.failed_call import RefusedBy, find_refusing_policy, make_canonical_error_code

# Error codes after which a retry may help. `is_transient_error` also looks at the HTTP status.
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


class ConsumersUnknown(FactsUnavailable):
    """A queue's Lambda consumers could not be read. A scan judged only what does not need them."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"consumers not judged: {reason}")


class QueueGone(FactsUnavailable):
    """The queue does not exist any more."""


class StepFailed(Exception):
    """A write to a queue failed. A retry may succeed.

    AWS may have carried out the write, if only its answer was lost.
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
    """SNS accepted the notification, but its event could not be put on the event bus yet."""


class ProbeNotSent(Exception):
    """The probe's call did not fail with the expected error, so heal will not see the probe."""


class RetryLater(Exception):
    """Mendq cannot act now, but can later. AWS must deliver the events again."""


class OwnerUnavailable(Exception):
    """The Lambda that must make a change could not be called.

    The case waits, and the Lambda is called again later.
    """


class CaseUnreadable(Exception):
    """A request to a Lambda is malformed, or names a queue of another account or region.

    The sender must correct the request.
    """


class EventUnreadable(Exception):
    """The event is malformed. Delivering it again does not help: a person must look at it."""


@contextmanager
def translate_aws_errors(subject: str) -> Iterator[None]:
    """Turn AWS's errors in the `with` block into QueueRefusesUs or FactsUnavailable.

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
    """Turn AWS's errors in the `with` block into QueueGone, QueueRefusesUs or FactsUnavailable.

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
    """Return AWS's error code; empty if the error has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_access_denied(error: Exception) -> bool:
    """Return True if AWS denied access: its error codes for this contain "Denied"."""
    return isinstance(error, ClientError) and "Denied" in error_code_of(error)


def is_transient_error(error: Exception) -> bool:
    """Return True if a retry may help after this error.

    This includes every error that is not a ClientError, such as a lost connection. AWS may have
    carried out the request, if only its answer was lost.
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
