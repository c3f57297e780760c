"""Each mutant can be applied, and one that survives fails the proof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove.mutants.mutant import (
    ROOT,
    NotApplicableError,
    Selection,
    compile_mutant,
    mutated_source,
    path_of,
)
from tests.prove.mutants.proof import judge
from tests.prove.mutants.tables import SELECTIONS
from tests.prove.proof import Proving


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda each: each.tests[0])
def test_every_mutant_quotes_existing_code_and_names_existing_tests(selection: Selection) -> None:
    for mutant in selection.mutants:
        try:
            compile_mutant(mutant)
        except NotApplicableError as fault:
            pytest.fail(
                f"{fault}. A mutant in tests/prove/mutants/*.yaml quotes code of {mutant.module} "
                "that was changed. If it protects a guard, quote the new code; otherwise delete "
                "the mutant."
            )
    for argument in selection.arguments:
        file, _, name = argument.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).exists()


def test_no_mutant_uses_a_name_that_its_module_does_not_define(tmp_path: Path) -> None:
    """Such a mutant ends with a NameError, so any test kills it and it proves nothing."""
    hurts_by_file_name: dict[str, str] = {}
    for selection in SELECTIONS:
        for mutant in selection.mutants:
            file_name = f"mutant_{len(hurts_by_file_name)}.py"
            hurts_by_file_name[file_name] = mutant.hurts
            source = (ROOT / path_of(mutant.module)).read_text()
            (tmp_path / file_name).write_text(mutated_source(source, mutant))
    options = ["check", "--isolated", "--select", "F821", "--output-format", "json"]
    finished = subprocess.run(
        [Path(sys.executable).parent / "ruff", *options, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    unknown_names = [
        f"{hurts_by_file_name[Path(fault['filename']).name]}: {fault['message']}"
        for fault in json.loads(finished.stdout)
    ]
    assert unknown_names == []


def test_no_two_mutants_plant_the_same_fault() -> None:
    mutants = [mutant for selection in SELECTIONS for mutant in selection.mutants]
    assert len({(mutant.module, mutant.function, mutant.fault) for mutant in mutants}) == len(
        mutants
    )


def test_mutants_proof_fails_if_one_mutant_survives_or_fewer_than_80_are_run() -> None:
    killed = {"hurts": "a", "at": "m.f", "verdict": "killed", "by": "t", "seconds": "1"}
    proving = Proving()
    judge(proving, [{**killed, "hurts": str(n)} for n in range(90)])
    assert proving.failures == []
    judge(proving, [{**killed, "verdict": "survived"}])
    assert proving.failures == ["there are at least 80 mutants", "a: is killed (survived; m.f t)"]
