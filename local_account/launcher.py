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
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config

from infra.settings.deployment import DeploymentSettings
from local_account.account_settings import checked, first_steps, print_if_read
from local_account.assembly_cache import Synthesis
from local_account.cloudtrail.faults import DeliveryFaults
from local_account.deployment import StackArtifact, bootstrap, deploy, publish, read_assembly
from local_account.listening import serve_until
from local_account.not_emulated import NotEmulated
from local_account.where import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY, endpoint_url

T = TypeVar("T")
WATCH_SECONDS = 0.5
STOP_SECONDS = 2.0
_HEARD = re.compile(r"^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", re.MULTILINE)
_MAKE = re.compile(r"^Name:\s*g?make$", re.MULTILINE)
# One try: what fails in our own process fails again.
_ONCE = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})


@dataclass(frozen=True)
class StartOptions:
    """What a start was asked for."""

    settings: Mapping[str, Any]
    stack: StackArtifact | None = None  # one that is there already, instead of synthesizing
    faults: DeliveryFaults = field(default_factory=DeliveryFaults)
    stop_with_parent: bool = False


class Launcher:
    """Serves the account until a signal comes; raises CannotStart when it does not start."""

    def __init__(self, options: StartOptions, listening: socket.socket, scratch: Path) -> None:
        self._options = options
        self._listening = listening
        self._url = endpoint_url(listening.getsockname()[1])
        self._scratch = scratch
        self._synthesis = Synthesis()
        self._not_emulated = NotEmulated()
        self._settings: DeploymentSettings | None = None
        self._s3: Any = None
        self._asked_to_stop = asyncio.Event()
        self._serving_ends = asyncio.Event()

    async def run(self) -> None:
        """Return when a signal has ended the account."""
        self._hear_signals()
        assembly = _in_thread(self._assembly)  # its process runs while MiniStack is imported
        from local_account import emulator  # noqa: PLC0415  it reads the environment when imported

        memory = emulator.SqsMemory()
        jobs = emulator.JobProcesses(self._scratch / "emr-serverless", self._url)
        emulated = emulator.Emulator(memory, jobs)
        emulated.install(self._scratch, self._not_emulated)
        delivery = emulator.Delivery(emulator.put_event, self._put_object, self._options.faults)
        page = emulated.application(delivery, self._describe)
        delivery.start()
        jobs.start()
        auth = "true" if emulator.AUTH_IS_ENFORCED else "false"
        say(f"MiniStack {version('ministack')} listens on {self._url} (AUTH={auth})")
        serving = asyncio.create_task(serve_until(self._serving_ends, self._listening, page))
        try:
            await self._until_stopped(self._start(assembly))
        finally:
            self._synthesis.end()
            emulator.stop_starting()
            ending_jobs = _in_thread(jobs.stop)
            await asyncio.wait([_in_thread(delivery.stop)], timeout=STOP_SECONDS)
            logging.disable()  # what is cut off from here on is no error
            # A call that waits for a Lambda cannot be cancelled: the Lambda ends first.
            await _in_thread(emulator.end_lambdas)
            await ending_jobs
            # Connections that are cut now would each be reported with a trace.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self._serving_ends.set()
            await asyncio.wait([serving], timeout=STOP_SECONDS)
            await _in_thread(emulator.end_lambdas)

    async def _until_stopped(self, starting: Any) -> None:
        """Run the start, then wait; a signal ends either."""
        start = asyncio.ensure_future(starting)
        stop = asyncio.create_task(self._asked_to_stop.wait())
        await asyncio.wait([start, stop], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            start.result()
            await stop
        else:
            start.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await start

    async def _start(self, assembly: asyncio.Future[StackArtifact]) -> None:
        stack = await assembly
        say(f"publishing {len(stack.assets)} assets")
        await _in_thread(lambda: bootstrap(stack, self._client))
        await _in_thread(lambda: publish(stack.assets, self._client))
        say(f"deploying stack {stack.name}: {len(stack.template['Resources'])} resources")
        await _in_thread(lambda: deploy(stack, self._client))
        if self._settings and self._settings.report.sender:
            sender = self._settings.report.sender
            await _in_thread(
                lambda: self._client("sesv2").create_email_identity(EmailIdentity=sender)
            )
        for line in self._not_emulated.lines:
            say(f"not emulated: {line}")
        for line in self._floors_lowered():
            say(f"floor lowered: {line}")
        say(f"ready {self._url} account={ACCOUNT} region={REGION}")
        if not self._options.stop_with_parent:  # a program reads `ready` and knows the rest
            print_if_read(first_steps(self._url, self._settings))

    def _assembly(self) -> StackArtifact:
        if self._options.stack:
            return self._options.stack
        self._settings = checked(self._options.settings)
        return read_assembly(self._synthesis.assembly_for(self._options.settings, say))

    def _floors_lowered(self) -> tuple[str, ...]:
        return self._settings.floors_lowered() if self._settings else ()

    def _client(self, service_name: str) -> Any:
        return boto3.client(
            service_name,
            endpoint_url=self._url,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=_ONCE,
        )

    def _put_object(self, bucket: str, key: str, content: bytes) -> None:
        self._s3 = self._s3 or self._client("s3")
        self._s3.put_object(Bucket=bucket, Key=key, Body=content)

    def _describe(self) -> Mapping[str, Any]:
        return {
            "not_emulated": self._not_emulated.lines,
            "floors_lowered": list(self._floors_lowered()),
        }

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop.set)
        if self._options.stop_with_parent:
            ended = _in_thread(sys.stdin.buffer.read)
            ended.add_done_callback(lambda _: self._asked_to_stop.set())
        self._watch(MakeParent())

    def _watch(self, parent: MakeParent) -> None:
        if parent.has_stopped():
            self._asked_to_stop.set()
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(WATCH_SECONDS, self._watch, parent)


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
        return os.getppid() != self._process or not _hears_interrupts(self._status())

    def _status(self) -> str:
        try:
            return Path(f"/proc/{self._process}/status").read_text("ascii", "replace")
        except OSError:
            return ""


def _hears_interrupts(status: str) -> bool:
    return any(int(each, 16) >> (signal.SIGINT - 1) & 1 for each in _HEARD.findall(status))


def say(line: str) -> None:
    """Tell what happens, at once."""
    print(line, flush=True)


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run `work` in a thread that nothing waits for at the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  handed to whoever awaits
            failed = error
            _settle(loop, future, lambda: future.set_exception(failed))
        else:
            _settle(loop, future, lambda: future.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return future


def _settle(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], settle: Callable[[], None]
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(lambda: None if future.done() else settle())
