"""Run a sample of mutants: choose them, choose their tests, and ask the tests in two rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.prove.guards.recorder import DATA, NOTES, digests_of_sources
from tests.prove.mutate.choice import ChosenMutant
from tests.prove.mutate.equivalents import Equivalent, is_listed
from tests.prove.mutate.nursery import Job, Outcome, Verdict
from tests.prove.mutate.report import Judgement
from tests.prove.mutate.selection import TestSelector, limit_tests
from tests.source_files import ROOT

RECORD_COMMAND = "make test COVERAGE=1"
# Begins each line of progress about tests that run without a fault.
WITHOUT_FAULT = "without a fault"


@dataclass(frozen=True)
class Round:
    """How many tests are asked, from how many files, and for how many seconds of tests."""

    most: int
    files: int
    seconds: float


# Most mutants are noticed by the first few tests. What survives meets many more.
ROUNDS = (Round(most=12, files=3, seconds=15.0), Round(most=200, files=40, seconds=240.0))


class NoRecordingError(Exception):
    """No usable coverage is recorded. The message says what to run."""


def check_recording(mutants: Sequence[ChosenMutant]) -> str:
    """Return a warning if other files changed since coverage was recorded; empty if none did.

    Raises:
        NoRecordingError: Coverage is not recorded, or a mutated file changed since.
    """
    if not NOTES.exists() or not DATA.exists():
        raise NoRecordingError(
            "No coverage is recorded, so nothing says which tests run a line. Run "
            f"`{RECORD_COMMAND}` first; it takes minutes."
        )
    recorded: dict[str, str] = json.loads(NOTES.read_text())["sources"]
    now = digests_of_sources()
    changed = {name for name in {*recorded, *now} if recorded.get(name) != now.get(name)}
    changed_mutants = sorted({str(mutant.path) for mutant in mutants} & changed)
    if changed_mutants:
        raise NoRecordingError(
            f"{', '.join(changed_mutants[:5])} changed since coverage was recorded, so it says "
            f"nothing about these lines. Run `{RECORD_COMMAND}` again."
        )
    if changed:
        return (
            f"{len(changed)} other files changed since coverage was recorded, such as "
            f"{min(changed)}; tests that were added since are not asked."
        )
    return ""


def judge_mutants(
    mutants: Sequence[ChosenMutant],
    selector: TestSelector,
    entries: Sequence[Equivalent],
    say: Callable[[str], object],
    *,
    further_tests: Sequence[str] = (),
    at_once: int = 0,
) -> list[Judgement]:
    """Run the mutants and return what happened to each, in their order.

    Args:
        mutants: The sample.
        selector: Picks the tests of a mutant.
        entries: The reviewed equivalent mutants, which are not run.
        say: Called with each line of progress.
        further_tests: Tests that run against every mutant first, such as new ones.
        at_once: How many processes run at once; 0 means one per processor.
    """
    judgements: dict[int, Judgement] = {}
    tests_of: dict[int, list[str]] = {}
    for number, mutant in enumerate(mutants):
        if is_listed(mutant, entries):
            judgements[number] = Judgement(mutant, Verdict.SURVIVED, is_equivalent=True)
            continue
        tests_of[number] = [*further_tests, *selector.list_tests(mutant.mutation)]
        if not tests_of[number]:
            judgements[number] = Judgement(mutant, Verdict.NO_TEST)
    for judgement in judgements.values():
        say(judgement.line_of_progress)
    _run_rounds(mutants, tests_of, judgements, selector, say=say, at_once=at_once)
    return [judgements[number] for number in range(len(mutants))]


def _run_rounds(
    mutants: Sequence[ChosenMutant],
    tests_of: Mapping[int, Sequence[str]],
    judgements: dict[int, Judgement],
    selector: TestSelector,
    *,
    say: Callable[[str], object],
    at_once: int,
) -> None:
    """Run the mutants without a judgement, and add their judgements."""
    left = [number for number in range(len(mutants)) if number not in judgements]
    for limits in ROUNDS:
        unasked_tests = {
            number: _list_unasked_tests(tests_of[number], judgements.get(number)) for number in left
        }
        jobs = _choose_jobs(mutants, unasked_tests, selector, limits)
        for outcome in _run_mutants(jobs, at_once, say):
            number = int(outcome.name)
            judgements[number] = _join(judgements.get(number), mutants[number], outcome, tests_of)
            done = len(judgements)
            say(f"{done:>4}/{len(mutants)} {judgements[number].line_of_progress}")
        left = [number for number in left if judgements[number].is_survivor]


def _list_unasked_tests(tests: Sequence[str], judgement: Judgement | None) -> list[str]:
    asked = set(judgement.tests) if judgement else set()
    return [test for test in tests if test not in asked]


def _choose_jobs(
    mutants: Sequence[ChosenMutant],
    tests_by_number: Mapping[int, Sequence[str]],
    selector: TestSelector,
    limits: Round,
) -> list[Job]:
    """Return a job for each of these mutants that has a test to run within the limits."""
    jobs: list[Job] = []
    for number, tests in tests_by_number.items():
        chosen = limit_tests(
            tests, selector, most=limits.most, files=limits.files, seconds=limits.seconds
        )
        if chosen:
            jobs.append(_make_job(number, mutants[number], chosen))
    return jobs


def _make_job(number: int, mutant: ChosenMutant, tests: Sequence[str]) -> Job:
    return Job(str(number), mutant.mutation.module, mutant.mutated_source, tuple(tests))


def _join(
    before: Judgement | None,
    mutant: ChosenMutant,
    outcome: Outcome,
    tests_of: Mapping[int, Sequence[str]],
) -> Judgement:
    """Add the outcome of a round to the judgement of the rounds before."""
    possible = len(tests_of[int(outcome.name)])
    if before is None:
        return Judgement(
            mutant,
            outcome.verdict,
            tests=outcome.tests,
            possible_tests=possible,
            failed=outcome.failed,
            seconds=outcome.seconds,
            output=outcome.output,
        )
    has_answer = outcome.verdict is not Verdict.NO_TEST
    return Judgement(
        mutant,
        outcome.verdict if has_answer else before.verdict,
        tests=(*before.tests, *(outcome.tests if has_answer else ())),
        possible_tests=possible,
        failed=outcome.failed,
        seconds=before.seconds + outcome.seconds,
        output=outcome.output,
    )


def _run_mutants(
    jobs: Sequence[Job], at_once: int, say: Callable[[str], object]
) -> Iterator[Outcome]:
    """Run jobs and yield the mutants' outcomes; report runs without a fault as progress."""
    for outcome in _run_nursery(jobs, at_once or os.cpu_count() or 1):
        if outcome.name.isdigit():
            yield outcome
        else:
            say(f"{WITHOUT_FAULT} {outcome.seconds:5.1f} s  {outcome.name}")


def _run_nursery(jobs: Sequence[Job], at_once: int) -> Iterator[Outcome]:
    """Run jobs in a process that has not imported the product, and yield all outcomes.

    Those of the runs without a fault have the name of a file of tests.
    """
    if not jobs:
        return
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "jobs.json")
        asked.write_text(json.dumps([asdict(job) for job in jobs]))
        names = {job.name for job in jobs}
        command = [sys.executable, "-m", "tests.prove.mutate.nursery", str(asked), str(at_once)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as nursery:
            for line in nursery.stdout or ():
                outcome = _read_outcome(json.loads(line))
                names.discard(outcome.name)
                yield outcome
        if names:
            raise RuntimeError(f"{len(names)} mutants were not run: the process for them ended")


def _read_outcome(document: dict[str, Any]) -> Outcome:
    return Outcome(
        name=document["name"],
        verdict=Verdict(document["verdict"]),
        failed=tuple(document["failed"]),
        tests=tuple(document["tests"]),
        seconds=document["seconds"],
        seconds_to_load=document["seconds_to_load"],
        seconds_by_test=document["seconds_by_test"],
        output=document["output"],
    )
