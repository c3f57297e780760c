"""Mutants are what they say: one fragment of one function, and a test that fails by it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove.mutants.mutant import (
    ROOT,
    Mutant,
    NotApplicableError,
    Selection,
    mutated,
    mutated_source,
)
from tests.prove.mutants.proof import judge
from tests.prove.mutants.tables import SELECTIONS
from tests.prove.proof import Proving

SOURCE = '''"""Doc."""

MOST = 3


class Guard:
    limit = 3

    def holds(self, count: int) -> bool:
        return count <= self.limit


def holds(count: int) -> bool:
    return _both(
        count <= MOST,
        count >= 0,
    )
'''


def of(function: str, old: str, new: str = "0") -> str:
    return mutated_source(SOURCE, Mutant("it hurts", "a.module", function, f"«{old}»{new}»"))


@pytest.mark.parametrize(
    ("function", "old", "new", "line"),
    [
        ("MOST", "3", "4", "MOST = 4"),
        ("Guard.holds", "<=", "<", "        return count < self.limit"),
        ("holds", "_both(count <= MOST, count >= 0)", "True", "    return True"),
    ],
)
def test_one_fragment_changes_and_nothing_else(
    function: str, old: str, new: str, line: str
) -> None:
    changed = of(function, old, new).splitlines()
    assert line in changed
    assert set(changed) - set(SOURCE.splitlines()) == {line}


@pytest.mark.parametrize(
    ("function", "old"),
    [("holds", "self.limit"), ("holds", "count"), ("gone", "3"), ("Guard.gone", "3")],
)
def test_a_fragment_that_is_not_there_once_is_refused(function: str, old: str) -> None:
    with pytest.raises(NotApplicableError):
        of(function, old)


def test_a_module_that_is_not_there_or_does_not_compile_is_refused() -> None:
    with pytest.raises(NotApplicableError):
        mutated(Mutant("it hurts", "functions.gone", "f", "«a»b»"))
    with pytest.raises(NotApplicableError):
        mutated(Mutant("it hurts", "tests.prove.proof", "Proof", "name: «str»(»"))


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda each: each.tests[0])
def test_every_mutant_can_be_applied_and_its_tests_are_there(selection: Selection) -> None:
    for mutant in selection.mutants:
        assert mutated(mutant)
    for argument in selection.arguments:
        file, _, name = argument.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).exists()


def test_no_mutant_stands_twice() -> None:
    mutants = [each for selection in SELECTIONS for each in selection.mutants]
    assert len({(each.module, each.function, each.fault) for each in mutants}) == len(mutants)


def test_a_mutant_that_survives_fails_the_proof() -> None:
    killed = {"hurts": "a", "at": "m.f", "verdict": "killed", "by": "t", "seconds": "1"}
    proving = Proving()
    judge(proving, [{**killed, "hurts": str(n)} for n in range(90)])
    assert proving.failures == []
    judge(proving, [{**killed, "verdict": "survived"}])
    assert proving.failures == ["there are at least 80 mutants", "a: is killed (survived; m.f t)"]


def test_a_run_kills_a_mutant_and_leaves_the_source_as_it_is(tmp_path: Path) -> None:
    source = ROOT / "mendq" / "heal" / "guardrails.py"
    before = source.read_bytes()
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "tests.prove.mutants.nursery", "--results", str(results)]
    subprocess.run([*command, "a frozen account is written to"], cwd=ROOT, check=True)
    found = {each["verdict"]: each["by"] for each in json.loads(results.read_text())}
    assert found.keys() == {"holds", "killed"}
    assert found["killed"].startswith("tests/heal/test_guardrails.py::")
    assert source.read_bytes() == before
