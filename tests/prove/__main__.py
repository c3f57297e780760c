"""Proofs of the product's claims: `python -m tests.prove [NAME ...]`; exit 1 if a claim fails.

`make prove` and CI run the quick part of each proof with fixed inputs. `make evidence` runs
`python -m tests.prove --evidence`: everything, and random inputs from another seed each time.
"""

from __future__ import annotations

import argparse
import os
import secrets
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
from tests.prove.incidents import PROOF_OF_INCIDENTS
from tests.prove.kills import KILLED
from tests.prove.long_tests import LONG_TESTS
from tests.prove.mutants.proof import MUTANTS
from tests.prove.mutate.proof import RANDOM_MUTANTS
from tests.prove.proof import Proof
from tests.prove.races import RACES
from tests.prove.redrives import REDRIVES
from tests.prove.runner import keep, run, tabulate
from tests.prove.scans import SCANS
from tests.prove.storms import STORMS

# The longest first, so that no processor is left alone with one at last.
PROOFS: tuple[Proof, ...] = (
    *(*LONG_TESTS, *FAULT_POINTS, *REDRIVES, *KILLED, *STORMS, *RACES, *FUZZ),
    *(*FALSE_ALARMS, *PROOF_OF_INCIDENTS, *BUDGETS, *FLOODS, *SCANS, *COUNTED_NIGHTLY_RUNS),
    *(*MUTANTS, *GUARDS, *RANDOM_MUTANTS),
)
MOST_SEED = 1_000_000
FIGURES = Path(__file__).resolve().parents[2] / "build" / "prove" / "figures.json"
# No proof reaches a real account.
_NOBODY = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test"),
    **dict.fromkeys(("AWS_DEFAULT_REGION", "AWS_REGION"), "us-east-1"),
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/nonexistent"),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    names = [proof.name for proof in PROOFS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--evidence", action="store_true", help="run all of each proof")
    parser.add_argument("--seed", type=int, help="what random inputs begin with")
    options = parser.parse_args(arguments)
    chosen = options.names or names
    seed = options.seed
    if seed is None:
        seed = secrets.randbelow(MOST_SEED) if options.evidence else 0
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no proof is called {', '.join(unknown)}: there are {', '.join(names)}")
    for variable in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
        os.environ.pop(variable, None)
    os.environ.update(_NOBODY)
    console = Console(width=None if sys.stdout.isatty() else 120, soft_wrap=True)
    console.print(f"seed {seed}; the same inputs again: --seed {seed}")
    chosen_proofs = [proof for proof in PROOFS if proof.name in chosen]
    results = run(chosen_proofs, console, is_quick=not options.evidence, seed=seed)
    tabulate(results, console)
    keep(results, FIGURES)
    console.print(f"figures: {FIGURES}")
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
