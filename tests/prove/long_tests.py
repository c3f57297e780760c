"""The tests that take a minute each, because they wait for an account, a build or a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.prove.mutants.mutant import ROOT
from tests.prove.proof import Proof, Proving

_WHERE = ("local_account", "infra", "cli/scan", "architecture")
_AT_ONCE = 2
_DONE, _COUNT = re.compile(r"\[ *(\d+)%\]"), re.compile(r"(\d+) (passed|skipped|failed|error)")
OUTPUT = ROOT / "build" / "prove" / "long_tests.txt"


def long_tests(proving: Proving) -> None:
    """Run them in processes of their own; what they print is kept in OUTPUT."""
    command = [sys.executable, "-m", "pytest", "-vm", "long", "-n", str(_AT_ONCE)]
    command += ["--dist=loadfile", "--no-loadscope-reorder"]
    command += [str(Path("tests", each)) for each in _WHERE]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    with (
        OUTPUT.open("w") as kept,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as pytest,
    ):
        for line in pytest.stdout or ():
            kept.write(line)
            kept.flush()
            for share in _DONE.findall(line):
                proving.progress(int(share) / 100)
    said = OUTPUT.read_text().splitlines()
    proving.note({word: int(count) for count, word in _COUNT.findall(said[-1])})
    proving.holds("\n".join(["each of them passes", *said[-40:]]), whether=pytest.returncode == 0)


LONG_TESTS = (Proof("long_tests", "What takes minutes works as the quick tests do.", long_tests),)
