"""What Invoke answers when the handler raised: MiniStack names neither the exception nor its place.

https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import lambda_svc

TIMED_OUT = "Sandbox.Timedout"
_TRACE = "Traceback (most recent call last):\n"
_FRAME = "  File "
Result = dict[str, Any]


def install() -> None:
    """Hook MiniStack's warm executor; once per process."""
    lambda_svc._execute_function_warm = _described(lambda_svc._execute_function_warm)


def payload_of(body: Mapping[str, Any], log: str, request_id: str) -> dict[str, Any]:
    """The payload of a failed invocation; `log` ends with the trace, where the handler raised."""
    message = str(body.get("errorMessage") or "")
    if body.get("errorType") == TIMED_OUT:
        return {**body, "errorMessage": f"RequestId: {request_id} Error: {message}"}
    _, began, trace = log.rpartition(_TRACE)
    if not began:
        return dict(body)
    return {
        "errorMessage": message,
        "errorType": _type_in(trace, message),
        "requestId": request_id,
        "stackTrace": _frames_in(trace),
    }


def _type_in(trace: str, message: str) -> str:
    """The class's own name, without its module."""
    named = trace.rstrip("\n").removesuffix(message.rstrip("\n")).rstrip().removesuffix(":")
    return named.rpartition("\n")[2].rpartition(".")[2]


def _frames_in(trace: str) -> list[str]:
    """The frames from the handler on: the first is that of what calls it."""
    frames: list[str] = []
    for line in trace.splitlines(keepends=True):
        if line.startswith(_FRAME):
            frames.append(line)
        elif frames and line.startswith("    "):
            if line.strip(" ^~\n"):
                frames[-1] += line
        else:
            break
    return frames[1:]


def _described(execute: Callable[..., Result]) -> Callable[..., Result]:
    def executing(function: Mapping[str, Any], event: Any, request_id: str) -> Result:
        result = execute(function, event, request_id)
        if result.get("error") and isinstance(result.get("body"), dict):
            described = payload_of(result["body"], str(result.get("log") or ""), request_id)
            return {**result, "body": described}
        return result

    return executing
