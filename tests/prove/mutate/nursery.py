"""Run tests against mutants, each in a forked process; the working tree is never written.

`python -m tests.prove.mutate.nursery JOBS` reads a JSON list of jobs and prints one JSON object for
each outcome. The process loads the libraries once and nothing of the product; each fork imports the
product with the fault in it. First the tests of all jobs run without a fault: a test that fails
then is left out, and the processor time of the others sets the time limits.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import pytest
from msgspec import convert

from tests.prove.mutants.mutant import ROOT, install, path_of
from tests.prove.mutants.nursery import FirstFailure, prepare

# A mutant's tests, and the loading of their files, may take so many times the processor time that
# they take without it, and so many seconds more.
TIMES_SLOWER = 5
SPARE_SECONDS = 2.0
# A process that waits and does not compute ends after so many times its limit.
_TIMES_WAITING = 6
_LONGEST_BASELINE_SECONDS = 300.0


class Verdict(StrEnum):
    """What the tests said about a mutant."""

    KILLED = "killed"  # a test failed
    OVERRAN = "overran"  # the tests took far longer than without the fault
    SURVIVED = "survived"  # every test passed
    NOT_IMPORTED = "not imported"  # the tests never imported the mutated module in their process
    NO_TEST = "no test"  # no test that passes without the fault is left
    BROKEN = "broken"  # the process ended without an answer


@dataclass(frozen=True)
class Job:
    """One mutant to run: the text of its module, and the tests in the order in which to run them.

    A job without a module runs the tests on the product as it is.
    """

    name: str
    module: str
    source: str
    tests: tuple[str, ...]
    is_baseline: bool = False
    most_seconds: float = _LONGEST_BASELINE_SECONDS


@dataclass(frozen=True)
class Outcome:
    """What happened to a job.

    `failed` are the tests that failed. `seconds` is by the clock; `seconds_to_load` and
    `seconds_by_test` are processor time. `output` is the end of what the process printed if it
    ended without an answer.
    """

    name: str
    verdict: Verdict
    failed: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    seconds: float = 0.0
    seconds_to_load: float = 0.0
    seconds_by_test: Mapping[str, float] | None = None
    output: str = ""


class _Watch(FirstFailure):
    """A pytest plugin that runs the wanted tests, and notes failures and processor times."""

    def __init__(self, wanted: Sequence[str]) -> None:
        super().__init__()
        self._wanted = wanted
        self.all_failed: list[str] = []
        self.seconds_by_test: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the wanted tests, in this order. The path of a file stands for all of its tests.

        A fault can change the parameters of a test, and so its name. Then all tests of the function
        stand for it.
        """
        by_name: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            by_name[item.nodeid].append(item)
            by_name[_file_of(item.nodeid)].append(item)
            if "[" in item.nodeid:
                by_name[item.nodeid.partition("[")[0]].append(item)
        kept: dict[pytest.Item, None] = {}
        for test in self._wanted:
            found = by_name.get(test) or by_name.get(test.partition("[")[0], [])
            kept.update(dict.fromkeys(found))
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        super().pytest_runtest_logreport(report)
        if report.failed and report.nodeid not in self.all_failed:
            self.all_failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.all_failed.append(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        started = time.process_time()
        result = yield
        self.seconds_by_test[item.nodeid] = time.process_time() - started
        return result


def run_jobs(jobs: Sequence[Job], at_once: int) -> Iterator[Outcome]:
    """Run the tests of all jobs without a fault, then each job; yield the jobs' outcomes."""
    failing: set[str] = set()
    seconds_by_test: dict[str, float] = {}
    seconds_by_file: dict[str, float] = {}
    for outcome in _run_forks(_make_baselines(jobs), at_once):
        seconds_by_test.update(outcome.seconds_by_test or {})
        seconds_by_file[outcome.name] = outcome.seconds_to_load
        failing.update(outcome.failed)
        if outcome.verdict in (Verdict.OVERRAN, Verdict.BROKEN):
            failing.update(outcome.tests)
        yield outcome
    ready: list[Job] = []
    for job in jobs:
        tests = tuple(
            test for test in _expand_files(job.tests, seconds_by_test) if test not in failing
        )
        if not tests:
            yield Outcome(job.name, Verdict.NO_TEST, tests=job.tests)
            continue
        seconds = _sum_seconds(tests, seconds_by_test, seconds_by_file)
        limit = SPARE_SECONDS + TIMES_SLOWER * seconds
        ready.append(Job(job.name, job.module, job.source, tests, most_seconds=limit))
    yield from _run_forks(ready, at_once)


def _sum_seconds(
    tests: Sequence[str], seconds_by_test: dict[str, float], seconds_by_file: dict[str, float]
) -> float:
    """Return how long the tests take without a fault, with the loading of their files."""
    files = {_file_of(test) for test in tests}
    seconds = sum(seconds_by_test[test] for test in tests)
    return seconds + sum(seconds_by_file[file] for file in files)


def _expand_files(tests: Sequence[str], known_tests: Iterable[str]) -> list[str]:
    """Return the tests that ran without a fault; the path of a file stands for all of its tests."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for test in known_tests:
        by_name[test].append(test)
        by_name[_file_of(test)].append(test)
    return list(dict.fromkeys(found for test in tests for found in by_name.get(test, ())))


def _make_baselines(jobs: Sequence[Job]) -> list[Job]:
    """Return one job for each file of tests, which runs the tests that any job needs of it."""
    by_file: dict[str, dict[str, None]] = defaultdict(dict)
    for job in jobs:
        for test in job.tests:
            by_file[_file_of(test)][test] = None
    return [Job(file, "", "", tuple(tests), is_baseline=True) for file, tests in by_file.items()]


def _run_forks(jobs: Sequence[Job], at_once: int) -> Iterator[Outcome]:
    waiting = list(reversed(jobs))
    running: dict[int, tuple[Job, Path, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        while waiting or running:
            if waiting and len(running) < at_once:
                job = waiting.pop()
                folder = Path(tempfile.mkdtemp(dir=scratch))
                running[_start(job, folder)] = (job, folder, time.monotonic())
                continue
            pid, status = os.wait()
            if pid not in running:
                continue
            job, folder, started = running.pop(pid)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what the tests started and left
            yield _read_outcome(job, folder, status, round(time.monotonic() - started, 1))


def _start(job: Job, folder: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            _run_tests(job, folder)
        os._exit(0)
    return pid


def _run_tests(job: Job, folder: Path) -> None:
    os.setpgid(0, 0)
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    # Read by tests/infra/synthesized.py: the cache is keyed by the files, and a fault is in none.
    os.environ["MENDQ_TEST_ASSEMBLIES"] = str(folder / "assemblies")
    # A limit on processor time, so that a busy machine ends no mutant.
    signal.setitimer(signal.ITIMER_PROF, job.most_seconds)
    signal.alarm(int(_TIMES_WAITING * job.most_seconds))
    imported = ["none"]
    if not job.is_baseline:
        path = ROOT / path_of(job.module)
        imported = install({job.module: compile(job.source, str(path), "exec")})
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout=0"]
    options += ["--hypothesis-seed=0", "--hypothesis-profile=mutants", "-W"]
    options += ["ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={folder / 'tmp'}"]
    if not job.is_baseline:
        options.append("-x")
    watch = _Watch(job.tests)
    files = dict.fromkeys(map(_file_of, job.tests))
    status = pytest.main([*options, *files], plugins=[watch])
    if status == pytest.ExitCode.OK:
        verdict = Verdict.SURVIVED if imported else Verdict.NOT_IMPORTED
    elif watch.all_failed:
        verdict = Verdict.KILLED
    else:
        return
    seconds = time.process_time() - sum(watch.seconds_by_test.values())
    answer = {
        "seconds_to_load": seconds,
        "verdict": verdict,
        "failed": watch.all_failed,
        "seconds_by_test": watch.seconds_by_test,
    }
    (folder / "answer").write_text(json.dumps(answer))


def _read_outcome(job: Job, folder: Path, status: int, seconds: float) -> Outcome:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
        return Outcome(job.name, Verdict.OVERRAN, tests=job.tests, seconds=seconds)
    try:
        answer = json.loads((folder / "answer").read_text())
    except FileNotFoundError:
        output = (folder / "output").read_text(errors="replace")[-1500:]
        return Outcome(job.name, Verdict.BROKEN, tests=job.tests, seconds=seconds, output=output)
    return Outcome(
        job.name,
        Verdict(answer["verdict"]),
        tuple(answer["failed"]),
        job.tests,
        seconds,
        answer["seconds_to_load"],
        answer["seconds_by_test"],
    )


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def main(arguments: Sequence[str]) -> int:
    """Run the jobs in the file that is named; print each outcome as a line of JSON."""
    jobs = convert(json.loads(Path(arguments[0]).read_text()), list[Job])
    at_once = int(arguments[1])
    prepare()
    for outcome in run_jobs(jobs, at_once):
        print(json.dumps(asdict(outcome)), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
