"""A mutant: one deliberate fault in the product, as data, and the source that it makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Mutant:
    """What would hurt, and where: `fault` is a fragment of a function (class, or constant).

    In it `«old»new»` stands for what is replaced.
    """

    hurts: str
    module: str
    function: str
    fault: str

    @property
    def old(self) -> str:
        return re.sub("«(.*?)»(.*?)»", r"\1", self.fault, flags=re.DOTALL)

    @property
    def new(self) -> str:
        return re.sub("«(.*?)»(.*?)»", r"\2", self.fault, flags=re.DOTALL)


@dataclass(frozen=True)
class Selection:
    """Tests, as dotted modules with or without `::name`, and the mutants that they kill.

    `spark`: the tests need a JVM, which is started once for all of them.
    """

    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]
    spark: bool = False

    @property
    def arguments(self) -> list[str]:
        """The tests as pytest takes them."""
        parts = (test.partition("::") for test in self.tests)
        return [f"{path_of(module)}{colons}{name}" for module, colons, name in parts]


class NotApplicableError(Exception):
    """The fragment is not in the function exactly once, or the mutated module does not compile."""


def compile_mutant(mutant: Mutant) -> CodeType:
    """Compile the mutant's module with the fault in it."""
    path = ROOT / path_of(mutant.module)
    if not path.exists():
        raise NotApplicableError(f"there is no module {mutant.module}")
    try:
        return compile(mutated_source(path.read_text(), mutant), str(path), "exec")
    except SyntaxError as fault:
        raise NotApplicableError(f"{mutant.function} does not compile: {fault}") from fault


def mutated_source(source: str, mutant: Mutant) -> str:
    """Replace the fragment, which has to be in the function exactly once."""
    lines = source.splitlines(keepends=True)
    first, last = _lines_of(ast.parse(source).body, mutant.function.split("."))
    text = "".join(lines[first - 1 : last])
    found = list(_pattern(mutant.old).finditer(text))
    if len(found) != 1:
        raise NotApplicableError(f"{mutant.function} has {len(found)} times: {mutant.old}")
    changed = text[: found[0].start()] + mutant.new + text[found[0].end() :]
    return "".join([*lines[: first - 1], changed, *lines[last:]])


def install(codes: Mapping[str, CodeType]) -> list[str]:
    """Have this process import these codes as modules; the answer holds the names that it did."""
    imported: list[str] = []
    as_written = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if fullname not in codes:
            return as_written(self, fullname)
        imported.append(fullname)
        return codes[fullname]

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    return imported


def path_of(module: str) -> Path:
    path = Path(*module.split("."))
    return path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")


def _lines_of(body: Iterable[ast.stmt], names: list[str]) -> tuple[int, int]:
    for statement in body:
        if names[0] not in _list_defined_names(statement):
            continue
        if len(names) > 1 and isinstance(statement, ast.ClassDef | ast.FunctionDef):
            return _lines_of(statement.body, names[1:])
        return statement.lineno, statement.end_lineno or statement.lineno
    raise NotApplicableError(f"there is no {names[0]}")


def _list_defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _pattern(fragment: str) -> re.Pattern[str]:
    """Match the fragment however a formatter has wrapped its lines."""
    words = (re.escape(word) for word in fragment.split())
    loose = r"\s+".join(words)
    loose = re.sub(r"\\([(\[{])", r"\\\1\\s*", loose)
    return re.compile(re.sub(r"\\([)\]}])", r",?\\s*\\\1", loose))
