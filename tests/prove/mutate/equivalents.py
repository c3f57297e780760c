"""The reviewed list of equivalent mutants: faults that nobody could notice, each with its reason.

An entry names its mutant by the module, the function, the text of the line and the change, and
never by a line number, so that the list survives edits above the line.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from msgspec import convert

from tests.prove.mutate.choice import ChosenMutant

LIST = Path(__file__).with_name("equivalents.yaml")
# The largest share of a run that may be listed.
MOST_SHARE = 0.05
# A shorter text gives no reason.
SHORTEST_REASON = 40


@dataclass(frozen=True)
class Equivalent:
    """One reviewed mutant.

    Attributes:
        module: The dotted name of the module.
        function: The function with its classes; empty outside of functions.
        line: The first line of the changed text, without indentation.
        change: The kind of fault, and the old and the new text, as a run prints it.
        reason: Why nobody could notice the change.
    """

    module: str
    function: str
    line: str
    change: str
    reason: str

    def matches(self, mutant: ChosenMutant) -> bool:
        """Return True if the entry names this mutant."""
        mutation = mutant.mutation
        return (
            self.module == mutation.module
            and self.function == mutation.function
            and self.line == mutant.old_line
            and self.change == mutant.change
        )


def load_equivalents(path: Path = LIST) -> tuple[Equivalent, ...]:
    """Load the reviewed list."""
    return convert(yaml.safe_load(path.read_text()) or [], tuple[Equivalent, ...])


def is_listed(mutant: ChosenMutant, entries: Collection[Equivalent]) -> bool:
    """Return True if a person has listed the mutant as equivalent."""
    return any(entry.matches(mutant) for entry in entries)


def list_faults(entries: Sequence[Equivalent], listed_count: int, all_count: int) -> list[str]:
    """Return a sentence for each thing that is wrong with the list.

    Args:
        entries: All entries.
        listed_count: How many mutants of the run are listed.
        all_count: How many mutants the run has.
    """
    faults = [
        f"{LIST.name} gives no reason for {entry.change} in {entry.module}.{entry.function}: say "
        "why nobody could notice it"
        for entry in entries
        if len(entry.reason.strip()) < SHORTEST_REASON
    ]
    if listed_count > MOST_SHARE * all_count:
        faults.append(
            f"{listed_count} of {all_count} mutants of this run are listed in {LIST.name}, and at "
            f"most {MOST_SHARE:.0%} may be: write tests for some of them, or simplify the code"
        )
    return faults
