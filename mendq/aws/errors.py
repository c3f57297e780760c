"""Errors by blame: could not look, AWS refused. Anything else is our own bug."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from mendq.model.failed_call import RefusedBy, canonical_code, refusing_policy

# AWS may answer differently next time; everything else will not change by asking again.
PASSING = frozenset(
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
    """AWS did not let us look; nothing was changed."""


class QueueGone(FactsUnavailable):
    """There is no queue of that name any more."""


class StepFailed(Exception):
    """AWS did not take a write that it may take later; a fix is one write, so none was taken."""


class CaseStoreUnavailable(Exception):
    """The case store could not be read or written: without it nothing is changed."""


class CaseMoved(CaseStoreUnavailable):
    """Another run has moved the case meanwhile; nothing was written down."""


class CaseStoreUnreadable(Exception):
    """An item of the case store is none of our making; a person has to look at it."""


class QueueRefusesUs(Exception):
    """The queue's own policy keeps us out: that is its owner's word."""


class NotificationNotSent(Exception):
    """SNS did not take a notification; it stays in the case store and is sent when the events come
    again.
    """


class EventNotPut(NotificationNotSent):
    """People have the notification since just now; its event stays to be put."""


class ProbeNotSent(Exception):
    """SQS did not refuse the probe's call as it should; nothing is on its way."""


class ComeAgain(Exception):
    """The reason not to act passes by itself: the messages are to be delivered once more."""


class OwnerUnavailable(Exception):
    """The Lambda that owns a write could not be called; the case waits and it is called again."""


class CaseUnreadable(Exception):
    """A request about a case names none of ours: whoever sent it has a fault."""


class EventUnreadable(Exception):
    """No number of deliveries will make this event readable: it is to be parked."""


@contextmanager
def translate_aws_errors(at: str) -> Iterator[None]:
    """Turn AWS's errors into QueueRefusesUs or FactsUnavailable; both say what was looked at."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and _refused_by_queue_policy(error):
            raise QueueRefusesUs(f"{at}: {error}") from error
        raise FactsUnavailable(f"{at}: {error}") from error


@contextmanager
def translate_queue_errors(what: str, queue_arn: str) -> Iterator[None]:
    """Translate AWS errors as `translate_aws_errors` does. Raise QueueGone if there is no queue."""
    with translate_aws_errors(f"{what} {queue_arn}"):
        try:
            yield
        except ClientError as error:
            if canonical_code(code_of(error)) == "NonExistentQueue":
                raise QueueGone(queue_arn) from error
            raise


def code_of(error: ClientError) -> str:
    """AWS's code for an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_denied(error: Exception) -> bool:
    """True where AWS says that the caller lacks a right; each service spells it its own way."""
    return isinstance(error, ClientError) and "Denied" in code_of(error)


def is_passing(error: Exception) -> bool:
    """True where asking again may help; then the request may also have been carried out."""
    if not isinstance(error, ClientError):
        return True
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or status in (408, 429) or code_of(error) in PASSING


def _refused_by_queue_policy(error: ClientError) -> bool:
    """True where the queue's own policy keeps us out."""
    message = str(error.response.get("Error", {}).get("Message", ""))
    return (
        refusing_policy(canonical_code(code_of(error)), message) is RefusedBy.RESOURCE_POLICY_DENIES
    )


def blame(error: Exception) -> str:
    """Whose fault an error is, in a word; a request that names nothing of ours is its caller's."""
    if isinstance(error, FactsUnavailable | CaseStoreUnavailable):
        return "could not look"
    if isinstance(error, ClientError | BotoCoreError | StepFailed | NotificationNotSent):
        return "AWS refused"
    return "a fault"
