"""Remove guards one by one and run tests against each loss; the working tree is never written.

`python -m tests.prove.guards.nursery JOBS RESULTS`: JOBS is a JSON object from the name of a guard
to the tests to run, RESULTS gets one from the name to what happened. The product, with all of these
guards removable, and the tests are loaded once; each guard is removed in a fork of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from tests.prove.guards.guard import Guard, guards_of_product
from tests.prove.guards.removal import Switch, compile_without_guards
from tests.prove.mutants.mutant import ROOT, install, path_of
from tests.prove.mutants.nursery import FirstFailure, prepare

# Begins each line of the output that says that one more fork has ended.
DONE = "done: "
# The wall-clock limit of a process, as a multiple of its limit of CPU seconds.
_MOST_TIMES_SLOWER = 8


class GuardVerdict(StrEnum):
    """The tests' verdict on a removal, or on the product with all its guards."""

    NOTICED = "noticed"  # a test failed
    UNNOTICED = "unnoticed"  # every test passed
    OVERRAN = "overran"  # the tests computed without an end, as a loop that lost its guard does
    BROKEN = "broken"  # the process ended without an answer


@dataclass(frozen=True)
class Answer:
    """The verdict, and the tests that failed."""

    verdict: GuardVerdict
    failed: tuple[str, ...]
    seconds: float
    output: str = ""


@dataclass(frozen=True)
class Fork:
    """One process to come: the guard that it removes (empty: none) and the tests that it runs."""

    removed: str
    tests: tuple[str, ...]


