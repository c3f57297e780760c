"""Report a failed init phase as Lambda does, if a function's process cannot start.

If a function's module cannot be imported, or has no handler, Lambda gives the reason in the
response, in the log as an `[ERROR]` line, and in an INIT_REPORT line with `Status: error`.
MiniStack's own log has only START, END and REPORT. The errors and messages here are those of
Lambda's Python runtime, whose code AWS publishes (awslambdaric). The lines in the log were seen in
public reports.

Three differences from Lambda are left:

- Lambda starts the process a second time before the run fails, with a second error and an
  INIT_REPORT of `Phase: invoke`. Here it starts once.
- The output of the module before it failed is lost.
- Each line is a separate log event.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
https://github.com/aws/aws-lambda-python-runtime-interface-client
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from local_account.hooks import replace_functions

UNKNOWN_TYPE = "Runtime.Unknown"  # INIT_REPORT's type for errors that are not Lambda's own
EXIT_TYPE = "Runtime.ExitError"
EXIT_MESSAGE = "Runtime exited without providing a reason"
INIT_FAILURE_PREFIX = "Worker init failed: "
EXIT_PREFIX = "Worker process exited immediately."
LAMBDA_TYPE_PATTERN = re.compile(r"(Runtime|Function)\.[A-Z][a-zA-Z]+")
# MiniStack's worker reports only the text of the error. The new lines also report its type and the
# calls that led to it, with the folder of the function's code on AWS.
WORKER_LINE = '_real_stdout.write(json.dumps({"status": "error", "error": str(e)}) + "\\n")'
NEW_WORKER_LINES = """_stack = [
            [_frame.filename.replace(code_dir, "/var/task"), _frame.lineno, _frame.name]
            for _frame in traceback.extract_tb(e.__traceback__)
            if _frame.filename.startswith(code_dir)
        ]
        _module = sys.modules.get(module_name)
        _reason = {"type": type(e).__name__, "message": str(e), "stack": _stack}
        _reason["is_import_error"] = isinstance(e, ImportError)
        _reason["is_syntax_error"] = isinstance(e, SyntaxError)
        _reason["lacks_handler"] = _module is not None and not hasattr(_module, handler_name)
        _real_stdout.write(json.dumps({"status": "error", "error": json.dumps(_reason)}) + "\\n")"""


class WorkerError(msgspec.Struct, frozen=True):
    """The reason why a worker could not import a function's module, or did not find its handler."""

    type: str
    message: str
    stack: list[tuple[str, int, str]]  # file, line number and function of each call
    is_import_error: bool
    is_syntax_error: bool
    lacks_handler: bool


class InitError(msgspec.Struct, frozen=True):
    """The reason why the init phase failed, as Lambda reports it."""

    type: str
    message: str
    stack_trace: list[str]

    @property
    def report_type(self) -> str:
        """The error type in the lines INIT_REPORT and REPORT."""
        return self.type if LAMBDA_TYPE_PATTERN.fullmatch(self.type) else UNKNOWN_TYPE


def install() -> None:
    """Make MiniStack report a failed init as Lambda does. Call this once per process."""
    if lambda_runtime._PYTHON_WORKER_SCRIPT.count(WORKER_LINE) != 1:
        raise RuntimeError("MiniStack's Python worker has changed: compare WORKER_LINE with it")
    lambda_runtime._PYTHON_WORKER_SCRIPT = lambda_runtime._PYTHON_WORKER_SCRIPT.replace(
        WORKER_LINE, NEW_WORKER_LINES
    )

    @replace_functions(lambda_svc, "_execute_function_warm")
    def run_function(
        original_function: Any, function: Mapping[str, Any], event: Any, request_id: str
    ) -> Any:
        started_at = time.monotonic()
        result = original_function(function, event, request_id)
        configuration = function.get("config") or function
        error = _find_init_error(configuration, result)
        if error is None:
            return result
        duration_ms = (time.monotonic() - started_at) * 1000
        memory_mb = lambda_svc._probe_peak_memory_mb(function)
        lines = make_log_lines(error, configuration, request_id, duration_ms, memory_mb)
        body = {
            "errorMessage": error.message,
            "errorType": error.type,
            "requestId": request_id,
            "stackTrace": error.stack_trace,
        }
        # With this source, MiniStack adds no log lines.
        return {"body": body, "error": True, "log": "\n".join(lines), "log_source": "rie"}


def make_log_lines(
    error: InitError,
    configuration: Mapping[str, Any],
    request_id: str,
    duration_ms: float,
    memory_mb: int,
) -> list[str]:
    """Return the log lines of a run that failed in its init phase.

    Args:
        error: The reason why it failed.
        configuration: The function's configuration.
        request_id: The id of the run.
        duration_ms: The duration of the init phase, in milliseconds.
        memory_mb: The most memory that the function used, in megabytes.
    """
    status = f"Status: error\tError Type: {error.report_type}"
    report = [
        f"REPORT RequestId: {request_id}",
        f"Duration: {duration_ms:.2f} ms",
        f"Billed Duration: {int(duration_ms) + 1} ms",
        f"Memory Size: {configuration.get('MemorySize', 128)} MB",
        f"Max Memory Used: {memory_mb} MB",
        status,
    ]
    return [
        f"[ERROR] {error.type}: {error.message}",
        "Traceback (most recent call last):",
        *"".join(error.stack_trace).splitlines(),
        f"INIT_REPORT Init Duration: {duration_ms:.2f} ms\tPhase: init\t{status}",
        f"START RequestId: {request_id} Version: {configuration.get('Version', '$LATEST')}",
        f"END RequestId: {request_id}",
        "\t".join(report),
    ]


def _find_init_error(configuration: Mapping[str, Any], result: Any) -> InitError | None:
    """Return the reason why the init phase of a run failed; None if the process started."""
    body = result.get("body")
    message = body.get("errorMessage") if isinstance(body, dict) and result.get("error") else None
    if not isinstance(message, str) or body.get("errorType") != "RuntimeError":
        return None
    if message.startswith(EXIT_PREFIX):
        return InitError(EXIT_TYPE, EXIT_MESSAGE, [])
    if not message.startswith(INIT_FAILURE_PREFIX):
        return None
    reason = message.removeprefix(INIT_FAILURE_PREFIX)
    try:
        worker_error = msgspec.json.decode(reason, type=WorkerError)
    except msgspec.DecodeError:
        return InitError(UNKNOWN_TYPE, reason, [])  # from a runtime other than Python
    return make_init_error(worker_error, str(configuration.get("Handler", "")))


def make_init_error(error: WorkerError, handler: str) -> InitError:
    """Return the error that Lambda's Python runtime would report for a worker's error.

    Args:
        error: The worker's error.
        handler: The function's handler, such as `index.handler`.
    """
    module, _, function_name = handler.rpartition(".")
    module = module.replace("/", ".")
    if error.lacks_handler:
        message = f"Handler '{function_name}' missing on module '{module}'"
        return InitError("Runtime.HandlerNotFound", message, [])
    if error.is_syntax_error:
        message = f"Syntax error in module '{module}': {error.message}"
        return InitError("Runtime.UserCodeSyntaxError", message, [])
    if error.is_import_error:
        message = f"Unable to import module '{module}': {error.message}"
        return InitError("Runtime.ImportModuleError", message, [])
    stack_trace = [
        f'  File "{path}", line {line_number}, in {name}\n'
        for path, line_number, name in error.stack
    ]
    return InitError(error.type, error.message, stack_trace)
