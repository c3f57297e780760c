"""A headless Chromium driven over a pipe: no driver, no port, no dependency.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Chromium reads commands from 3 and answers on 4.
_READS = 3
_WRITES = 4
ANSWER_SECONDS = 60.0
END_SECONDS = 10.0


class Chromium:
    """One page in one browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._last_id = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")
        self.call("Network.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its result; events on the way are kept."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last_id:
            self._events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path, width: int, *, height: int = 900, dark: bool = False) -> None:
        """Load the file in a window of `width` CSS pixels and wait for its load event."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.visit(path.resolve().as_uri())

    def visit(self, url: str) -> None:
        """Load a page and wait for its load event."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    @property
    def requested_urls(self) -> list[str]:
        """The addresses that the page asked for and its policy let through."""
        self.call("Page.enable")  # answered after every event that was on its way
        sent = self._list_event_parameters("Network.requestWillBeSent")
        failed = self._list_event_parameters("Network.loadingFailed")
        stopped = {
            failure["requestId"] for failure in failed if failure.get("blockedReason") == "csp"
        }
        return [
            request["request"]["url"] for request in sent if request["requestId"] not in stopped
        ]

    @property
    def blocked_messages(self) -> list[str]:
        """What the browser says that the page's policy stopped."""
        self.call("Log.enable")
        entries = [entry["entry"] for entry in self._list_event_parameters("Log.entryAdded")]
        return [entry["text"] for entry in entries if entry["source"] == "security"]

    def _list_event_parameters(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self._events if event["method"] == method]

    def print_a4(self, path: Path) -> None:
        """The page as PDF, on the paper that its own style asks for."""
        paper = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(paper["data"]))

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self._buffer:
            wait = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([self._answers], [], [], wait)
            assert ready, "Chromium did not answer"
            piece = os.read(self._answers, 1 << 16)
            assert piece, "Chromium ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


@contextmanager
def start_chromium(program: str, profile: Path) -> Iterator[Chromium]:
    """Start `program` with a fresh profile folder; it and its children have ended at the end."""
    their_reads, commands = _pipe()
    answers, their_writes = _pipe()
    # posix_spawn, because Chromium wants these two at fixed numbers.
    process = os.posix_spawn(
        program,
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, their_reads, _READS),
            (os.POSIX_SPAWN_DUP2, their_writes, _WRITES),
        ],
        setpgroup=0,
    )
    os.close(their_reads)
    os.close(their_writes)
    try:
        yield Chromium(commands, answers)
    finally:
        os.close(commands)  # Chromium ends when nobody commands it
        _end(process)
        os.close(answers)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie above the two numbers, so that none overwrites another."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _end(process: int) -> None:
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline and os.waitpid(process, os.WNOHANG) == (0, 0):
        select.select([], [], [], 0.05)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)
