"""A pytest plugin: with coverage, note which code the tests ran on and how long each test took.

`make test COVERAGE=1` loads it. `recording` reads what it writes.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict

import pytest

from tests.source_files import ROOT, list_files

FOLDER = ROOT / "build" / "coverage"
# What coverage writes: which test ran which line.
DATA = FOLDER / "data"
# Written by this plugin: digests of the sources and seconds of each test.
NOTES = FOLDER / "notes.json"
SOURCES = ("analytics", "functions", "infra", "mendq", "tests")


def digests_of_sources() -> dict[str, str]:
    """Return a digest of every Python file that decides what the tests run."""
    patterns = [f"{folder}/*.py" for folder in SOURCES]
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in list_files(*patterns)
    }


class Recorder:
    """Writes NOTES at the end of a run that was not broken off."""

    def __init__(self) -> None:
        NOTES.unlink(missing_ok=True)
        # At the beginning: a file that is edited during the run makes the recording out of date.
        self._sources = digests_of_sources()
        self._seconds: dict[str, float] = defaultdict(float)
        self._setup_seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        if report.when == "setup":
            # The first test of a file makes the fixtures that its tests share.
            self._setup_seconds[file] = max(self._setup_seconds[file], report.duration)
        else:
            self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        notes = {
            "sources": self._sources,
            "seconds": self._seconds,
            "setup_seconds": self._setup_seconds,
            "failed": sorted(self._failed),
        }
        NOTES.write_text(json.dumps(notes))


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that hears of every test, and not in its workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
