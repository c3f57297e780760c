"""Errors by blame: could not look, AWS refused. Anything else is our own bug."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from functions.healing.steps import AttributeStep

# AWS may answer differently next time; everything else will not change by asking again.
_PASSING = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestThrottled",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)


class FactsUnavailable(Exception):
    """AWS did not let us look; nothing was changed."""


class StepFailed(Exception):
    """AWS did not take a write that it may take later; `done` are the steps taken before it."""

    def __init__(self, step: AttributeStep, cause: str, done: tuple[AttributeStep, ...]) -> None:
        super().__init__(f"{step} failed: {cause}")
        self.step = step
        self.done = done


class LedgerUnavailable(Exception):
    """The ledger could not be read or written: without it nothing is changed."""


class ComeAgain(Exception):
    """The reason not to act passes by itself: the messages are to be delivered once more."""


class EventUnreadable(Exception):
    """No number of deliveries will make this event readable: it is to be parked."""


@contextmanager
def looking(at: str) -> Iterator[None]:
    """Turn AWS's errors into FactsUnavailable that says what was looked at."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise FactsUnavailable(f"{at}: {error}") from error


def code_of(error: ClientError) -> str:
    """AWS's code for an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_passing(error: Exception) -> bool:
    """Whether asking again may help; lost answers count."""
    return not isinstance(error, ClientError) or code_of(error) in _PASSING
