"""One start of the local account, from an empty process to its end."""

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
from infra.settings.reading import SettingsRefused, bounds_of, settings_of
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
_HEARD = re.compile(r"^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", re.MULTILINE)
_MAKE = re.compile(r"^Name:\s*g?make$", re.MULTILINE)
# The process ends by os._exit: nothing waits for these.
_THREADS = ThreadPoolExecutor(thread_name_prefix="account")
# What the account takes without doing it; what a template adds comes before it.
NOT_EMULATED = Path(__file__).with_name("not_emulated.txt").read_text("utf-8").splitlines()
_TO_TRY = """
To try there, in this folder:
  .venv/bin/mendq doctor       # is it alive, and what can its trail show
  .venv/bin/mendq drill --yes  # calls that fail for real, each stage timed
  .venv/bin/mendq cases        # what became of it
"""


def checked(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings with the floors of `timing` lifted; raise CannotStart for mistakes."""
    try:
        return read(raw, floors=False)
    except SettingsRefused as refused:
        mistakes = "; ".join(str(each) for each in refused.mistakes)
        raise CannotStart(f"the settings cannot be deployed: {mistakes}") from refused


def floors_lowered(settings: DeploymentSettings) -> tuple[str, ...]:
    """Each of `timing` that lies below its floor, as a person reads it."""
    return tuple(
        f"timing.{name}: {value:g} instead of at least {floor:g}"
        for name, (each, kind) in settings_of(Timing).items()
        if (value := getattr(settings.timing, each.name)) < (floor := bounds_of(kind)[1].begins())
    )


def exports(url: str) -> str:
    """What another shell needs, as lines to paste; contracts: behind the `ready` line."""
    return "".join(f"export {name}={quote(text)}\n" for name, text in operator(url).items())


def first_steps(settings: DeploymentSettings) -> str:
    """A few lines for people; which floors are lowered has been said."""
    mode = f"  mode {settings.mode}, tagMayRaiseTo {settings.tag_may_raise_to}"
    return f"\nSettings in force:\n{mode}\n{_TO_TRY}\n"


@dataclass
class Launcher:
    """Serves the account until a signal comes; raises CannotStart when it does not start.

    `stack` is one that is there already, instead of synthesizing.
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
        self._url, self._synthesis = endpoint_url(port), Synthesis(PORTS / f"{port}" / "assembly")

    async def run(self) -> None:
        """Return when a signal has ended the account."""
        self._hear_signals()
        assembly = _in_thread(self._assembly)  # its process runs while MiniStack is imported
        from local_account import emulator  # noqa: PLC0415  it reads the environment when imported

        emulated = emulator.Emulator(self._put_object, self.scratch, self._url)
        emulated.install(self._accepted)
        page = emulated.application(self._describe)
        auth = "true" if emulator.AUTH_IS_ENFORCED else "false"
        say(f"MiniStack {version('ministack')} listens on {self._url} (AUTH={auth})")
        serving = asyncio.create_task(self._serve(page))
        try:
            await self._until_stopped(self._start(assembly))
        finally:
            self._synthesis.end()
            emulator.stop_starting()
            ending_jobs = _in_thread(emulated.jobs.stop)
            await asyncio.wait([_in_thread(emulated.delivery.stop)], timeout=STOP_SECONDS)
            logging.disable()  # what is cut off from here on is no error
            # A call that waits for a Lambda cannot be cancelled: the Lambda ends first.
            await _in_thread(emulator.end_lambdas)
            await ending_jobs
            # Connections that are cut now would each be reported with a trace.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._serving_ends.set()
            await asyncio.wait([serving], timeout=STOP_SECONDS)
            await _in_thread(emulator.end_lambdas)

    async def _serve(self, application: Any) -> None:
        """Serve until that ends, then let go within GRACE_SECONDS."""
        config = ServerConfig()
        # A copy: the port stays this account's until its folders are gone.
        config.bind = [f"fd://{self.listening.dup().detach()}"]
        config.errorlog = None
        config.accesslog = None
        config.graceful_timeout = GRACE_SECONDS
        config.shutdown_timeout = GRACE_SECONDS * 4
        config.keep_alive_timeout = KEEP_ALIVE_SECONDS
        await serve(application, config, shutdown_trigger=self._serving_ends.wait)

    async def _until_stopped(self, starting: Any) -> None:
        """Run the start, then wait; a signal ends either."""
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
        self._say_what_is_other()
        say(f"ready {self._url} account={ACCOUNT} region={REGION}")
        # A program knows what to try, and of somebody else's stack nothing is known.
        steps = "" if self.stop_with_parent or not self._settings else first_steps(self._settings)
        # Whoever waited for `ready` may have stopped reading: that is no fault of the account.
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), (exports(self._url) + steps).encode())

    def _say_what_is_other(self) -> None:
        """What AWS would do and this does not, in a file; what is lowered, line by line."""
        said, folder = self._describe(), PORTS / self._url.rpartition(":")[2]
        lines, file = said["not_emulated"], folder / "not-emulated.txt"
        file.write_text("\n".join(lines) + "\n")
        say(f"not emulated: {len(lines)} things, all in {file.relative_to(REPOSITORY)}")
        for line in said["floors_lowered"]:
            say(f"floor lowered: {line}")

    def _assembly(self) -> StackArtifact:
        if self.stack:
            return self.stack
        self._settings = checked(self.raw)
        return read_assembly(self._synthesis.assembly_for(self.raw, say))

    def _client(self, service_name: str) -> Any:
        return client(service_name, self._url, config=ONCE)

    def _put_object(self, bucket: str, key: str, content: bytes) -> None:
        self._s3 = self._s3 or self._client("s3")
        self._s3.put_object(Bucket=bucket, Key=key, Body=content)

    def _describe(self) -> Mapping[str, Any]:
        accepted = [f"{each}: accepted, not emulated" for each in dict.fromkeys(self._accepted)]
        floors = floors_lowered(self._settings) if self._settings else ()
        return {"not_emulated": [*accepted, *NOT_EMULATED], "floors_lowered": list(floors)}

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop.set)
        if self.stop_with_parent:
            ended = _in_thread(sys.stdin.buffer.read)
            ended.add_done_callback(lambda _: self._asked_to_stop.set())
        self._watch(MakeParent())

    def _watch(self, parent: MakeParent) -> None:
        if parent.has_stopped():
            self._asked_to_stop.set()
        else:
            asyncio.get_running_loop().call_later(WATCH_SECONDS, self._watch, parent)


class MakeParent:
    """The make that started this process, if one did; it may be interrupted.

    GNU make hands SIGTERM on to what it runs but not SIGINT, which it believes the terminal has
    sent to everybody: on `kill -INT` it waits for ever. It does give up its own handler then, which
    shows in /proc: a make that neither catches nor ignores SIGINT has been interrupted, however
    early. Where there is no /proc, Ctrl-C and SIGTERM still work.
    """

    def __init__(self) -> None:
        self._process = os.getppid()
        self._watched = bool(_MAKE.search(self._status()))

    def has_stopped(self) -> bool:
        """Tell whether a make that ran this process has been interrupted, or is gone."""
        if not self._watched:
            return False
        masks = _HEARD.findall(self._status())
        hears = any(int(each, 16) >> (signal.SIGINT - 1) & 1 for each in masks)
        return os.getppid() != self._process or not hears

    def _status(self) -> str:
        try:
            return Path(f"/proc/{self._process}/status").read_text("ascii", "replace")
        except OSError:
            return ""


def say(line: str) -> None:
    """Tell what happens, at once."""
    print(line, flush=True)


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(_THREADS, work)
