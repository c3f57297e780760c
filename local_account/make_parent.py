"""Noticing that `make account` was interrupted.

GNU make hands SIGTERM on to what it runs but not SIGINT, which it believes the terminal has sent to
everybody: on `kill -INT` it waits for ever. It does give up its own handler then, which shows in
/proc: a make that neither catches nor ignores SIGINT has been interrupted, however early. Where
there is no /proc, Ctrl-C and SIGTERM still work.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

_HEARD = re.compile(r"^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", re.MULTILINE)
_MAKE = re.compile(r"^Name:\s*g?make$", re.MULTILINE)


class MakeParent:
    """The make that started this process, if one did."""

    def __init__(self) -> None:
        self._process = os.getppid()
        self._watched = bool(_MAKE.search(self._status()))

    def has_stopped(self) -> bool:
        """Whether a make that ran this process has been interrupted, or is gone."""
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
