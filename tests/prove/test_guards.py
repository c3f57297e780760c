"""The guard gate names untested guards and passes tested ones."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from coverage import CoverageData

from tests.prove.guards.guard import PRODUCT, Guard, guards_in, guards_of_product
from tests.prove.guards.nursery import GuardVerdict
from tests.prove.guards.proof import Findings, find, judge, within
from tests.prove.guards.recording import Recording
from tests.prove.guards.removal import NotFoundError, Switch, with_removable
from tests.prove.guards.review import MOST_ENTRIES, NEVER_LISTED, Entry, faults_in, load
from tests.prove.mutants.mutant import ROOT, path_of
from tests.prove.proof import Proving

SOURCE = '''
from mendq.model.plan import Escalate, Ignore, Refuse, Retry

def plain(frozen):
    """A guard under an `if`."""
    if frozen:
        return Refuse("frozen", "changes are frozen")
    return None

def branch(many):
    return Refuse("mass_symptom", "many") if many else None

def caught(call):
    try:
        call()
    except KeyError:
        return Retry("unavailable", "no answer")
    except ValueError:
        pass
    return None

def several(first):
    if first:
        return Retry("claimed", "another run")
    return Retry("claimed", "another case")

def each(number):
    yield Ignore("always", "it is so")
    for count in range(number):
        if count == 1:
            yield Ignore("once", "one")

def listed():
    return [Ignore("a", "first"), Ignore("b", "second")]

def why(name):
    if not name:
        return "it names no queue"
    return None

def reason(name) -> str | None:
    if not name:
        return "it names no queue"
    return None

def tabled(call):
    whys = {"own_call": call == "own", "elsewhere": call != "here"}
    return next((why for why, holds in whys.items() if holds), None)

def _unfit(reason) -> Refusal:
    return Escalate("unfit", reason)

class Writer:
    def write(self, pin):
        if pin is None:
            return _unfit("there is no pin")
        return None
'''
NAMES = [
    "plain: Refuse frozen",
    "branch: Refuse mass_symptom",
    "caught: except KeyError",
    "caught: Retry unavailable",
    "caught: except ValueError",
    "several: Retry claimed if first",
    "several: Retry claimed another case",
    "each: Ignore always",
    "each: Ignore once",
    "listed: Ignore a",
    "listed: Ignore b",
    "reason: why not: it names no queue",
    "tabled: answer own_call",
    "tabled: answer elsewhere",
    "_unfit: Escalate unfit",
    "Writer.write: _unfit there is no pin",
]
GUARDS = guards_in("made_up", SOURCE, [("made_up", "_unfit")])
REFUSALS = [guard for guard in GUARDS if guard.is_refusal]


def test_each_guard_of_a_module_is_found_and_named_by_function_kind_and_code_or_reason() -> None:
    assert [guard.name.removeprefix("made_up.") for guard in GUARDS] == NAMES


def test_guards_keep_their_names_if_lines_are_added_above() -> None:
    moved = guards_in("made_up", f"\n\n\n{SOURCE}", [("made_up", "_unfit")])
    assert [guard.name for guard in moved] == [guard.name for guard in GUARDS]


def test_product_guards_have_unique_names_and_can_all_be_removed() -> None:
    guards = guards_of_product()
    assert len({guard.name for guard in guards}) == len(guards)
    names = {guard.name for guard in guards}
    assert "mendq.heal.guardrails.refuse_if_frozen: Refuse frozen" in names
    assert (
        sum("PolicyWriter._refuse_unless_pinned: _make_pin_refusal" in name for name in names) == 5
    )
    for module in {guard.module for guard in guards}:
        refusals = [guard for guard in guards if guard.module == module and guard.is_refusal]
        assert with_removable((ROOT / path_of(module)).read_text(), refusals)


def _codes(answer: Any) -> Any:
    """Show a function's answer by the codes of its refusals."""
    if isinstance(answer, str | None):
        return answer
    return answer.code if hasattr(answer, "code") else [refusal.code for refusal in answer]


def _raise(kind: type[Exception]) -> None:
    raise kind


