"""Change the product at random places and print each change that no test notices.

Run `make test COVERAGE=1` first: it records which tests run which line.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.prove.mutate.choice import NothingToMutateError, choose_mutants, read_commit_hash
from tests.prove.mutate.equivalents import load_equivalents
from tests.prove.mutate.report import describe_survivor, list_failures, score_of
from tests.prove.mutate.run import NoRecordingError, check_recording, judge_mutants
from tests.prove.mutate.selection import TestSelector


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return 0 if enough mutants are noticed, 1 if not, 2 if nothing could run."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove.mutate", description=__doc__)
    parser.add_argument("--seed", default="", help="any text; default: the hash of the last commit")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default: 300)")
    parser.add_argument("--only", default="", metavar="PATH", help="a file or folder to change")
    parser.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="TEST",
        help="a test, or a file of tests, to ask about every mutant first, such as a new one",
    )
    parser.add_argument("--at-once", type=int, default=0, help="processes; default: one per CPU")
    options = parser.parse_args(arguments)
    seed = options.seed or read_commit_hash()
    started = time.monotonic()
    try:
        mutants = choose_mutants(seed, options.count, options.only)
        warning = check_recording(mutants)
    except (NothingToMutateError, NoRecordingError) as error:
        _say(str(error))
        return 2
    if warning:
        _say(f"note: {warning}")
    _say(f"{len(mutants)} mutants with seed {seed}; the same again: --seed {seed}")
    entries = load_equivalents()
    judgements = judge_mutants(
        mutants,
        TestSelector.load(),
        entries,
        _say,
        further_tests=options.test,
        at_once=options.at_once,
    )
    for judgement in judgements:
        if judgement.is_survivor:
            _say(f"\n{describe_survivor(judgement)}")
    seconds = time.monotonic() - started
    _say(f"\n{score_of(judgements).sentence}")
    _say(f"{seconds:.0f} s, {seconds / max(1, len(judgements)):.1f} s for each mutant")
    failures = list_failures(judgements, entries)
    for failure in failures:
        _say(f"fails: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
