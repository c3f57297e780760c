"""The process of a Lambda: its zip, the runtime's packages, its own variables. No more.

MiniStack would start it with its own environment and every package of this virtual environment,
and so hide what a zip or a stack forgot. What stays other than on AWS: it is this machine's
Python whatever `Runtime` says, and no limit of memory holds.
"""

from __future__ import annotations

import contextvars
import os
import secrets
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
from ministack.core import lambda_runtime
from ministack.services import sts

from local_account.hooks import around
from mendq.model.settings import variable_of

# boto3 and what it needs.
# https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html#python-sdk-included
SDK = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six.py", "urllib3")
SITE_PACKAGES = Path(boto3.__file__).parents[1]
MACHINE_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
# What a Lambda gets beside its own variables: from MiniStack, and from this machine.
RUNTIME_VARIABLES = (
    *lambda_runtime._RESERVED_RUNTIME_ENV_VARS,
    *("AWS_ENDPOINT_URL", "_LAMBDA_LAYERS_DIRS", *MACHINE_VARIABLES),
)
# Here alone the clock of follow_up may be put forward, to see what becomes of a case: past the week
# that one waits for a person, but not to a year in which none is open any more.
HERE_ONLY = {variable_of("most_days_ahead"): "15"}
_ending = threading.Event()
_function: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("lambda function")


def install(runtime_packages: Path) -> None:
    """Hook MiniStack's warm workers; once per process."""
    link_packages(runtime_packages)

    def popen(
        command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a worker; `-S` leaves this environment's packages out."""
        binary, *arguments = command
        function = _function.get()
        environment = lambda_environment(env or os.environ, function, runtime_packages)
        leave_out = ["-S"] if str(function.get("Runtime", "")).startswith("python") else []
        return subprocess.Popen([binary, *leave_out, *arguments], env=environment, **options)

    lambda_runtime.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": popen})
    # With AUTH=false MiniStack would let Lambdas call as the account's root, and nothing could tell
    # their calls in the trail from anybody else's.
    lambda_runtime.execution_credentials = execution_credentials

    @around(lambda_runtime.Worker, "_spawn")
    def spawn(inner: Any, worker: Any) -> None:
        if _ending.is_set():
            raise RuntimeError("the account ends: no Lambda starts any more")
        token = _function.set(worker.config)
        try:
            inner(worker)
        finally:
            _function.reset(token)


def refuse_more() -> None:
    """Start no process any more: a retry of what is being ended would outlive the account."""
    _ending.set()


def lambda_environment(
    spawned: Mapping[str, str], function: Mapping[str, Any], runtime_packages: Path
) -> dict[str, str]:
    """What of the environment that MiniStack made up is the Lambda's."""
    allowed = {*RUNTIME_VARIABLES, *((function.get("Environment") or {}).get("Variables") or {})}
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.get('Runtime', 'python')}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        **HERE_ONLY,
        **{name: value for name, value in spawned.items() if name in allowed},
        "PYTHONPATH": str(runtime_packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def execution_credentials(function: Mapping[str, Any]) -> dict[str, str]:
    """Credentials of a session of the function's role, new for every process."""
    account, _ = lambda_runtime._account_region_from_function_config(function)
    role_name = str(function.get("Role", "")).rpartition("/")[2]
    return session_credentials(account, role_name, str(function.get("FunctionName", ""))[:64])


def session_credentials(account: str, role_name: str, session_name: str) -> dict[str, str]:
    """The variables of a new session of a role, as the SDKs read them."""
    access_key = f"ASIA{secrets.token_hex(8).upper()}"
    secret, token = secrets.token_urlsafe(30), secrets.token_urlsafe(96)
    session = {
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
        "UserId": f"{role_name}:{session_name}",
        "SecretAccessKey": secret,
        "SessionToken": token,
    }
    sts.register_session(access_key, session)
    keys = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret}
    return {**keys, "AWS_SESSION_TOKEN": token}


def link_packages(folder: Path, names: Sequence[str] = SDK) -> None:
    """Fill `folder` with links to packages, to be a process's PYTHONPATH."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(SITE_PACKAGES / name)
