"""The process of a Lambda: its zip, the runtime's packages, its own variables. No more.

MiniStack would start it with its own environment and every package of this virtual environment,
and so hide what a zip or a stack forgot. What stays other than on AWS: it is this machine's
Python whatever `Runtime` says, and no limit of memory holds.
"""

from __future__ import annotations

import contextvars
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime

from functions.settings import variable_of

# What a Lambda gets beside its own variables: from MiniStack's account of the function ...
RUNTIME_VARIABLES = (
    *sorted(lambda_runtime._RESERVED_RUNTIME_ENV_VARS),
    "AWS_ENDPOINT_URL",
    "_LAMBDA_LAYERS_DIRS",
)
# ... and from this machine.
MACHINE_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Here alone the clock of follow_up may be put forward, to see what becomes of a case: past the week
# that one waits for a person, but not to a year in which none is open any more.
HERE_ONLY = {variable_of("most_days_ahead"): "15"}
_ending = threading.Event()
_function: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("lambda function")


def install(runtime_packages: Path) -> None:
    """Hook MiniStack's warm workers; once per process."""
    lambda_runtime.subprocess = _Subprocess(runtime_packages)
    lambda_runtime.Worker._spawn = _remembering(lambda_runtime.Worker._spawn)


def lambda_environment(
    spawned: Mapping[str, str], function: Mapping[str, Any], runtime_packages: Path
) -> dict[str, str]:
    """What of the environment that MiniStack made up is the Lambda's."""
    own = (function.get("Environment") or {}).get("Variables") or {}
    allowed = {*RUNTIME_VARIABLES, *MACHINE_VARIABLES, *own}
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.get('Runtime', 'python')}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        **HERE_ONLY,
        **{name: value for name, value in spawned.items() if name in allowed},
        "PYTHONPATH": str(runtime_packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def refuse_more() -> None:
    """Start no process any more: a retry of what is being ended would outlive the account."""
    _ending.set()


def _remembering(spawn: Callable[[Any], None]) -> Callable[[Any], None]:
    def spawning(worker: Any) -> None:
        if _ending.is_set():
            raise RuntimeError("the account ends: no Lambda starts any more")
        token = _function.set(worker.config)
        try:
            spawn(worker)
        finally:
            _function.reset(token)

    return spawning


class _Subprocess:
    """The `subprocess` module as lambda_runtime sees it."""

    def __init__(self, runtime_packages: Path) -> None:
        self._runtime_packages = runtime_packages

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(  # noqa: N802  the name that MiniStack calls
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a worker; `-S` leaves this environment's packages out."""
        binary, *arguments = command
        function = _function.get()
        environment = lambda_environment(env or os.environ, function, self._runtime_packages)
        leave_out = ["-S"] if str(function.get("Runtime", "")).startswith("python") else []
        return subprocess.Popen([binary, *leave_out, *arguments], env=environment, **options)
