"""Each mutant can be applied, and one that survives fails the proof."""

from __future__ import annotations

import pytest

from tests.prove.mutants.mutant import ROOT, NotApplicableError, Selection, mutated
from tests.prove.mutants.proof import judge
from tests.prove.mutants.tables import SELECTIONS
from tests.prove.proof import Proving


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda each: each.tests[0])
def test_every_mutant_can_be_applied_and_its_tests_are_there(selection: Selection) -> None:
    for mutant in selection.mutants:
        try:
            mutated(mutant)
        except NotApplicableError as fault:
            pytest.fail(
                f"{fault}. A mutant in tests/prove/mutants/*.yaml quotes code of {mutant.module} "
                "that was changed. If it protects a guard, quote the new code; otherwise delete "
                "the mutant."
            )
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
