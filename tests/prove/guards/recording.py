"""What `make test COVERAGE=1` recorded: which tests run which guard, and how long they take."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import zip_longest
from typing import Any

from coverage import CoverageData

from tests.prove.guards.guard import Guard
from tests.prove.guards.recorder import DATA, FOLDER, NOTES, digests_of_sources
from tests.prove.mutants.mutant import ROOT, path_of

# Lines that run while modules are loaded, and in processes that tests start.
_NO_TEST = ""
OUTPUT = FOLDER / "output.txt"


def why_not_current() -> str:
    """Return why the recording says nothing about the code as it is; empty if it does."""
    if not NOTES.exists() or not DATA.exists():
        return "no coverage is recorded"
    recorded = json.loads(NOTES.read_text())["sources"]
    now = digests_of_sources()
    changed = sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))
    return f"{changed[0]} has changed since coverage was recorded" if changed else ""


def record(say: Callable[[str], None]) -> None:
    """Run `make test COVERAGE=1`; its output is kept in OUTPUT. Call `say` with each progress line.

    Tests that fail are noted in the recording; the caller decides what they mean.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = ["make", "--no-print-directory", "test", "COVERAGE=1"]
    with (
        OUTPUT.open("w", buffering=1) as kept,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests,
    ):
        for line in tests.stdout or ():
            kept.write(line)
            if line.rstrip().endswith("%]"):
                say(line.split("[")[-1].rstrip(" ]\n").strip())


@dataclass(frozen=True)
class Recording:
    """Answers about guards. `seconds` and `setup_seconds` are by test and by file of tests."""

    data: CoverageData
    seconds: Mapping[str, float] = field(default_factory=dict)
    setup_seconds: Mapping[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()

    @classmethod
    def load(cls) -> Recording:
        """Read what was recorded."""
        data = CoverageData(str(DATA))
        data.read()
        notes: dict[str, Any] = json.loads(NOTES.read_text())
        return cls(data, notes["seconds"], notes["setup_seconds"], tuple(notes["failed"]))

    @cached_property
    def _tests_by_line(self) -> dict[str, dict[int, list[str]]]:
        return {}

    def runs(self, guard: Guard) -> set[str]:
        """Return the tests in which the guard acts; `""` is among them if it does so elsewhere."""
        return self.list_tests_on(guard.module, guard.lines)

    def list_tests_on(self, module: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run one of the lines; `""` if it runs outside of a test."""
        file = str(ROOT / path_of(module))
        if file not in self._tests_by_line:
            self._tests_by_line[file] = self.data.contexts_by_lineno(file)
        by_line = self._tests_by_line[file]
        contexts = {context for line in lines for context in by_line.get(line, ())}
        # A context is a test and its phase, such as `tests/heal/test_decide.py::test_a|run`.
        return {context.rpartition("|")[0] for context in contexts}

    def tests_for(self, guard: Guard) -> list[str]:
        """Return the tests in which the guard acts, those first that probably notice its loss.

        These are tests that name the refusal's code. Of the others one of each file comes first,
        then the second of each, because tests of one file tend to ask the same: a line that every
        claim runs is asserted in few files. Tests of the guard's package go first, then quick ones.
        """
        tests = self.runs(guard) - {_NO_TEST, *self.failed}
        ranked = sorted(tests, key=lambda test: (not _is_close(test, guard), self.cost(test), test))
        named = [test for test in ranked if guard.code and guard.code in _source_of(test)]
        by_file: dict[str, list[str]] = {}
        for test in ranked:
            if test not in named:
                by_file.setdefault(_file_of(test), []).append(test)
        turns = zip_longest(*by_file.values())
        return [*named, *(test for turn in turns for test in turn if test is not None)]

    def cost(self, test: str) -> float:
        """Return the seconds that a test takes alone, with what its file sets up."""
        return self.seconds.get(test, 0.0) + self.setup_seconds.get(_file_of(test), 0.0)


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _source_of(test: str) -> str:
    """Return the text of a test's function; empty if it is in a class or is not there."""
    name = test.partition("::")[2].partition("[")[0]
    return _functions_in(_file_of(test)).get(name, "")


@cache
def _functions_in(file: str) -> dict[str, str]:
    path = ROOT / file
    text = path.read_text() if path.exists() else ""
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    lines = text.splitlines()
    return {node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in functions}


def _is_close(test: str, guard: Guard) -> bool:
    """Return True if the test is in the folder that is called as the guard's package."""
    parts = guard.module.split(".")
    package = parts[1] if parts[0] == "mendq" and len(parts) > 1 else parts[0]
    return test.startswith(f"tests/{package}/")
