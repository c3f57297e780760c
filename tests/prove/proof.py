"""What a proof is: a claim, the figures that bear it, and the sentences that have to hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

Figure = int | float | str
# When every account of a proof begins, whenever the proof is run: a case is named after the day,
# how many calls a life takes hangs on the ten minutes that its parts fall into, and two runs of a
# life are to take the same, also those before and after a midnight of this machine.
BEGINS_AT = datetime(2026, 11, 16, 6, 1, tzinfo=UTC)


@dataclass
class Proving:
    """One running proof: it notes figures, checks claims, and says how far it has come.

    Attributes:
        seed: What proofs with random input begin with. `make prove` always takes 0 and so tries the
            same inputs; `make evidence` takes another one each time.
    """

    name: str = ""
    seed: int = 0
    figures: dict[str, Figure] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _quarters: int = 0

    def progress(self, share: float) -> None:
        """Say each quarter of the way."""
        if self.name and int(4 * share) > self._quarters:
            self._quarters = int(4 * share)
            print(f"  {self.name}: {share:.0%}", file=sys.stderr, flush=True)  # noqa: T201

    def figure(self, name: str, value: Figure) -> None:
        """Note what was counted or measured, units in the name."""
        self.figures[name] = value

    def note(self, figures: Mapping[str, Figure]) -> None:
        """Note several."""
        self.figures.update(figures)

    def holding(self, claims: Mapping[str, bool]) -> None:
        """Ask several claims."""
        for sentence, whether in claims.items():
            self.holds(sentence, whether=whether)

    def holds(self, sentence: str, *, whether: bool) -> None:
        """Ask one claim; the proof goes on, so that one run shows everything that fails."""
        self.claims.append(sentence)
        if not whether:
            self.failures.append(sentence)

    @contextmanager
    def measure_seconds(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.figure(name, round(time.perf_counter() - started, 1))

    def time_box(self, seconds: float, *, at_least: int = 1) -> Iterator[int]:
        """Count up until the time is over, and `at_least` so far however slow the machine is."""
        started = time.monotonic()
        turn = 0
        while (gone := time.monotonic() - started) < seconds or turn < at_least:
            self.progress(min(1.0, gone / seconds))
            yield turn
            turn += 1


@dataclass(frozen=True)
class Proof:
    """A claim in one sentence and the function that tries to break it.

    Attributes:
        name: As on the command line and in the table of figures.
        claim: What the proof shows if it holds.
        prove: Tries everything that belongs to the claim; `make evidence` runs it.
        prove_quickly: Tries a fixed part of it in at most a minute or two. `make prove` runs this
            one, or `prove` if there is none.
        alone: Whether it keeps all processors busy, so that no other proof may run beside it.
    """

    name: str
    claim: str
    prove: Callable[[Proving], None]
    prove_quickly: Callable[[Proving], None] | None = None
    alone: bool = False

    def run(self, proving: Proving, *, is_quick: bool) -> None:
        """Run the quick part, or all of the proof."""
        if is_quick and self.prove_quickly is not None:
            self.prove_quickly(proving)
        else:
            self.prove(proving)
