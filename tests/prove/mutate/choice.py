"""Pick a sample of all mutants of the product: the same seed and tree give the same sample."""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Sequence
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
        """The old and the new text, which differ for all mutations of the same line."""
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
    ranked: list[tuple[str, ChosenMutant]] = []
    for path in _list_product_files(only):
        source = path.read_text()
        mutations = list_mutations(module_of(path), source)
        mutants = [ChosenMutant(mutation, path.relative_to(ROOT), source) for mutation in mutations]
        ranked += zip(_make_ranks(seed, mutations, source), mutants, strict=True)
    if not ranked:
        raise NothingToMutateError(
            f"There is nothing to change in {only}: name a file or folder of {', '.join(PACKAGES)}."
        )
    ranked.sort(key=lambda pair: pair[0])
    compilable = (mutant for _, mutant in ranked if _compiles(mutant))
    return list(islice(compilable, count))


def _make_ranks(seed: str, mutations: Sequence[Mutation], source: str) -> list[str]:
    """Return a number for each mutation that the seed makes random, and that an edit leaves alone.

    The number depends on the mutation and the text of its line, and not on what is around it. So a
    fixed seed keeps its sample, except for mutants of lines that were edited.
    """
    lines = source.splitlines()
    times: Counter[str] = Counter()
    ranks = []
    for mutation in mutations:
        line = lines[mutation.span.line - 1].strip()
        place = f"{mutation.module}|{mutation.function}|{line}"
        key = f"{seed}|{place}|{mutation.operator}|{mutation.new_text}"
        times[key] += 1
        ranks.append(hashlib.sha256(f"{key}|{times[key]}".encode()).hexdigest())
    return ranks


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
