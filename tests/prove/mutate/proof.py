"""The proof that tests notice random faults: a fixed sample in `make prove`, 300 in evidence."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.prove.mutate.choice import choose_mutants
from tests.prove.mutate.equivalents import Equivalent, load_equivalents
from tests.prove.mutate.report import (
    LEAST_SCORE,
    Judgement,
    describe_survivor,
    list_failures,
    score_of,
)
from tests.prove.mutate.run import (
    WITHOUT_FAULT,
    NoRecordingError,
    check_recording,
    judge_mutants,
)
from tests.prove.mutate.selection import TestSelector
from tests.prove.proof import Proof, Proving

QUICK_COUNT = 30
QUICK_SEED = "0"
COUNT = 300
# So few mutants say little about all: one that is not noticed is 3 %. The sample shows that the
# run works and that no package lost its tests; `make evidence` asks for LEAST_SCORE.
QUICK_LEAST_SCORE = 0.75


def prove_random_mutants(proving: Proving) -> None:
    """Run 300 mutants, chosen by the seed of the evidence."""
    _prove(proving, str(proving.seed), COUNT, LEAST_SCORE)


def prove_fixed_mutants(proving: Proving) -> None:
    """Run a few dozen mutants, which are the same on every run of the same tree."""
    _prove(proving, QUICK_SEED, QUICK_COUNT, QUICK_LEAST_SCORE)


def _prove(proving: Proving, seed: str, count: int, least_score: float) -> None:
    mutants = choose_mutants(seed, count)
    try:
        check_recording(mutants)
    except NoRecordingError as error:
        proving.holds(f"coverage is recorded. {error}", whether=False)
        return
    entries = load_equivalents()
    done = 0

    def note_progress(line: str) -> None:
        nonlocal done
        done += not line.startswith(WITHOUT_FAULT)
        proving.progress(min(1.0, done / len(mutants)))

    with proving.measure_seconds("seconds_to_run_mutants"):
        judgements = judge_mutants(mutants, TestSelector.load(), entries, note_progress)
    judge(proving, judgements, entries, least_score)


def judge(
    proving: Proving,
    judgements: Sequence[Judgement],
    entries: Sequence[Equivalent],
    least_score: float = LEAST_SCORE,
) -> None:
    """Note the figures, print the survivors, and ask the claims."""
    score = score_of(judgements)
    proving.figure("mutants", score.mutants)
    proving.figure("noticed", score.noticed)
    proving.figure("equivalent", score.equivalents)
    proving.figure("score_percent", round(100 * score.share, 1))
    survivors = [judgement for judgement in judgements if judgement.is_survivor]
    proving.figure("without_a_test", sum(not judgement.possible_tests for judgement in survivors))
    for survivor in survivors:
        print(f"\n{describe_survivor(survivor)}", file=sys.stderr)  # noqa: T201
    failures = list_failures(judgements, entries, least_score)
    for failure in failures or ["the tests notice enough of the mutants"]:
        proving.holds(failure, whether=not failures)


RANDOM_MUTANTS = (
    Proof(
        "random_mutants",
        "The tests notice small faults at random places.",
        prove_random_mutants,
        prove_fixed_mutants,
        alone=True,
    ),
)
