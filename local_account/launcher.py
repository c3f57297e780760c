"""Start the local account in this process, serve it, and stop it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from hypercorn.asyncio import serve
from hypercorn.config import Config as ServerConfig

from infra.settings.deployment import DeploymentSettings, read_deployment_settings
from infra.settings.reading import (
    SettingsRefused,
    get_fields_by_name,
    split_type_and_bounds,
)
from local_account.deployment import (
    StackArtifact,
    Synthesis,
    create_bootstrap_stack,
    create_stack,
    publish_assets,
    read_assembly,
)
from local_account.where import (
    ACCOUNT,
    ACCOUNTS_FOLDER,
    NO_RETRIES_CONFIGURATION,
    REGION,
    REPOSITORY,
    CannotStart,
    make_client,
    make_endpoint_url,
    make_operator_variables,
)
from mendq.model.limits import Timing

ThreadResult = TypeVar("ThreadResult")
PARENT_MAKE_CHECK_INTERVAL_SECONDS = 0.5
STOP_TIMEOUT_SECONDS = 2.0
CONNECTION_GRACE_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75
# The masks of caught and of ignored signals in /proc/<process id>/status.
_SIGNAL_MASKS = re.compile(r"^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", re.MULTILINE)
_MAKE_STATUS_PATTERN = re.compile(r"^Name:\s*g?make$", re.MULTILINE)
# The process ends with os._exit, which does not wait for these threads.
_THREAD_POOL = ThreadPoolExecutor(thread_name_prefix="account")
# Sentences about things that the account accepts and does not do. They are listed after the
# resource types that the account accepts and ignores.
NOT_EMULATED_SENTENCES = (
    Path(__file__).with_name("not_emulated.txt").read_text("utf-8").splitlines()
)
_COMMANDS_TO_TRY = """
To try there, in this folder:
  .venv/bin/mendq doctor       # is it alive, and what can its trail show
  .venv/bin/mendq drill --yes  # calls that fail for real, each stage timed
  .venv/bin/mendq cases        # what became of it
