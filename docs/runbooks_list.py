"""The runbooks by name: the symptoms' in the catalogue's order, then the alarms'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from functions.catalogue import CATALOGUE
from infra.alarms import PAGED, WATCHED

BEGIN = "<!-- derived: runbooks (make docs) -->"


def runbooks_list() -> str:
    """Two lines of links."""
    symptoms = _links(each.runbook for each in CATALOGUE)
    alarms = _links(each.page for each in (*PAGED, *WATCHED))
    return f"Symptoms: {symptoms}.\n\nAlarms: {alarms}."


def _links(runbooks: Iterable[str]) -> str:
    return ", ".join(_each_once(runbooks))


def _each_once(runbooks: Iterable[str]) -> Iterator[str]:
    for each in dict.fromkeys(runbooks):
        path = PurePosixPath(each)
        yield f"[{path.stem}]({path.name})"
