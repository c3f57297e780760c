"""The tests that take a minute each, because they wait for an account, a build or a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.prove.mutants.mutant import ROOT
from tests.prove.proof import Proof, Proving

_OPTIONS = ("-vm", "long", "-n2", "--dist=loadfile", "--no-loadscope-reorder")
_DONE, _COUNT = re.compile(r"\[ *(\d+)%\]"), re.compile(r"(\d+) (passed|skipped|failed|error)")
OUTPUT = ROOT / "build" / "prove" / "long_tests.txt"


def long_tests(proving: Proving) -> None:
    """Run the long tests in separate processes and store their output in OUTPUT.

    They bring credentials of their own, and those of the proofs would go before them.
    """
    variables = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    command = [sys.executable, "-m", "pytest", *_OPTIONS, "tests"]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    with (
        OUTPUT.open("w", buffering=1) as kept,
        subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
        ) as pytest,
    ):
        for line in pytest.stdout or ():
            kept.write(line)
            for share in _DONE.findall(line):
                proving.progress(int(share) / 100)
    said = OUTPUT.read_text().splitlines()
    proving.note({word: int(count) for count, word in _COUNT.findall(said[-1])})
    proving.holds("\n".join(["each of them passes", *said[-40:]]), whether=pytest.returncode == 0)


LONG_TESTS = (Proof("long_tests", "What takes minutes works as the quick tests do.", long_tests),)
