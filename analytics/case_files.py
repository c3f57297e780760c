"""The transitions in the case bucket, for a night as for a week."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from analytics.cases import read_transition
from analytics.days import Days
from analytics.joined import MEMORY_DAYS
from analytics.storage import Storage
from functions.healing.case import Case


@dataclass(frozen=True)
class CaseFiles:
    """What was written on `since` and later; `unreadable` files held no transition."""

    since: date
    transitions: tuple[Case, ...]
    unreadable: int


def case_files(cases: Storage, days: Days) -> CaseFiles:
    """All that may speak for incidents of `days`: from a week before them to the newest."""
    since = days.widened(MEMORY_DAYS + 1, 0).first
    transitions, unreadable = [], 0
    for name in cases.folders(""):
        if not name.startswith("dt=") or name.removeprefix("dt=") < f"{since}":
            continue
        for file in cases.files(name):
            transition = read_transition(cases.read(file.path) or b"")
            if transition:
                transitions.append(transition)
            else:
                unreadable += 1
    return CaseFiles(since, tuple(transitions), unreadable)
