"""How fast letters go: as many a second as somebody has said, or as many as can."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from cli.exit_codes import Exit, Stopped

_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(?:/s)?")
FULL_BATCH = 10


def rate_of(text: str | None) -> float | None:
    """`10/s`, `0.5/s`, `10`; Stopped where it is no rate above 0."""
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    rate = float(found.group(1)) if found else 0.0
    if not rate:
        raise Stopped(f"--rate {text[:40]!r} is no rate: say 10/s, or 0.5/s", Exit.USAGE)
    return rate


@dataclass
class Pace:
    """`wait` sleeps so many seconds, or less where somebody interrupts it."""

    per_second: float | None
    wait: Callable[[float], object]
    clock: Callable[[], float] = monotonic
    _due: float = field(default=0.0, init=False)

    @property
    def batch(self) -> int:
        """How many go at once, so that what goes slowly goes evenly."""
        return (
            FULL_BATCH if self.per_second is None else max(1, min(FULL_BATCH, int(self.per_second)))
        )

    def before(self, letters: int) -> None:
        """Return when so many more may go."""
        if self.per_second is None or not letters:
            return
        now = self.clock()
        if self._due > now:
            self.wait(self._due - now)
        self._due = max(self._due, now) + letters / self.per_second
