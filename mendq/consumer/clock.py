"""A clock for visibility timeouts that also counts the time while the machine sleeps.

On Linux and macOS, `time.monotonic` stands still while the machine sleeps or a virtual machine is
paused. With such a clock, a consumer that wakes up would believe that it still holds a message
which SQS has given to another consumer meanwhile.

So this clock reads two clocks and advances by the larger step:

- A clock that never goes back. On Linux it is CLOCK_BOOTTIME, which counts the machine's own sleep.
  It does not count the time in which a hypervisor pauses a virtual machine, such as that of WSL2 or
  Docker Desktop on a laptop that sleeps. Elsewhere it is `time.monotonic`.
- The wall clock. It adds a pause as soon as the machine has set its wall clock, and not before. If
  the wall clock is set forward, timeouts seem to be over too early, which is safe. If it is set
  back, the other clock decides.

Not tested on macOS, on Windows, or on a virtual machine that was really paused: the tests replace
the clocks.
https://man7.org/linux/man-pages/man2/clock_gettime.2.html
https://docs.python.org/3/library/time.html#time.monotonic
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


class LargerStepClock:
    """A clock that advances by the larger step of two clocks. It never goes back.

    Args:
        monotonic: Returns seconds of a clock that never goes back.
        wall: Returns seconds of a clock that may be set forward and back.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._lock = Lock()
        self._last_monotonic = monotonic()
        self._last_wall = wall()
        self._now = self._last_monotonic

    def read(self) -> float:
        """Return the seconds of the clock."""
        with self._lock:
            monotonic_now = self._monotonic()
            wall_now = self._wall()
            self._now += max(monotonic_now - self._last_monotonic, wall_now - self._last_wall)
            self._last_monotonic = monotonic_now
            self._last_wall = wall_now
            return self._now


_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def _read_steady_clock() -> float:
    """Return the seconds of a clock that never goes back. On Linux, it counts the sleep too."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


def _read_wall_clock() -> float:
    return time.time()


_LARGER_STEP_CLOCK = LargerStepClock(_read_steady_clock, _read_wall_clock)


def read_sleep_counting_clock() -> float:
    """Return the seconds of a clock that never goes back and counts the machine's sleep."""
    return _LARGER_STEP_CLOCK.read()
