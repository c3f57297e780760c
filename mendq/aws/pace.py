"""A rate that is kept, of calls to AWS or of messages that are moved."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Pace:
    """At most so many a second, evenly, whichever thread asks; None: as fast as it goes.

    `clock` and `sleep` are in seconds; where somebody interrupts the sleep, it says so by True.
    """

    per_second: float | None
    sleep: Callable[[float], bool | None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, number: int = 1) -> bool:
        """Return True when so many more may go; False where somebody interrupted that."""
        with self._lock:
            now = self.clock()
            turn = max(now, self._free_at)
            self._free_at = turn + (number / self.per_second if self.per_second else 0)
        return not self.sleep(turn - now)
