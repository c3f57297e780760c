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

from infra.settings.deployment import DeploymentSettings, read
from infra.settings.reading import SettingsRefused, fields_by_name, type_and_bounds
from local_account.deployment import (
    StackArtifact,
    Synthesis,
    bootstrap,
    create,
    publish,
    read_assembly,
)
from local_account.where import (
    ACCOUNT,
    ONCE,
    PORTS,
    REGION,
    REPOSITORY,
    CannotStart,
    client,
    endpoint_url,
    operator,
)
from mendq.model.limits import Timing

T = TypeVar("T")
WATCH_SECONDS = 0.5
STOP_SECONDS = 2.0
GRACE_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75
# The masks of caught and of ignored signals in /proc/<process id>/status.
_SIGNAL_MASKS = re.compile(r"^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", re.MULTILINE)
_MAKE = re.compile(r"^Name:\s*g?make$", re.MULTILINE)
# The process ends with os._exit, which does not wait for these threads.
_THREADS = ThreadPoolExecutor(thread_name_prefix="account")
# Sentences about what the account accepts and does not do. They follow the resource types of the
# template that are accepted and do nothing.
NOT_EMULATED = Path(__file__).with_name("not_emulated.txt").read_text("utf-8").splitlines()
_TO_TRY = """
To try there, in this folder:
  .venv/bin/mendq doctor       # is it alive, and what can its trail show
  .venv/bin/mendq drill --yes  # calls that fail for real, each stage timed
  .venv/bin/mendq cases        # what became of it
"""


