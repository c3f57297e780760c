"""Start the process of a Lambda with its zip, the runtime's packages and its own variables.

It also gets the few variables that a Lambda's runtime needs (`RUNTIME_VARIABLES`).

MiniStack would start the process with MiniStack's own environment variables and with every package
of this virtual environment. That could hide that a zip or the stack lacks something. Three
differences from AWS are left: the process runs with this machine's Python, whatever `Runtime` says;
its memory is not limited; and `LOCAL_ONLY_VARIABLES` lets a test put follow_up's clock forward.
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

from local_account.hooks import replace_functions
from mendq.model.settings import environment_variable_of

# boto3 and the packages that it needs, which are part of the Lambda runtime.
# https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html#python-sdk-included
SDK_PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six.py", "urllib3")
SITE_PACKAGES = Path(boto3.__file__).parents[1]
MACHINE_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Variables that a Lambda gets from MiniStack and this machine, besides its own.
RUNTIME_VARIABLES = (
    *lambda_runtime._RESERVED_RUNTIME_ENV_VARS,
    "AWS_ENDPOINT_URL",
    "_LAMBDA_LAYERS_DIRS",
    *MACHINE_VARIABLES,
)
# Only on the local account, the clock of follow_up can be put forward, to see the outcome of a
# case. Fifteen days are more than the week that a case waits for a person.
LOCAL_ONLY_VARIABLES = {environment_variable_of("most_days_ahead"): "15"}
_account_is_ending = threading.Event()
_configuration_of_starting_function: contextvars.ContextVar[Mapping[str, Any]] = (
    contextvars.ContextVar("lambda function")
)


def install(runtime_packages: Path) -> None:
    """Make MiniStack start Lambda processes with the function's own packages and variables.

    Call this once per process.

    Args:
        runtime_packages: New folder for the packages of the Lambda runtime.
    """
    link_packages(runtime_packages)

    def start_worker(
        command: Sequence[str], *, env: Mapping[str, str] | None = None, **popen_options: Any
    ) -> subprocess.Popen[str]:
        """Start a worker process. With `-S`, Python cannot import this environment's packages."""
        binary, *arguments = command
        function_configuration = _configuration_of_starting_function.get()
        environment = make_lambda_environment(
            env or os.environ, function_configuration, runtime_packages
        )
        if str(function_configuration.get("Runtime", "")).startswith("python"):
            arguments = ["-S", *arguments]
        return subprocess.Popen([binary, *arguments], env=environment, **popen_options)

    lambda_runtime.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": start_worker})
    # With AUTH=false, MiniStack would let Lambdas call as the root user of the account. The trail
    # could then not tell their calls from others.
    lambda_runtime.execution_credentials = make_execution_credentials

    @replace_functions(lambda_runtime.Worker, "_spawn")
    def spawn_worker(original_function: Any, worker: Any) -> None:
        if _account_is_ending.is_set():
            raise RuntimeError("the account ends: no Lambda starts any more")
        context_token = _configuration_of_starting_function.set(worker.config)
        try:
            original_function(worker)
        finally:
            _configuration_of_starting_function.reset(context_token)


def refuse_new_processes() -> None:
    """Start no Lambda process from now on. Otherwise a retry could run after the account's end."""
    _account_is_ending.set()


def make_lambda_environment(
    emulator_environment: Mapping[str, str],
    configuration: Mapping[str, Any],
    runtime_packages: Path,
) -> dict[str, str]:
    """Return the environment variables of a Lambda's process.

    Args:
        emulator_environment: The variables with which MiniStack would start the process.
        configuration: The function's configuration.
        runtime_packages: Folder with the packages of the Lambda runtime.
    """
    function_variables = (configuration.get("Environment") or {}).get("Variables") or {}
    passed_variable_names = {*RUNTIME_VARIABLES, *function_variables}
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{configuration.get('Runtime', 'python')}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        **LOCAL_ONLY_VARIABLES,
        **{
            name: value
            for name, value in emulator_environment.items()
            if name in passed_variable_names
        },
        "PYTHONPATH": str(runtime_packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def make_execution_credentials(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the credentials of a new session of the function's role, as environment variables."""
    account, _ = lambda_runtime._account_region_from_function_config(configuration)
    role_name = str(configuration.get("Role", "")).rpartition("/")[2]
    return make_session_credentials(
        account, role_name, str(configuration.get("FunctionName", ""))[:64]
    )


def make_session_credentials(account: str, role_name: str, session_name: str) -> dict[str, str]:
    """Register a new session of a role, and return its credentials as environment variables."""
    access_key = f"ASIA{secrets.token_hex(8).upper()}"
    secret_key = secrets.token_urlsafe(30)
    session_token = secrets.token_urlsafe(96)
    session = {
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
        "UserId": f"{role_name}:{session_name}",
        "SecretAccessKey": secret_key,
        "SessionToken": session_token,
    }
    sts.register_session(access_key, session)
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_SESSION_TOKEN": session_token,
    }


def link_packages(folder: Path, package_names: Sequence[str] = SDK_PACKAGES) -> None:
    """Create `folder` with links to these packages, so that it can be a process's PYTHONPATH."""
    folder.mkdir()
    for name in package_names:
        (folder / name).symlink_to(SITE_PACKAGES / name)
