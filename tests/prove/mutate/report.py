"""Say what happened to the mutants, show the survivors as differences, and give the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff

from tests.prove.mutate.choice import ChosenMutant
from tests.prove.mutate.equivalents import LIST, Equivalent, list_faults
from tests.prove.mutate.nursery import Verdict
from tests.source_files import ROOT

# The share of mutants, without equivalents, that the tests must notice.
LEAST_SCORE = 0.96
NOTICED = (Verdict.KILLED, Verdict.OVERRAN)
_MOST_TESTS_SHOWN = 6


@dataclass(frozen=True)
class Judgement:
    """What happened to one mutant.

    `tests` are those that ran against it, out of `possible_tests` that run its line. `failed` are
    the tests that noticed it.
    """

    mutant: ChosenMutant
    verdict: Verdict
    is_equivalent: bool = False
    tests: tuple[str, ...] = ()
    possible_tests: int = 0
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    output: str = ""

    @property
    def is_survivor(self) -> bool:
        """True if no test noticed the mutant, and nobody has listed it as equivalent."""
        return self.verdict not in NOTICED and not self.is_equivalent

    @property
    def line_of_progress(self) -> str:
        """The judgement on one line."""
        word = "equivalent" if self.is_equivalent else self.verdict.value
        mutation = self.mutant.mutation
        return f"{word:<10} {self.seconds:5.1f} s  {self.mutant.where}  {mutation.operator}"


@dataclass(frozen=True)
class Score:
    """The figures of a run."""

    mutants: int
    noticed: int
    equivalents: int

    @property
    def share(self) -> float:
        """The noticed share of all mutants that count; 1 if none counts."""
        counted = self.mutants - self.equivalents
        return self.noticed / counted if counted else 1.0

    @property
    def sentence(self) -> str:
        """The score for people."""
        return (
            f"score {self.share:.1%}: tests noticed {self.noticed} of "
            f"{self.mutants - self.equivalents} mutants ({self.equivalents} equivalent ones do not "
            "count)"
        )


def score_of(judgements: Sequence[Judgement]) -> Score:
    """Count the outcomes of a run."""
    counted = [judgement for judgement in judgements if not judgement.is_equivalent]
    noticed = [judgement for judgement in counted if judgement.verdict in NOTICED]
    return Score(len(judgements), len(noticed), len(judgements) - len(counted))


def list_failures(
    judgements: Sequence[Judgement],
    entries: Sequence[Equivalent],
    least_score: float = LEAST_SCORE,
) -> list[str]:
    """Return a sentence for each reason why the run fails; empty if it passes.

    Args:
        judgements: What became of each mutant.
        entries: The reviewed list of equivalent mutants.
        least_score: The share of the mutants that the tests must notice.
    """
    score = score_of(judgements)
    failures = list_faults(entries, score.equivalents, score.mutants)
    if score.share < least_score:
        failures.append(
            f"{score.sentence}; at least {least_score:.0%} is required. Add an assertion to a test "
            "that runs the line of a survivor, or a test if there is none. If nobody could notice "
            f"the change, add it to {LIST.relative_to(ROOT)} with the reason"
        )
    return failures


def describe_survivor(judgement: Judgement) -> str:
    """Return the place, the difference, the tests that ran, and the key for the reviewed list."""
    mutant = judgement.mutant
    lines = [
        f"{mutant.where}  {mutant.mutation.operator} in {mutant.mutation.function or 'module'}"
    ]
    lines += [f"    {line}" for line in difference(mutant)]
    lines.append(f"    {_say_tests(judgement)}")
    lines += [f"      {test}" for test in judgement.tests[:_MOST_TESTS_SHOWN]]
    if judgement.verdict is Verdict.BROKEN:
        lines.append(f"    the tests ended without an answer: {judgement.output[-300:]}")
    lines.append(f"    line: {mutant.old_line!r}  change: {mutant.change!r}")
    return "\n".join(lines)


def difference(mutant: ChosenMutant) -> list[str]:
    """Return the mutant's difference from the source, with one line around it."""
    old, new = mutant.source.splitlines(), mutant.mutated_source.splitlines()
    lines = list(unified_diff(old, new, n=1, lineterm=""))
    return [line for line in lines[2:] if not line.startswith("@@")]


def _say_tests(judgement: Judgement) -> str:
    if not judgement.possible_tests:
        return "no test runs this line"
    if not judgement.tests or judgement.verdict is Verdict.NO_TEST:
        return "every test that runs this line fails without the fault too, so it says nothing"
    return f"{len(judgement.tests)} of {judgement.possible_tests} tests that run it passed:"