# For each refusal: a call that produces it, and the answer with and without the guard.
CALLS: dict[str, tuple[str, Any, Any]] = {
    "plain: Refuse frozen": ("plain(True)", "frozen", None),
    "branch: Refuse mass_symptom": ("branch(True)", "mass_symptom", None),
    "caught: Retry unavailable": ("caught(lambda: fail(KeyError))", "unavailable", KeyError),
    "several: Retry claimed if first": ("several(True)", "claimed", "claimed"),
    "several: Retry claimed another case": ("several(False)", "claimed", "claimed"),
    "each: Ignore always": ("each(0)", ["always"], []),
    "each: Ignore once": ("each(2)", ["always", "once"], ["always"]),
    "listed: Ignore a": ("listed()", ["a", "b"], ["b"]),
    "listed: Ignore b": ("listed()", ["a", "b"], ["a"]),
    "reason: why not: it names no queue": ("reason('')", "it names no queue", None),
    "tabled: answer own_call": ("tabled('own')", "own_call", "elsewhere"),
    "tabled: answer elsewhere": ("tabled('there')", "elsewhere", None),
    "_unfit: Escalate unfit": ("_unfit('x')", "unfit", None),
    "Writer.write: _unfit there is no pin": ("Writer().write(None)", "unfit", None),
}


@pytest.mark.parametrize("guard", REFUSALS, ids=lambda guard: guard.name)
def test_code_with_a_removed_guard_answers_as_if_the_guard_were_not_written(guard: Guard) -> None:
    call, usual, otherwise = CALLS[guard.name.removeprefix("made_up.")]
    module = ModuleType("made_up")
    module.__dict__["fail"] = _raise
    exec(compile(with_removable(SOURCE, REFUSALS), "made_up.py", "exec"), module.__dict__)  # noqa: S102
    switch = Switch()
    switch.install()
    assert _codes(eval(call, module.__dict__)) == usual  # noqa: S307
    switch.removed = guard.name
    if isinstance(otherwise, type):
        with pytest.raises(otherwise):
            eval(call, module.__dict__)  # noqa: S307
        return
    assert _codes(eval(call, module.__dict__)) == otherwise  # noqa: S307
    if usual == otherwise:
        reasons = {eval(call, module.__dict__).reason}  # noqa: S307
        switch.removed = ""
        assert reasons.isdisjoint({eval(call, module.__dict__).reason})  # noqa: S307


def test_removing_a_guard_that_is_not_in_the_source_raises_not_found_error() -> None:
    (guard,) = guards_in("made_up", "\n\ndef other():\n    return Ignore('a', 'b')\n")
    with pytest.raises(NotFoundError):
        with_removable(SOURCE, [guard])


def _recording(tmp_path: Path, lines: dict[str, list[int]]) -> Recording:
    """Return the recording of tests that ran these lines of `mendq/heal/made_up.py`."""
    data = CoverageData(str(tmp_path / "data"))
    for test, ran in lines.items():
        data.set_context(f"{test}|run" if test else "")
        data.add_lines({str(ROOT / "mendq" / "heal" / "made_up.py"): ran})
    return Recording(data, {"tests/heal/test_a.py::test_slow": 5.0}, {"tests/aws/test_b.py": 1.0})


