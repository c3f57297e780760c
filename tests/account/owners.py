"""Ways in which the Lambda function that owns a write gives no usable answer to its caller."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from tests.account.account import Account

INVOKE = "before-call.lambda.Invoke"


def _answers_error(code: str, status: int) -> Callable[[], Any]:
    error = {"Error": {"Code": code, "Message": "no"}}
    return lambda: (SimpleNamespace(status_code=status), error)


def _answers(payload: bytes, **more: str) -> Callable[[], Any]:
    answer: dict[str, Any] = {"StatusCode": 200, **more}
    return lambda: (SimpleNamespace(status_code=200), {**answer, "Payload": BytesIO(payload)})


def _raises(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


SILENCE: dict[str, Callable[[], Any]] = {
    "throttled": _answers_error("TooManyRequestsException", 429),
    "forbidden": _answers_error("AccessDeniedException", 403),
    "gone": _answers_error("ResourceNotFoundException", 404),
    "broken": _answers_error("ServiceException", 500),
    "slow": _raises(ReadTimeoutError(endpoint_url="lambda")),
    "unreachable": _raises(ConnectTimeoutError(endpoint_url="lambda")),
    "failed": _answers(b'{"errorMessage": "out of memory"}', FunctionError="Unhandled"),
    "failed without a word": _answers(b"null", FunctionError="Unhandled"),
    "no answer": _answers(b"null"),
    "half an answer": _answers(b'{"state": "roll'),
}


def silence_owners(account: Account, how: str) -> Callable[[], None]:
    """Make every owner fail in one way of SILENCE. Return a function that ends it."""

    def answer(**_: Any) -> Any:
        return SILENCE[how]()

    events: Any = account.clients.functions_with_long_timeout.meta.events
    events.register_first(INVOKE, answer)
    return lambda: events.unregister(INVOKE, answer)