def read_settings(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings without the lower limits of `timing`.

    Raises CannotStart, with all mistakes in one line, if they cannot be deployed.
    """
    try:
        return read(raw, floors=False)
    except SettingsRefused as refused:
        mistakes = "; ".join(str(mistake) for mistake in refused.mistakes)
        raise CannotStart(f"the settings cannot be deployed: {mistakes}") from refused


def list_lowered_floors(settings: DeploymentSettings) -> tuple[str, ...]:
    """Return a line for each setting of `timing` below the lower limit of a deployment."""
    lines = []
    for name, (field_of_timing, kind) in fields_by_name(Timing).items():
        value = getattr(settings.timing, field_of_timing.name)
        floor = type_and_bounds(kind)[1].begins()
        if value < floor:
            lines.append(f"timing.{name}: {value:g} instead of at least {floor:g}")
    return tuple(lines)


def shell_exports(url: str) -> str:
    """Return lines for another shell that let it work with the account.

    They are printed after the line that begins with `ready`.
    """
    return "".join(f"export {name}={quote(value)}\n" for name, value in operator(url).items())


def first_steps(settings: DeploymentSettings) -> str:
    """Return the lines for people: the mode, and commands to try."""
    mode = f"  mode {settings.mode}, tagMayRaiseTo {settings.tag_may_raise_to}"
    return f"\nSettings in force:\n{mode}\n{_TO_TRY}\n"


@dataclass
class Launcher:
    """Serves the account until a signal ends it.

    Attributes:
        raw: The settings to synthesize the stack with.
        stack: A stack that was synthesized already; None to synthesize it here.
        listening: The socket that clients connect to.
        scratch: Folder for temporary files.
        stop_with_parent: True if the account ends when standard input is closed.
    """

    raw: Mapping[str, Any]
    stack: StackArtifact | None
    listening: socket.socket
    scratch: Path
    stop_with_parent: bool
    _accepted: list[str] = field(default_factory=list)
    _settings: DeploymentSettings | None = None
    _s3: Any = None
    _asked_to_stop: asyncio.Event = field(default_factory=asyncio.Event)
    _serving_ends: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        port = self.listening.getsockname()[1]
        self._url = endpoint_url(port)
        self._synthesis = Synthesis(PORTS / f"{port}" / "assembly")

    async def run(self) -> None:
        """Start and serve the account; return after a signal has ended it.

        Raises CannotStart if the account does not start.
        """
        self._watch_signals()
        assembly = _in_thread(self._assembly)  # synthesized while MiniStack is imported
        # MiniStack reads the environment when it is imported.
        from local_account import emulator as emulator_module  # noqa: PLC0415

        emulator = emulator_module.Emulator(self._put_object, self.scratch, self._url)
        emulator.install(self._accepted)
        application = emulator.application(self._describe)
        auth = "true" if emulator_module.AUTH_IS_ENFORCED else "false"
        say(f"MiniStack {version('ministack')} listens on {self._url} (AUTH={auth})")
        serving = asyncio.create_task(self._serve(application))
        try:
            await self._until_stopped(self._start(assembly))
        finally:
            self._synthesis.end()
            emulator_module.stop_starting()
            ending_jobs = _in_thread(emulator.jobs.stop)
            await asyncio.wait([_in_thread(emulator.delivery.stop)], timeout=STOP_SECONDS)
            logging.disable()  # work that is cut off from here on is no error
            # A call that waits for a Lambda cannot be cancelled, so the Lambda is ended first.
            await _in_thread(emulator_module.end_lambdas)
            await ending_jobs
            # Without this, each connection that is cut now would be reported with a traceback.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._serving_ends.set()
            await asyncio.wait([serving], timeout=STOP_SECONDS)
            await _in_thread(emulator_module.end_lambdas)

    async def _serve(self, application: Any) -> None:
        """Serve until `_serving_ends` is set, then close connections within GRACE_SECONDS."""
        config = ServerConfig()
        # A copy of the socket, so that no other account takes the port before the folders are gone.
        config.bind = [f"fd://{self.listening.dup().detach()}"]
        config.errorlog = None
        config.accesslog = None
        config.graceful_timeout = GRACE_SECONDS
        config.shutdown_timeout = GRACE_SECONDS * 4
        config.keep_alive_timeout = KEEP_ALIVE_SECONDS
        await serve(application, config, shutdown_trigger=self._serving_ends.wait)

    async def _until_stopped(self, starting: Any) -> None:
        """Run the start, then wait for a signal. A signal also ends the start."""
        start = asyncio.ensure_future(starting)
        stop = asyncio.create_task(self._asked_to_stop.wait())
        await asyncio.wait([start, stop], return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            start.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await start
            await stop

    async def _start(self, assembly: asyncio.Future[StackArtifact]) -> None:
        stack = await assembly
        say(f"publishing {len(stack.assets)} assets")
        await _in_thread(lambda: bootstrap(stack, self._client))
        await _in_thread(lambda: publish(stack.assets, self._client))
        say(f"deploying stack {stack.name}: {len(stack.template['Resources'])} resources")
        await _in_thread(lambda: create(stack.name, stack.template, self._client))
        if self._settings and (sender := self._settings.report.sender):
            ses = self._client("sesv2")
            await _in_thread(lambda: ses.create_email_identity(EmailIdentity=sender))
        self._say_differences()
        say(f"ready {self._url} account={ACCOUNT} region={REGION}")
        lines = shell_exports(self._url)
        # The first steps are for people, and need the settings of the stack.
        if self._settings and not self.stop_with_parent:
            lines += first_steps(self._settings)
        # A client can close the pipe after it has read `ready`, which is no error.
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), lines.encode())

    def _say_differences(self) -> None:
        """Write a file that says what is not emulated, and print each limit that is lowered."""
        description = self._describe()
        not_emulated = description["not_emulated"]
        file = PORTS / self._url.rpartition(":")[2] / "not-emulated.txt"
        file.write_text("\n".join(not_emulated) + "\n")
        say(f"not emulated: {len(not_emulated)} things, all in {file.relative_to(REPOSITORY)}")
        for line in description["floors_lowered"]:
            say(f"floor lowered: {line}")

    def _assembly(self) -> StackArtifact:
        if self.stack:
            return self.stack
        self._settings = read_settings(self.raw)
        return read_assembly(self._synthesis.assembly_for(self.raw, say))

    def _client(self, service_name: str) -> Any:
        return client(service_name, self._url, config=ONCE)

    def _put_object(self, bucket: str, key: str, content: bytes) -> None:
        self._s3 = self._s3 or self._client("s3")
        self._s3.put_object(Bucket=bucket, Key=key, Body=content)

    def _describe(self) -> Mapping[str, Any]:
        """Return the content of page `account`."""
        kinds = dict.fromkeys(self._accepted)  # each once, in their order
        accepted = [f"{kind}: accepted, not emulated" for kind in kinds]
        floors = list_lowered_floors(self._settings) if self._settings else ()
        return {"not_emulated": [*accepted, *NOT_EMULATED], "floors_lowered": list(floors)}

    def _watch_signals(self) -> None:
        """Stop on SIGINT, SIGTERM, an interrupted make, and the end of standard input if asked."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop.set)
        if self.stop_with_parent:
            end_of_input = _in_thread(sys.stdin.buffer.read)
            end_of_input.add_done_callback(lambda _: self._asked_to_stop.set())
        self._watch_make(MakeParent())

    def _watch_make(self, parent: MakeParent) -> None:
        if parent.has_stopped():
            self._asked_to_stop.set()
        else:
            asyncio.get_running_loop().call_later(WATCH_SECONDS, self._watch_make, parent)


class MakeParent:
    """The `make` process that started this process, if there is one.

    GNU make passes SIGTERM on to its children, but not SIGINT: it assumes that the terminal has
    sent SIGINT to all of them. After `kill -INT`, make would wait for this process without end. But
    make then removes its signal handler, which /proc shows: a make that neither catches nor ignores
    SIGINT has been interrupted. Without /proc, Ctrl-C and SIGTERM still work.
    """

    def __init__(self) -> None:
        self._process = os.getppid()
        self._is_make = bool(_MAKE.search(self._status()))

    def has_stopped(self) -> bool:
        """Return True if a make that started this process was interrupted or has ended."""
        if not self._is_make:
            return False
        masks = _SIGNAL_MASKS.findall(self._status())
        handles_interrupt = any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)
        return os.getppid() != self._process or not handles_interrupt

    def _status(self) -> str:
        try:
            return Path(f"/proc/{self._process}/status").read_text("ascii", "replace")
        except OSError:
            return ""


def say(line: str) -> None:
    """Print a line about the account's progress without buffering."""
    print(line, flush=True)


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(_THREADS, work)