class Nursery:
    """A pytest plugin that runs the collected tests in forks, once a guard.

    First each file's tests run with all guards in place: one that fails then says nothing.
    """

    def __init__(
        self,
        jobs: Mapping[str, Sequence[str]],
        at_once: int,
        seconds_each: int,
        keep: Callable[[Nursery], None],
    ) -> None:
        self.switch = Switch()
        self.answers: dict[str, Answer] = {}
        self.failing: list[str] = []
        self._keep = keep
        self._jobs = jobs
        self._at_once = at_once
        self._seconds_each = seconds_each
        self._items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of the loop that runs each test."""
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        self._items = {item.nodeid: item for item in session.items}
        for fork, answer in self._run(self._list_forks()):
            self.failing += answer.failed
            if answer.verdict in (GuardVerdict.OVERRAN, GuardVerdict.BROKEN):
                self.failing += fork.tests
        for fork, answer in self._run(self._removals()):
            self.answers[fork.removed] = answer
            self._keep(self)
        return True

    def _list_forks(self) -> list[Fork]:
        by_file: dict[str, list[str]] = defaultdict(list)
        wanted = {test for tests in self._jobs.values() for test in tests}
        for test in self._items:
            if test in wanted:
                by_file[test.partition("::")[0]].append(test)
        return [Fork("", tuple(tests)) for tests in by_file.values()]

    def _removals(self) -> list[Fork]:
        useful = self._items.keys() - set(self.failing)
        forks: list[Fork] = []
        for name, tests in self._jobs.items():
            forks.append(Fork(name, tuple(test for test in tests if test in useful)))
        return forks

    def _run(self, forks: Sequence[Fork]) -> Iterator[tuple[Fork, Answer]]:
        waiting = list(reversed(forks))
        running: dict[int, tuple[Fork, Path, float]] = {}
        with tempfile.TemporaryDirectory() as scratch:
            while waiting or running:
                if waiting and len(running) < self._at_once:
                    fork = waiting.pop()
                    folder = Path(tempfile.mkdtemp(dir=scratch))
                    running[self._start(fork, folder)] = (fork, folder, time.monotonic())
                    continue
                pid, status = os.wait()
                if pid not in running:
                    continue
                fork, folder, started = running.pop(pid)
                answer = _answer_in(folder, status, round(time.monotonic() - started, 1))
                print(f"{DONE}{answer.verdict} {fork.removed}", flush=True)  # noqa: T201
                yield fork, answer

    def _start(self, fork: Fork, folder: Path) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                self._child(fork, folder)
            os._exit(0)
        return pid

    def _child(self, fork: Fork, folder: Path) -> None:
        os.setpgid(0, 0)
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        if fork.removed:
            # Read by tests/infra/synthesized.py. Its cache is keyed by the files, which are the
            # same with and without the guard.
            os.environ["MENDQ_TEST_ASSEMBLIES"] = str(folder / "assemblies")
        # Of the processor's time, so that a busy machine makes no answer. What sleeps ends later.
        signal.setitimer(signal.ITIMER_PROF, self._seconds_each)
        signal.alarm(_MOST_TIMES_SLOWER * self._seconds_each)
        self.switch.removed = fork.removed
        items = [self._items[test] for test in fork.tests]
        witness = FirstFailure()
        failed = []
        for number, item in enumerate(items, 1):
            following = items[number] if number < len(items) else None
            item.config.pluginmanager.register(witness)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(witness)
            if witness.failed:
                failed.append(item.nodeid)
                witness.failed = ""
                if fork.removed:
                    break
        verdict = GuardVerdict.NOTICED if failed else GuardVerdict.UNNOTICED
        (folder / "answer").write_text(json.dumps([verdict, failed]))


def _answer_in(folder: Path, status: int, seconds: float) -> Answer:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        return Answer(GuardVerdict.OVERRAN, (), seconds)
    try:
        verdict, failed = json.loads((folder / "answer").read_text())
    except FileNotFoundError:
        output = (folder / "output").read_text(errors="replace")
        return Answer(GuardVerdict.BROKEN, (), seconds, output[-1500:])
    return Answer(GuardVerdict(verdict), tuple(failed), seconds)


def run(
    guards: Sequence[Guard],
    jobs: Mapping[str, Sequence[str]],
    options: Sequence[str] = (),
    *,
    root: Path = ROOT,
    seconds_each: int = 120,
    keep: Callable[[Nursery], None] = lambda _: None,
) -> Nursery:
    """Make the guards removable, load the tests, and remove one guard after another.

    Args:
        guards: All guards that may be named.
        jobs: The tests to run, by the name of the guard that is removed.
        options: More options for pytest.
        root: The folder that the modules and the tests are in.
        seconds_each: How much of the processor's time the tests of one removal may take.
        keep: Called after each answer, so that a run that is broken off has said what it knows.
    """
    by_module: dict[str, list[Guard]] = defaultdict(list)
    for guard in guards:
        if guard.name in jobs:
            by_module[guard.module].append(guard)
    nursery = Nursery(jobs, os.cpu_count() or 1, seconds_each, keep)
    nursery.switch.install()
    paths = {module: root / path_of(module) for module in by_module}
    install(
        {
            module: compile_without_guards(paths[module], found)
            for module, found in by_module.items()
        }
    )
    files = sorted({test.partition("::")[0] for tests in jobs.values() for test in tests})
    always = ["-q", "-s", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=0"]
    pytest.main([*always, *options, *files], plugins=[nursery])
    return nursery


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds-each", type=int, default=120)
    parser.add_argument("--longest-seconds", type=int, default=0, help="ends all of it; 0: never")
    asked = parser.parse_args(arguments)
    signal.alarm(asked.longest_seconds)
    prepare()
    jobs = json.loads(asked.jobs.read_text())
    options = ["--tb=short", "--hypothesis-seed=0", "--hypothesis-profile=mutants"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]

    def keep(nursery: Nursery) -> None:
        answers = {name: asdict(answer) for name, answer in nursery.answers.items()}
        asked.results.write_text(json.dumps({"answers": answers, "failing": nursery.failing}))

    run(guards_of_product(), jobs, options, seconds_each=asked.seconds_each, keep=keep)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
