"""The outcome of one run of `mendq lint` over all of its templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mendq.lint.ignores import StaleEntry
from mendq.lint.judging import LintResult


@dataclass(frozen=True)
class LintRun:
    """The results of all templates, and the entries that are stale.

    Attributes:
        results: The result of each template. Findings of the baseline are not in them.
        known_count: The number of findings that are in the baseline.
        stale_entries: Entries of the baseline and of the mute list that no finding needs any more.
    """

    results: Sequence[LintResult]
    known_count: int = 0
    stale_entries: Sequence[StaleEntry] = ()

    def list_stale_entries(self) -> list[StaleEntry]:
        """Return all stale entries, with the ignores inside the templates."""
        stale_ignores = [
            replace(entry, where=f"{result.file}, {entry.where}")
            for result in self.results
            for entry in result.stale_ignores
        ]
        return [*self.stale_entries, *stale_ignores]
