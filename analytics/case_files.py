"""The transitions in the case bucket, for a night as for a week."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath

from analytics.cases import read_transition
from analytics.days import Days
from analytics.joined import MEMORY_DAYS
from analytics.storage import Listed, Storage
from functions.healing.case import Case

_DAY = "dt="


@dataclass(frozen=True)
class CaseFiles:
    """What was written on `since` and later, and what came before it of the same cases.

    `unreadable` files held no transition.
    """

    since: date
    transitions: tuple[Case, ...]
    unreadable: int


def case_files(cases: Storage, days: Days) -> CaseFiles:
    """All that may speak for incidents of `days`: from a week before them to the newest.

    A case tells when it opened, and that it paged, at its beginning: it is read whole, so that a
    night says the same of it as a backfill that starts earlier.
    """
    since = days.widened(MEMORY_DAYS + 1, 0).first
    names = [each for each in cases.folders("") if each.startswith(_DAY)]
    later = [each for each in names if each.removeprefix(_DAY) >= f"{since}"]
    found, unreadable = _read(cases, (file for name in later for file in cases.files(name)))
    for name in reversed(names[: len(names) - len(later)]):
        begun_before = _begun_before(found)
        if not begun_before:
            break
        files = cases.files(name)
        found += _read(cases, (each for each in files if _case_id(each) in begun_before))[0]
    return CaseFiles(since, tuple(found), unreadable)


def _read(cases: Storage, files: Iterable[Listed]) -> tuple[list[Case], int]:
    """The transitions, and how many files held none."""
    read = [read_transition(cases.read(each.path) or b"") for each in files]
    transitions = [each for each in read if each]
    return transitions, len(read) - len(transitions)


def _begun_before(transitions: Iterable[Case]) -> set[str]:
    """The cases whose first transition is not among `transitions`."""
    whole = {each.case_id for each in transitions if each.n == 1}
    return {each.case_id for each in transitions} - whole


def _case_id(file: Listed) -> str:
    """Out of `dt=.../CASE_ID-N.json`."""
    return PurePosixPath(file.path).stem.rpartition("-")[0]
