"""The long evidence: `python -m tests.prove [NAME ...]`; exit 1 when a claim fails."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from tests.prove.budgets import BUDGETS
from tests.prove.counted_nightly_runs import COUNTED_NIGHTLY_RUNS
from tests.prove.false_alarms import FALSE_ALARMS
from tests.prove.fault_points import FAULT_POINTS
from tests.prove.floods import FLOODS
from tests.prove.fuzz import FUZZ
from tests.prove.guards.proof import GUARDS
from tests.prove.long_tests import LONG_TESTS
from tests.prove.mutants.proof import MUTANTS
from tests.prove.proof import Proof
from tests.prove.races import RACES
from tests.prove.redrives import REDRIVES
from tests.prove.runner import keep, run, tabulate
from tests.prove.scans import SCANS
from tests.prove.storms import STORMS

# The longest first, so that no processor is left alone with one at last.
PROOFS: tuple[Proof, ...] = (
    *(*LONG_TESTS, *FAULT_POINTS, *REDRIVES, *STORMS, *RACES, *FUZZ),
    *(*FALSE_ALARMS, *BUDGETS, *FLOODS, *SCANS, *COUNTED_NIGHTLY_RUNS),
    *(*MUTANTS, *GUARDS),
)
FIGURES = Path(__file__).resolve().parents[2] / "build" / "prove" / "figures.json"
# No proof reaches a real account.
_NOBODY = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test"),
    **dict.fromkeys(("AWS_DEFAULT_REGION", "AWS_REGION"), "us-east-1"),
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/nonexistent"),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    names = [each.name for each in PROOFS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    chosen = parser.parse_args(arguments).names or names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no proof is called {', '.join(unknown)}: there are {', '.join(names)}")
    for variable in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
        os.environ.pop(variable, None)
    os.environ.update(_NOBODY)
    console = Console(width=None if sys.stdout.isatty() else 120, soft_wrap=True)
    results = run([each for each in PROOFS if each.name in chosen], console)
    tabulate(results, console)
    keep(results, FIGURES)
    console.print(f"figures: {FIGURES}")
    return 0 if all(each.holds for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
