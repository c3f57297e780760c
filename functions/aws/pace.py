"""Holds calls to a rate that leaves an account's quotas to those who work in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Pace:
    """At most so many a second, evenly, whichever thread asks; `clock` and `sleep` in seconds."""

    per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self) -> None:
        """Return when it is this call's turn."""
        with self._lock:
            now = self.clock()
            turn = max(now, self._free_at)
            self._free_at = turn + 1 / self.per_second
        if turn > now:
            self.sleep(turn - now)