def _line(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


MADE_UP_GUARDS = guards_in("mendq.heal.made_up", SOURCE)
SLOW = "tests/heal/test_a.py::test_slow"
NEAR = "tests/heal/test_a.py::test_near"
FAR = "tests/aws/test_b.py::test_far"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A recording in which three tests ran one guard, and only an import ran two others."""
    frozen = _line('"frozen"')
    on_import = [_line('"once"'), _line('"mass_symptom"')]
    return _recording(tmp_path, {"": on_import, FAR: [frozen], SLOW: [frozen], NEAR: [frozen]})


def test_recording_lists_tests_of_a_guard_one_per_file_in_turn_and_its_own_package_first(
    recording: Recording,
) -> None:
    by_name = {guard.name.removeprefix("mendq.heal.made_up."): guard for guard in MADE_UP_GUARDS}
    assert recording.tests_for(by_name["plain: Refuse frozen"]) == [NEAR, FAR, SLOW]
    assert recording.tests_for(by_name["each: Ignore once"]) == []


def test_guards_run_by_no_test_or_only_outside_of_tests_of_their_package_are_reported(
    recording: Recording,
) -> None:
    findings = find(MADE_UP_GUARDS, recording)
    unseen = {name.removeprefix("mendq.heal.made_up.") for name in findings.never_run}
    assert {"caught: except ValueError", "caught: Retry unavailable"} <= unseen
    assert unseen.isdisjoint({"plain: Refuse frozen", "each: Ignore once"})
    assert "mendq.heal.made_up.each: Ignore once" in findings.only_elsewhere


def test_tests_of_a_guard_are_limited_to_the_given_seconds_but_to_at_least_one_test(
    recording: Recording,
) -> None:
    assert within([NEAR, SLOW, FAR], recording, 3, 2.0) == [NEAR]
    assert within([SLOW, NEAR], recording, 3, 2.0) == [SLOW]


def test_recording_prefers_tests_that_name_the_refusal_code_over_tests_of_the_package(
    tmp_path: Path,
) -> None:
    """This test's own code has the refusal code `frozen`."""
    guards = guards_in("mendq.heal.made_up", SOURCE)
    (guard,) = (guard for guard in guards if guard.what == "Refuse frozen")
    name = "test_recording_prefers_tests_that_name_the_refusal_code_over_tests_of_the_package"
    here = f"{Path(__file__).relative_to(ROOT)}::{name}"
    near = "tests/heal/test_that_is_not_there.py::test_a"
    frozen = _line('"frozen"')
    recording = _recording(tmp_path, {near: [frozen], here: [frozen]})
    assert recording.tests_for(guard) == [here, near]


def _list_failures(findings: Findings, *entries: Entry, guards: list[Guard] = GUARDS) -> list[str]:
    proving = Proving()
    judge(proving, guards, findings, entries)
    return proving.failures


def _make_answers(*without: str) -> dict[str, Mapping[str, Any]]:
    """Return the answers of a run in which each removal was noticed, except `without`."""
    return {
        guard.name: {"verdict": GuardVerdict.NOTICED, "tests": ["tests/x.py::test_a"]}
        for guard in REFUSALS
        if guard.name not in without
    }


def test_guard_gate_passes_if_every_guard_is_run_and_every_removal_noticed() -> None:
    assert _list_failures(Findings(answers=_make_answers())) == []


def test_guard_gate_names_guards_never_run_never_produced_or_removed_unnoticed() -> None:
    branch = "made_up.caught: except ValueError"
    unproduced = "made_up.plain: Refuse frozen"
    unnoticed = "made_up.listed: Ignore a"
    answers = _make_answers(unproduced)
    answers[unnoticed] = {"verdict": GuardVerdict.UNNOTICED, "tests": ["tests/x.py::test_a"]}
    failures = _list_failures(Findings({branch, unproduced}, answers=answers))
    assert len(failures) == 3
    for name, words in ((branch, "runs"), (unproduced, "produces"), (unnoticed, "is removed")):
        assert any(name in failure and words in failure for failure in failures), failures


def test_guard_gate_passes_guards_that_the_reviewed_list_has_and_still_names_the_others() -> None:
    branch = "made_up.caught: except ValueError"
    unproduced = "made_up.plain: Refuse frozen"
    unnoticed = "made_up.listed: Ignore a"
    answers = _make_answers(unproduced)
    answers[unnoticed] = {"verdict": GuardVerdict.UNNOTICED, "tests": ["tests/x.py::test_a"]}
    entries = [Entry(name, "No test can reach it, because " * 2) for name in (branch, unnoticed)]
    (left,) = _list_failures(Findings({branch, unproduced}, answers=answers), *entries)
    assert unproduced in left


def test_guard_gate_fails_if_a_removal_has_no_answer() -> None:
    name = "made_up.listed: Ignore b"
    (failure,) = _list_failures(Findings(answers=_make_answers(name)))
    assert name in failure


REASON = "The interpreter raises this only if the machine has no memory left."


def test_reviewed_list_entry_of_a_missing_guard_is_reported() -> None:
    (fault,) = faults_in([Entry("made_up.renamed: Refuse frozen", REASON)], GUARDS)
    assert "made_up.renamed: Refuse frozen, which is not in the code" in fault


def test_reviewed_list_accepts_an_entry_once_and_rejects_it_twice() -> None:
    entry = Entry(GUARDS[2].name, REASON)
    assert list(faults_in([], GUARDS)) == []
    assert list(faults_in([entry], GUARDS)) == []
    (fault,) = faults_in([entry, entry], GUARDS)
    assert "2 times" in fault


def test_reviewed_list_rejects_an_entry_whose_reason_is_too_short() -> None:
    (fault,) = faults_in([Entry(GUARDS[2].name, "hard to test")], GUARDS)
    assert "no reason" in fault


def test_reviewed_list_rejects_more_than_15_entries() -> None:
    many = "\n".join(f"def f{n}():\n    return Ignore('a', 'b')" for n in range(MOST_ENTRIES + 1))
    guards = guards_in("made_up", many)
    entries = [Entry(guard.name, REASON) for guard in guards]
    assert list(faults_in(entries[:-1], guards)) == []
    (fault,) = faults_in(entries, guards)
    assert "at most 15" in fault


def test_reviewed_list_rejects_refusals_that_protect_a_queue_from_changes() -> None:
    for package in NEVER_LISTED:
        refusal = guards_in(package, "def f():\n    return Ignore('a', 'b')\n")
        other = GUARDS
        (fault,) = faults_in([Entry(refusal[0].name, REASON)], [*refusal, *other])
        assert "Write a test" in fault
    branch = guards_in(
        NEVER_LISTED[0], "def f():\n    try:\n        g()\n    except OSError:\n        pass\n"
    )
    assert list(faults_in([Entry(branch[0].name, REASON)], branch)) == []


def test_reviewed_list_and_its_package_rules_match_the_product() -> None:
    assert list(faults_in(load(), guards_of_product())) == []
    for package in NEVER_LISTED:
        path = ROOT / Path(*package.split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), package
    assert all((ROOT / package).is_dir() for package in PRODUCT)


# The second test notes the folder of assemblies that it would use.
MADE_UP_TESTS = """
import os
from made_up import branch, listed, plain, several

def test_frozen_is_refused():
    assert plain(True).code == "frozen"

def test_listed_is_called_and_nothing_asserted():
    listed()
    with open("assemblies.txt", "a") as file:
        file.write(os.environ.get("MENDQ_TEST_ASSEMBLIES", "shared") + "\\n")

def test_fails_with_every_guard_in_place():
    assert not several(True)

def test_ends_because_of_its_guard():
    while not branch(True):
        pass
"""
SCRIPT = """
import json, sys
from pathlib import Path
from tests.prove.guards import nursery as guard_nursery
from tests.prove.guards.guard import guards_in
# On a busy machine the limit of wall-clock time must not come before that of CPU time.
guard_nursery._MOST_TIMES_SLOWER = 1_000
root = Path(sys.argv[1])
sys.path.insert(0, str(root))
guards = guards_in("made_up", (root / "made_up.py").read_text())
jobs = json.loads((root / "jobs.json").read_text())
options = ["--rootdir", str(root), "-c", "/dev/null"]
nursery = guard_nursery.run(guards, jobs, options, root=root, seconds_each=5)
found = {name: [answer.verdict, *answer.failed] for name, answer in nursery.answers.items()}
(root / "results.json").write_text(json.dumps([found, nursery.failing]))
"""


@pytest.mark.long
def test_nursery_tells_noticed_unnoticed_and_endless_guard_removals_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "made_up.py").write_text(SOURCE)
    file = tmp_path / "test_made_up.py"
    file.write_text(MADE_UP_TESTS)
    frozen, listed, failing, endless = (
        f"test_made_up.py::{node.name}"
        for node in ast.parse(MADE_UP_TESTS).body
        if isinstance(node, ast.FunctionDef)
    )
    jobs = {
        "made_up.plain: Refuse frozen": [listed, frozen],
        "made_up.listed: Ignore a": [frozen, listed],
        "made_up.several: Retry claimed if first": [failing],
        "made_up.branch: Refuse mass_symptom": [endless],
    }
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "results.json").exists(), done.stdout + done.stderr
    answers, fails_anyway = json.loads((tmp_path / "results.json").read_text())
    assert answers == {
        "made_up.plain: Refuse frozen": [GuardVerdict.NOTICED, frozen],
        "made_up.listed: Ignore a": [GuardVerdict.UNNOTICED],
        "made_up.several: Retry claimed if first": [GuardVerdict.UNNOTICED],
        "made_up.branch: Refuse mass_symptom": [GuardVerdict.OVERRAN],
    }
    assert fails_anyway == [failing]
    assert (tmp_path / "made_up.py").read_text() == SOURCE
    without_fault, *with_fault = (tmp_path / "assemblies.txt").read_text().split()
    assert without_fault == "shared"
    assert len({"shared", *with_fault}) == 3, "a fault's assemblies must not reach other runs"
