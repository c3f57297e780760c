"""DynamoDB transactions: conflicts that pass, conditions that failed.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.errors import LedgerUnavailable, code_of

CANCELLED = "TransactionCanceledException"
TRIES = 4
FIRST_PAUSE_SECONDS = 0.05

Answer = TypeVar("Answer")


def unconflicted(call: Callable[[], Answer]) -> Answer:
    """Call again where another transaction was at the same item; raises the last error."""
    for attempt in range(TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if not _is_conflict(error):
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
    return call()


def failed_condition(error: ClientError) -> int:
    """The index of the first condition that failed; raises LedgerUnavailable where none did."""
    for index, reason in enumerate(_reasons(error)):
        if reason.get("Code") == "ConditionalCheckFailed":
            return index
    reasons = json.dumps(_reasons(error), default=str)
    raise LedgerUnavailable(f"the ledger was busy: {reasons}") from error


@contextmanager
def ledger_errors() -> Iterator[None]:
    """Turn AWS's errors into LedgerUnavailable."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise LedgerUnavailable(str(error)) from error


def _is_conflict(error: ClientError) -> bool:
    codes = {reason.get("Code") for reason in _reasons(error)}
    lost = "ConditionalCheckFailed" in codes
    return code_of(error) == CANCELLED and "TransactionConflict" in codes and not lost


def _reasons(error: ClientError) -> list[dict[str, Any]]:
    return [dict(each) for each in error.response.get("CancellationReasons", [])]
