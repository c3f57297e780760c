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
    total = len(SELECTIONS) + sum(len(each.mutants) for each in SELECTIONS)
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
    """Count what became of the mutants; each one that no test killed is a claim that fails."""
    with_one = [each for each in found if each["at"]]
    proving.figure("selections_of_tests", len(found) - len(with_one))
    proving.figure("mutants", len(with_one))
    for verdict in MutantVerdict:
        count = sum(each["verdict"] == verdict for each in with_one)
        if count or verdict in (
            MutantVerdict.KILLED,
            MutantVerdict.SURVIVED,
            MutantVerdict.NOT_APPLICABLE,
        ):
            proving.figure(str(verdict).replace(" ", "_"), count)
    proving.holds(f"there are at least {FEWEST} mutants", whether=len(with_one) >= FEWEST)
    for each in found:
        well = each["verdict"] in (MutantVerdict.KILLED, MutantVerdict.HOLDS)
        what = "is killed" if each["at"] else "passes"
        said = "" if well else f" ({each['verdict']}; {each['at']} {each['by'][-300:]})"
        proving.holds(f"{each['hurts']}: {what}{said}", whether=well)


MUTANTS = (Proof("mutants", "The tests notice each fault that would hurt.", mutants, alone=True),)