"""


def read_settings(raw_settings: Mapping[str, Any]) -> DeploymentSettings:
    """Return the settings of the deployment. The lower limits of `timing` do not apply.

    Raises CannotStart, with all mistakes in one line, if the settings cannot be deployed.
    """
    try:
        return read_deployment_settings(raw_settings, applies_floors=False)
    except SettingsRefused as error:
        mistakes = "; ".join(str(mistake) for mistake in error.mistakes)
        raise CannotStart(f"the settings cannot be deployed: {mistakes}") from error


def list_lowered_limits(settings: DeploymentSettings) -> tuple[str, ...]:
    """Return a line for each setting of `timing` that is below its lower limit on AWS."""
    lowered_limit_lines = []
    for name, (field_of_timing, field_type) in get_fields_by_name(Timing).items():
        value = getattr(settings.timing, field_of_timing.name)
        lower_limit = split_type_and_bounds(field_type)[1].begins()
        if value < lower_limit:
            lowered_limit_lines.append(
                f"timing.{name}: {value:g} instead of at least {lower_limit:g}"
            )
    return tuple(lowered_limit_lines)


def make_shell_exports(url: str) -> str:
    """Return `export` lines that make another shell use the account.

    The lines are printed after the line that begins with `ready`.
    """
    return "".join(
        f"export {name}={quote(value)}\n" for name, value in make_operator_variables(url).items()
    )


def describe_first_steps(settings: DeploymentSettings) -> str:
    """Return lines for people: the mode of the stack, and commands to try."""
    mode_line = f"  mode {settings.mode}, tagMayRaiseTo {settings.tag_may_raise_to}"
    return f"\nSettings in force:\n{mode_line}\n{_COMMANDS_TO_TRY}\n"


@dataclass
class Launcher:
    """Starts the account, deploys the stack, and serves the account until it is stopped.

    SIGINT or SIGTERM stops it, and so does the interrupt or end of the `make` that started it. With
    `stop_with_parent`, the end of standard input stops it too.

    Attributes:
        raw_settings: The object of the CDK context key `mendq`, for the synthesis.
        stack_artifact: A stack that is already synthesized; None to synthesize it here.
        server_socket: The socket that clients connect to.
        temporary_folder: Folder for temporary files.
        stop_with_parent: True if another program started the account: the account then ends when
            standard input is closed, and prints no commands to try.
    """

    raw_settings: Mapping[str, Any]
    stack_artifact: StackArtifact | None
    server_socket: socket.socket
    temporary_folder: Path
    stop_with_parent: bool
    _accepted_types: list[str] = field(default_factory=list)
    _settings: DeploymentSettings | None = None
    _s3: Any = None
    _stop_requested: asyncio.Event = field(default_factory=asyncio.Event)
    _serving_must_end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        port = self.server_socket.getsockname()[1]
        self._endpoint_url = make_endpoint_url(port)
        self._synthesis = Synthesis(ACCOUNTS_FOLDER / f"{port}" / "assembly")

    async def run(self) -> None:
        """Start the account and serve it until it is stopped.

        Raises CannotStart if the account does not start.
        """
        self._watch_signals()
        # The stack is synthesized while MiniStack is imported.
        stack_preparation = _run_in_thread(self._prepare_stack)
        # MiniStack reads the environment when it is imported.
        from local_account import emulator as emulator_module  # noqa: PLC0415

        emulator = emulator_module.Emulator(
            self._put_object, self.temporary_folder, self._endpoint_url
        )
        emulator.install(self._accepted_types)
        application = emulator.application(self._describe_account)
        auth_text = "true" if emulator_module.IS_AUTH_ENFORCED else "false"
        print_progress(
            f"MiniStack {version('ministack')} listens on {self._endpoint_url} (AUTH={auth_text})"
        )
        serving_task = asyncio.create_task(self._serve(application))
        try:
            await self._run_until_stopped(self._deploy(stack_preparation))
        finally:
            self._synthesis.interrupt()
            emulator_module.stop_starting_runs()
            stop_jobs_task = _run_in_thread(emulator.jobs.stop)
            await asyncio.wait(
                [_run_in_thread(emulator.delivery.stop)], timeout=STOP_TIMEOUT_SECONDS
            )
            logging.disable()  # work that is cut off from here on is not an error
            # A call that waits for a Lambda cannot be cancelled, so the Lambda is ended first.
            await _run_in_thread(emulator_module.end_lambdas)
            await stop_jobs_task
            # Without this, each connection that is cut now would be reported with a traceback.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._serving_must_end.set()
            await asyncio.wait([serving_task], timeout=STOP_TIMEOUT_SECONDS)
            await _run_in_thread(emulator_module.end_lambdas)

    async def _serve(self, application: Any) -> None:
        """Serve until `_serving_must_end` is set, then close the connections.

        Calls that are still open get CONNECTION_GRACE_SECONDS to end.
        """
        server_config = ServerConfig()
        # A copy of the socket, so that no other account takes the port before the folders are gone.
        server_config.bind = [f"fd://{self.server_socket.dup().detach()}"]
        server_config.errorlog = None
        server_config.accesslog = None
        server_config.graceful_timeout = CONNECTION_GRACE_SECONDS
        server_config.shutdown_timeout = CONNECTION_GRACE_SECONDS * 4
        server_config.keep_alive_timeout = KEEP_ALIVE_SECONDS
        await serve(application, server_config, shutdown_trigger=self._serving_must_end.wait)

    async def _run_until_stopped(self, deployment: Any) -> None:
        """Deploy, then wait for the request to stop. An earlier request cancels the deployment."""
        deployment_task = asyncio.ensure_future(deployment)
        stop_task = asyncio.create_task(self._stop_requested.wait())
        await asyncio.wait([deployment_task, stop_task], return_when=asyncio.FIRST_COMPLETED)
        if not deployment_task.done():
            deployment_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await deployment_task
            await stop_task

    async def _deploy(self, stack_preparation: asyncio.Future[StackArtifact]) -> None:
        """Deploy the stack, print the line `ready ..`, and print lines for people."""
        stack = await stack_preparation
        print_progress(f"publishing {len(stack.assets)} assets")
        await _run_in_thread(lambda: create_bootstrap_stack(stack, self._make_client))
        await _run_in_thread(lambda: publish_assets(stack.assets, self._make_client))
        print_progress(
            f"deploying stack {stack.name}: {len(stack.template['Resources'])} resources"
        )
        await _run_in_thread(lambda: create_stack(stack.name, stack.template, self._make_client))
        if self._settings and (sender := self._settings.report.sender):
            ses = self._make_client("sesv2")
            await _run_in_thread(lambda: ses.create_email_identity(EmailIdentity=sender))
        self._print_differences()
        print_progress(f"ready {self._endpoint_url} account={ACCOUNT} region={REGION}")
        startup_text = make_shell_exports(self._endpoint_url)
        # The first steps are for people, and need the settings of the stack.
        if self._settings and not self.stop_with_parent:
            startup_text += describe_first_steps(self._settings)
        # A client can close the pipe after it has read `ready`, which is no error.
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), startup_text.encode())

    def _print_differences(self) -> None:
        """Write a file about everything that is not emulated, and print each lowered limit."""
        description = self._describe_account()
        missing_features = description["not_emulated"]
        path = ACCOUNTS_FOLDER / self._endpoint_url.rpartition(":")[2] / "not-emulated.txt"
        path.write_text("\n".join(missing_features) + "\n")
        print_progress(
            f"not emulated: {len(missing_features)} things, all in {path.relative_to(REPOSITORY)}"
        )
        for line in description["floors_lowered"]:
            print_progress(f"floor lowered: {line}")

    def _prepare_stack(self) -> StackArtifact:
        """Return the stack to deploy: `stack_artifact`, or one synthesized with the settings."""
        if self.stack_artifact:
            return self.stack_artifact
        self._settings = read_settings(self.raw_settings)
        return read_assembly(self._synthesis.assembly_for(self.raw_settings, print_progress))

    def _make_client(self, service_name: str) -> Any:
        return make_client(service_name, self._endpoint_url, config=NO_RETRIES_CONFIGURATION)

    def _put_object(self, bucket: str, key: str, content: bytes) -> None:
        self._s3 = self._s3 or self._make_client("s3")
        self._s3.put_object(Bucket=bucket, Key=key, Body=content)

    def _describe_account(self) -> Mapping[str, Any]:
        """Return the content of the page `account`: what is not emulated, and lowered limits."""
        resource_types = dict.fromkeys(self._accepted_types)  # each once, in their order
        accepted_type_sentences = [
            f"{resource_type}: accepted, not emulated" for resource_type in resource_types
        ]
        lowered_limit_lines = list_lowered_limits(self._settings) if self._settings else ()
        return {
            "not_emulated": [*accepted_type_sentences, *NOT_EMULATED_SENTENCES],
            "floors_lowered": list(lowered_limit_lines),
        }

    def _watch_signals(self) -> None:
        """Make SIGINT, SIGTERM, and the interrupt or end of `make`, stop the account.

        With `stop_with_parent`, the end of standard input stops it too.
        """
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, self._stop_requested.set)
        if self.stop_with_parent:
            end_of_input = _run_in_thread(sys.stdin.buffer.read)
            end_of_input.add_done_callback(lambda _: self._stop_requested.set())
        self._watch_make(ParentMakeProcess())

    def _watch_make(self, parent_make_process: ParentMakeProcess) -> None:
        if parent_make_process.has_stopped():
            self._stop_requested.set()
        else:
            asyncio.get_running_loop().call_later(
                PARENT_MAKE_CHECK_INTERVAL_SECONDS, self._watch_make, parent_make_process
            )


class ParentMakeProcess:
    """The `make` process that started this process, if there is one.

    GNU make passes SIGTERM on to its children, but not SIGINT: make assumes that the terminal has
    sent SIGINT to all of them. After `kill -INT`, make would therefore wait for this process
    forever. But make then removes its signal handler, which /proc shows: a make that neither
    catches nor ignores SIGINT has been interrupted. Without /proc, Ctrl-C and SIGTERM still work.
    """

    def __init__(self) -> None:
        self._process_id = os.getppid()
        self._is_make = bool(_MAKE_STATUS_PATTERN.search(self._read_status()))

    def has_stopped(self) -> bool:
        """Return True if the make that started this process was interrupted or has ended.

        Return False if no make started this process, or if the machine has no /proc.
        """
        if not self._is_make:
            return False
        signal_masks = _SIGNAL_MASKS.findall(self._read_status())
        handles_interrupt = any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in signal_masks)
        return os.getppid() != self._process_id or not handles_interrupt

    def _read_status(self) -> str:
        try:
            return Path(f"/proc/{self._process_id}/status").read_text("ascii", "replace")
        except OSError:
            return ""


def print_progress(line: str) -> None:
    """Print a line about the account's progress, and flush it at once."""
    print(line, flush=True)


def _run_in_thread(function: Callable[[], ThreadResult]) -> asyncio.Future[ThreadResult]:
    return asyncio.get_running_loop().run_in_executor(_THREAD_POOL, function)
