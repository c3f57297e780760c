"""Pick a sample of all mutants of the product: the same seed and tree give the same sample."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.prove.guards.guard import module_of
from tests.prove.mutate.operators import (
    Mutation,
    apply_mutation,
    describe_change,
    list_mutations,
    old_line,
)
from tests.source_files import ROOT, list_files

PACKAGES = ("analytics", "functions", "infra", "mendq")


class NothingToMutateError(Exception):
    """No file of the product is below the path that the caller named."""


@dataclass(frozen=True)
class ChosenMutant:
    """A mutation with the source that it changes."""

    mutation: Mutation
    path: Path
    source: str

    @property
    def mutated_source(self) -> str:
        return apply_mutation(self.source, self.mutation)

    @property
    def old_line(self) -> str:
        return old_line(self.source, self.mutation)

    @property
    def change(self) -> str:
        """What is replaced by what, which tells it from other mutations of the same line."""
        return describe_change(self.source, self.mutation)

    @property
    def where(self) -> str:
        """The file and line, as editors and terminals open them."""
        return f"{self.path}:{self.mutation.span.line}"


def choose_mutants(seed: str, count: int, only: str = "") -> list[ChosenMutant]:
    """Return `count` mutants of the product, or all if there are fewer.

    Args:
        seed: Any text.
        count: How many mutants to choose.
        only: A file or folder of the product, relative to the repository; empty means all of it.

    Raises:
        NothingToMutateError: `only` names no file of the product.
    """
    mutants: list[ChosenMutant] = []
    for path in _list_product_files(only):
        source = path.read_text()
        mutants += [
            ChosenMutant(mutation, path.relative_to(ROOT), source)
            for mutation in list_mutations(module_of(path), source)
        ]
    if not mutants:
        raise NothingToMutateError(
            f"There is nothing to change in {only}: name a file or folder of {', '.join(PACKAGES)}."
        )
    random.Random(seed).shuffle(mutants)  # noqa: S311 - a sample that can be drawn again
    compilable = (mutant for mutant in mutants if _compiles(mutant))
    return list(islice(compilable, count))


def read_commit_hash() -> str:
    """Return the hash of the last commit: the seed of a run that names none."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout[:12]


def _list_product_files(only: str) -> list[Path]:
    files = list_files(*(f"{package}/*.py" for package in PACKAGES))
    wanted = (ROOT / only).resolve()
    return [path for path in files if path.is_relative_to(wanted)]


def _compiles(mutant: ChosenMutant) -> bool:
    try:
        compile(mutant.mutated_source, str(mutant.path), "exec")
    except SyntaxError:
        return False
    return True
