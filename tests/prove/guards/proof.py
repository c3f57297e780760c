"""The proof that each guard is tested, and that its test notices when the guard is gone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.prove.guards.guard import Guard, guards_of_product
from tests.prove.guards.nursery import DONE, GuardVerdict
from tests.prove.guards.recording import OUTPUT, Recording, record, why_not_current
from tests.prove.guards.review import LIST, Entry, faults_in, load
from tests.prove.mutants.mutant import ROOT
from tests.prove.proof import Proof, Proving

# How many tests, and seconds of tests, may notice a removal: first a few, then more if none did.
# The last round is for lines that hundreds of tests run and few assert: which of them come first
# depends on how long they took.
ROUNDS = ((6, 20.0), (60, 120.0), (500, 400.0))
LONGEST_SECONDS = 1_800
_OR_LIST = f"If no test can, add it to {LIST.relative_to(ROOT)} with the reason"


@dataclass
class Findings:
    """Results about the guards, by their names."""

    never_run: set[str] = field(default_factory=set)
    only_elsewhere: set[str] = field(default_factory=set)
    tests_of: dict[str, Sequence[str]] = field(default_factory=dict)
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)


def prove_guards(proving: Proving) -> None:
    """Record coverage if it is missing or out of date, remove each refusal, and judge."""
    why = why_not_current()
    if why:
        _say(proving, f"{why}: recording it with `make test COVERAGE=1`, which takes minutes")
        with proving.measure_seconds("seconds_to_record_coverage"):
            record(lambda share: _say(proving, f"recording coverage, {share}"))
        why = why_not_current()
        proving.holds(f"coverage is recorded ({why}; see {OUTPUT})", whether=not why)
        if why:
            return
    recording = Recording.load()
    failed = ", ".join(recording.failed[:5])
    proving.holds(f"every test passes (failed: {failed})", whether=not recording.failed)
    guards = guards_of_product()
    findings = find(guards, recording)
    with proving.measure_seconds("seconds_to_remove_guards"):
        remove(guards, recording, findings, proving)
    judge(proving, guards, findings, load())


def find(guards: Iterable[Guard], recording: Recording) -> Findings:
    """Ask the recording which guards no test runs."""
    findings = Findings()
    for guard in guards:
        runs = recording.runs(guard)
        if guard.has_own_line and not runs:
            findings.never_run.add(guard.name)
        elif guard.is_refusal:
            tests = recording.tests_for(guard)
            findings.tests_of[guard.name] = tests
            if not tests:
                findings.only_elsewhere.add(guard.name)
    return findings


def remove(
    guards: Sequence[Guard], recording: Recording, findings: Findings, proving: Proving
) -> None:
    """Remove each refusal that tests produce, and note what those tests say."""
    left = [name for name, tests in findings.tests_of.items() if tests]
    for most, seconds in ROUNDS:
        jobs = _choose_jobs(left, recording, findings, most, seconds)
        results = _run_nursery(jobs, proving)
        findings.failing |= set(results["failing"])
        for name, answer in results["answers"].items():
            findings.answers[name] = {**answer, "tests": jobs[name]}
        left = [
            name
            for name in jobs
            if findings.answers.get(name, {}).get("verdict") == GuardVerdict.UNNOTICED
        ]


def _choose_jobs(
    names: Sequence[str], recording: Recording, findings: Findings, most: int, seconds: float
) -> dict[str, list[str]]:
    """Return for each guard the tests to run next; a guard whose tests all ran is left out."""
    jobs: dict[str, list[str]] = {}
    for name in names:
        tried = set(findings.answers.get(name, {}).get("tests", ()))
        tests = [test for test in findings.tests_of[name] if test not in tried]
        chosen = within(tests, recording, most, seconds)
        if chosen:
            jobs[name] = chosen
    return jobs


def within(tests: Sequence[str], recording: Recording, most: int, seconds: float) -> list[str]:
    """Return the first of the tests, at least one, up to a number and a sum of seconds."""
    chosen: list[str] = []
    spent = 0.0
    for test in tests[:most]:
        spent += recording.cost(test)
        if chosen and spent > seconds:
            break
        chosen.append(test)
    return chosen


def judge(
    proving: Proving, guards: Sequence[Guard], findings: Findings, entries: Sequence[Entry]
) -> None:
    """Ask one claim a guard; those in the reviewed list are asked nothing."""
    listed = {entry.guard for entry in entries}
    refusals = [guard for guard in guards if guard.is_refusal]
    verdicts = [answer["verdict"] for answer in findings.answers.values()]
    proving.figure("refusals", len(refusals))
    proving.figure("except_branches", len(guards) - len(refusals))
    proving.figure("guards_that_no_test_runs", len(findings.never_run))
    proving.figure("removals", len(findings.answers))
    proving.figure("removals_that_no_test_notices", verdicts.count(GuardVerdict.UNNOTICED))
    proving.figure("reviewed_entries", len(entries))
    # These need the process to themselves; for their guards other tests are chosen.
    proving.figure("tests_that_fail_in_a_fork", len(findings.failing))
    needless = listed - _with_findings(findings)
    proving.figure("reviewed_entries_that_are_tested_now", len(needless))
    for guard in guards:
        if guard.name not in listed:
            sentence = _fault_of(guard, findings)
            proving.holds(sentence or f"{guard.name} is tested", whether=not sentence)
    faults = list(faults_in(entries, guards))
    for fault in faults or [f"{LIST.name} names guards that exist, each with a reason"]:
        proving.holds(fault, whether=not faults)


def _with_findings(findings: Findings) -> set[str]:
    unnoticed = {
        name
        for name, answer in findings.answers.items()
        if answer["verdict"] not in (GuardVerdict.NOTICED, GuardVerdict.OVERRAN)
    }
    return findings.never_run | findings.only_elsewhere | unnoticed


def _fault_of(guard: Guard, findings: Findings) -> str:
    """Return what is missing and what to do; empty if the guard is tested."""
    where = f"tests/{guard.module.split('.')[1] if '.' in guard.module else guard.module}"
    if guard.name in findings.never_run and guard.is_refusal:
        return (
            f"a test produces {guard.name}. Write one in {where} that asserts that the refusal is "
            f"given and that nothing changes. {_OR_LIST}"
        )
    if guard.name in findings.never_run:
        return (
            f"a test runs {guard.name}. Write one in {where} that raises it and asserts what the "
            f"caller sees. {_OR_LIST}"
        )
    if guard.name in findings.only_elsewhere:
        return (
            f"a test produces {guard.name} in its own process: only processes that tests start "
            f"do, so no test can be chosen for its removal. Write one in {where}"
        )
    answer = findings.answers.get(guard.name)
    if not guard.is_refusal or (
        answer and answer["verdict"] in (GuardVerdict.NOTICED, GuardVerdict.OVERRAN)
    ):
        return ""
    if answer and answer["verdict"] == GuardVerdict.BROKEN:
        return f"the tests of {guard.name} end if it is removed: {answer['output'][-300:]}"
    tests: Collection[str] = answer["tests"] if answer else ()
    return (
        f"a test fails if {guard.name} is removed. {len(tests)} that produce it were run, such as "
        f"{', '.join(list(tests)[:2]) or 'none'}: assert there that the refusal is given and that "
        f"nothing changes. {_OR_LIST}"
    )


def _run_nursery(jobs: Mapping[str, Sequence[str]], proving: Proving) -> Mapping[str, Any]:
    """Run it in a process that has not loaded the product yet."""
    if not jobs:
        return {"answers": {}, "failing": []}
    files = {test.partition("::")[0] for tests in jobs.values() for test in tests}
    with tempfile.TemporaryDirectory() as folder:
        asked, results = Path(folder, "jobs.json"), Path(folder, "results.json")
        asked.write_text(json.dumps(jobs))
        command = [sys.executable, "-m", "tests.prove.guards.nursery", str(asked), str(results)]
        command += ["--longest-seconds", str(LONGEST_SECONDS)]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as nursery:
            done = 0
            said: list[str] = []
            for line in nursery.stdout or ():
                said.append(line)
                done += line.startswith(DONE)
                proving.progress(min(1.0, done / (len(files) + len(jobs))))
        if not results.exists():
            raise RuntimeError(f"the guards could not be removed: {''.join(said[-30:])}")
        found: Mapping[str, Any] = json.loads(results.read_text())
        if not found["answers"]:
            raise RuntimeError(f"no guard was removed: {''.join(said[-30:])}")
        return found


def _say(proving: Proving, text: str) -> None:
    print(f"  {proving.name}: {text}", file=sys.stderr, flush=True)  # noqa: T201


GUARDS = (
    Proof("guards", "Tests produce every refusal and notice its loss.", prove_guards, alone=True),
)
