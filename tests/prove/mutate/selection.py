"""Pick the tests that can notice a mutant, the most specific first."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tests.prove.guards.guard import module_of
from tests.prove.guards.recorder import DATA
from tests.prove.guards.recording import Recording
from tests.prove.mutate.choice import PACKAGES
from tests.prove.mutate.operators import Mutation
from tests.source_files import list_files


class TestSelector:
    """Answers which tests run a mutated line, from recorded coverage."""

    __test__ = False  # a name that begins with Test is no test here

    def __init__(self, recording: Recording, breadths: Mapping[str, int]) -> None:
        """Select from a recording; `breadths` says how many lines each test runs."""
        self._recording = recording
        self._breadths = breadths

    @classmethod
    def load(cls) -> TestSelector:
        """Load what `make test COVERAGE=1` recorded."""
        return cls(Recording.load(), count_lines_by_test(DATA))

    def list_tests(self, mutation: Mutation) -> list[str]:
        """Return the tests that run the mutated line, the most specific first.

        First come tests in the file that is named after the module, then tests of the same package,
        and among these the tests that run the fewest lines. One test of each file comes before the
        second of any, because tests of one file tend to assert the same.
        """
        tests = self._find_tests(mutation)
        ranked = sorted(tests, key=lambda test: (*self._rank(test, mutation.module), test))
        by_file: dict[str, list[str]] = {}
        for test in ranked:
            by_file.setdefault(_file_of(test), []).append(test)
        turns = zip_longest(*by_file.values())
        return [test for turn in turns for test in turn if test is not None]

    def cost(self, test: str) -> float:
        """Return the seconds that a test took when coverage was recorded."""
        return self._recording.cost(test)

    def _find_tests(self, mutation: Mutation) -> set[str]:
        tests = self._tests_on(mutation.module, mutation.lines)
        if not tests:
            tests = self._tests_on(mutation.module, mutation.statement_lines)
        if mutation.name:
            for module, lines in _lines_that_use(mutation.name).items():
                tests |= self._tests_on(module, lines)
        return tests

    def _tests_on(self, module: str, lines: Iterable[int]) -> set[str]:
        elsewhere = {"", *self._recording.failed}
        return self._recording.list_tests_on(module, lines) - elsewhere

    def _rank(self, test: str, module: str) -> tuple[bool, bool, int]:
        file = Path(_file_of(test))
        names = module.split(".")
        package = names[1] if names[0] == "mendq" and len(names) > 1 else names[0]
        is_same_subject = file.stem.removeprefix("test_") == names[-1]
        is_same_package = file.is_relative_to(f"tests/{package}")
        return (not is_same_subject, not is_same_package, self._breadths.get(test, 0))


def count_lines_by_test(path: Path) -> Counter[str]:
    """Return how many lines each test runs: the fewer, the more specific the test is.

    Args:
        path: The file that coverage writes. Its own interface answers only line by line.
    """
    counts: Counter[str] = Counter()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        rows = data.execute(
            "select context, numbits from line_bits join context on context.id = context_id"
        )
        for context, bits in rows:
            counts[context.rpartition("|")[0]] += int.from_bytes(bits, "little").bit_count()
    return counts


def limit_tests(
    tests: Sequence[str], selector: TestSelector, *, most: int, files: int, seconds: float
) -> list[str]:
    """Return the first tests, at least one, within limits on their number, files and time.

    Args:
        tests: Tests, the most specific first.
        selector: Knows how long each took.
        most: How many tests to return at most.
        files: From how many files at most; loading a file takes longer than most tests.
        seconds: How long they may take together.
    """
    chosen: list[str] = []
    chosen_files: set[str] = set()
    spent = 0.0
    for test in tests:
        if len(chosen_files | {_file_of(test)}) > files:
            continue
        spent += selector.cost(test)
        if chosen and (spent > seconds or len(chosen) >= most):
            break
        chosen.append(test)
        chosen_files.add(_file_of(test))
    return chosen


def _file_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def _lines_that_use(name: str) -> dict[str, list[int]]:
    """Return the lines of the product that mention a name, by module."""
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    found: dict[str, list[int]] = {}
    for module, lines in _product_lines().items():
        numbers = [number for number, line in enumerate(lines, start=1) if pattern.search(line)]
        if numbers:
            found[module] = numbers
    return found


@cache
def _product_lines() -> dict[str, list[str]]:
    files = list_files(*(f"{package}/*.py" for package in PACKAGES))
    return {module_of(path): path.read_text().splitlines() for path in files}
