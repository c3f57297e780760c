"""The proof that the tests notice: each mutant is one fault, and some test has to fail by it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.prove.mutants.mutant import ROOT
from tests.prove.mutants.nursery import MutantVerdict
from tests.prove.mutants.tables import SELECTIONS
from tests.prove.proof import Proof, Proving

FEWEST = 80
LONGEST_SECONDS = 1_800


def mutants(proving: Proving) -> None:
    """Run them all in a process that has not imported the product yet."""
    total = len(SELECTIONS) + sum(len(selection.mutants) for selection in SELECTIONS)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, "-m", "tests.prove.mutants.nursery"]
        command += ["--results", str(results), "--longest-seconds", str(LONGEST_SECONDS)]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as nursery:
            done = 0
            for line in nursery.stdout or ():
                done += not line.startswith(" ")
                proving.progress(min(1.0, done / total))
        found = json.loads(results.read_text()) if results.exists() else []
    judge(proving, found)


def judge(proving: Proving, found: list[dict[str, str]]) -> None:
    """Count the mutants by verdict. A mutant that no test killed is a claim that fails."""
    of_mutants = [result for result in found if result["at"]]
    proving.figure("selections_of_tests", len(found) - len(of_mutants))
    proving.figure("mutants", len(of_mutants))
    for verdict in MutantVerdict:
        count = sum(result["verdict"] == verdict for result in of_mutants)
        if count or verdict in (
            MutantVerdict.KILLED,
            MutantVerdict.SURVIVED,
            MutantVerdict.NOT_APPLICABLE,
        ):
            proving.figure(str(verdict).replace(" ", "_"), count)
    proving.holds(f"there are at least {FEWEST} mutants", whether=len(of_mutants) >= FEWEST)
    for result in found:
        well = result["verdict"] in (MutantVerdict.KILLED, MutantVerdict.HOLDS)
        what = "is killed" if result["at"] else "passes"
        said = "" if well else f" ({result['verdict']}; {result['at']} {result['by'][-300:]})"
        proving.holds(f"{result['hurts']}: {what}{said}", whether=well)


MUTANTS = (Proof("mutants", "The tests notice each fault that would hurt.", mutants, alone=True),)
