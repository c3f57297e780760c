"""The outcome of one run of `mendq lint` over all of its templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mendq.lint.judging import LintResult


@dataclass(frozen=True)
class StaleEntry:
    """An entry that tells lint to leave something out, and that no finding needs any more.

    Attributes:
        where: The place of the entry, such as the file and the entry's number.
        symptom: The symptom that the entry names.
        because: Why it is stale, and what to do.
    """

    where: str
    symptom: str
    because: str


@dataclass(frozen=True)
class LintRun:
    """The results of all templates, and the entries that are stale.

    Attributes:
        results: The result of each template. Findings of the baseline are not in them.
        known_count: The number of findings that are in the baseline.
        stale_entries: Entries that no finding needs any more.
    """

    results: Sequence[LintResult]
    known_count: int = 0
    stale_entries: Sequence[StaleEntry] = ()
