"""Find the guards in a module's source: refusals that it makes, and its `except` branches."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.architecture.refusal_codes import KINDS, code_in, table_in
from tests.source_files import ROOT, list_files

# The packages of the product whose guards are asked for.
PRODUCT = ("functions", "mendq")
# The step from a node to its child: the parent, and the name of the parent's field.
Step = tuple[ast.AST, str]


# Refusals are values of these types. A function that always returns one makes a refusal.
_REFUSALS = ("Refusal", *KINDS)
# A function of this type answers why something must not happen, or None if it may.
_WHY_NOT = "str | None"
_LONGEST_TEXT = 60


@dataclass(frozen=True)
class Guard:
    """A guard in the product's code: a refusal or an `except` branch.

    `what` describes it as in the source: `Refuse frozen`, or `except ClientError`. If the guard
    acts, at least one of `lines` runs. `lines` and `place` are positions in one version of the
    source, so they are not part of the guard's name.
    """

    module: str
    function: str
    what: str
    lines: tuple[int, ...]
    place: tuple[int, int]
    is_refusal: bool
    has_own_line: bool = True
    # The refusal's code if the source spells it out, else empty.
    code: str = ""

    @property
    def name(self) -> str:
        """Name the guard as `reviewed.yaml` does."""
        return f"{self.module}.{self.function}: {self.what}"


def guards_of_product() -> list[Guard]:
    """Return every guard in the product, in the order of files and lines."""
    paths = list_files(*(f"{package}/*.py" for package in PRODUCT))
    sources = {module_of(path): path.read_text() for path in paths}
    makers = {(module, name) for module, source in sources.items() for name in makers_in(source)}
    guards: list[Guard] = []
    for module, source in sources.items():
        guards += guards_in(module, source, makers)
    return guards


def module_of(path: Path) -> str:
    """Return the dotted name of a module of this repository."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def makers_in(source: str) -> set[str]:
    """Return the names of the module's functions that always return a refusal."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if _answer_of(function) in _REFUSALS}


def guards_in(module: str, source: str, makers: Collection[tuple[str, str]] = ()) -> list[Guard]:
    """Return the guards in one module's source.

    If a function has the same guard several times, a part of the code beside each tells them apart:
    with a bare number, an entry of the reviewed list could come to name another guard unnoticed.

    Args:
        module: The dotted name of the module.
        source: The module's text.
        makers: Functions that always return a refusal, as pairs of module and name.
    """
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {name for maker_module, name in makers if maker_module == module}
    for node in imports:
        names |= {alias.name for alias in node.names if (node.module, alias.name) in makers}
    found = list(_Finder(module, names).below(tree, ()))
    times = Counter(guard.name for guard, _ in found)
    told_apart = [
        replace(guard, what=f"{guard.what} {beside}".strip()) if times[guard.name] > 1 else guard
        for guard, beside in found
    ]
    guards: list[Guard] = []
    seen: Counter[str] = Counter()
    for guard in told_apart:
        seen[guard.name] += 1
        number = seen[guard.name]
        guards.append(replace(guard, what=f"{guard.what} #{number}") if number > 1 else guard)
    return guards


@dataclass(frozen=True)
class _Finder:
    """Yields each guard with a part of the code beside it that tells it from others of its kind."""

    module: str
    makers: Collection[str]

    def below(self, node: ast.AST, way: tuple[Step, ...]) -> Iterator[tuple[Guard, str]]:
        yield from self._at(node, way)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.below(child, (*way, (node, field)))

    def _at(self, node: ast.AST, way: tuple[Step, ...]) -> Iterator[tuple[Guard, str]]:
        function = _function_around(way)
        name = ".".join(_names_around(way))
        if isinstance(node, ast.ExceptHandler):
            yield self._make_except_guard(node, name, way)
        elif isinstance(node, ast.Call) and function and (what := self._refusal_made_by(node)):
            yield self._make_refusal_guard(node, name, what, way)
        elif isinstance(node, ast.Return) and function and _answer_of(function) == _WHY_NOT:
            yield from self._list_why_not_guards(node, name, way)
        elif (table := table_in(node)) is not None:
            yield from self._list_table_guards(table, name)

    def _make_except_guard(
        self, node: ast.ExceptHandler, name: str, way: tuple[Step, ...]
    ) -> tuple[Guard, str]:
        kind = f"except {ast.unparse(node.type)}" if node.type else "except"
        tried = way[-1][0]
        beside = f"around {_text(tried.body[0])}" if isinstance(tried, ast.Try) else ""
        lines = _lines_of(node.body[0])
        place = (node.lineno, node.col_offset)
        return Guard(self.module, name, kind, lines, place, is_refusal=False), beside

    def _make_refusal_guard(
        self, node: ast.Call, name: str, what: str, way: tuple[Step, ...]
    ) -> tuple[Guard, str]:
        place = (node.lineno, node.col_offset)
        lines = _lines_of(node)
        code = _literal_in(code_in(node))
        guard = Guard(self.module, name, what, lines, place, is_refusal=True, code=code)
        texts = [
            text for text in map(_literal_in, node.args[1:]) if text != what.rsplit(maxsplit=1)[-1]
        ]
        return guard, _condition_around(way) or "".join(map(_cut, filter(None, texts)))

    def _list_why_not_guards(
        self, node: ast.Return, name: str, way: tuple[Step, ...]
    ) -> Iterator[tuple[Guard, str]]:
        text = _literal_in(node.value)
        if text:
            place = (node.lineno, node.col_offset)
            lines = _lines_of(node)
            what = f"why not: {_cut(text)}"
            guard = Guard(self.module, name, what, lines, place, is_refusal=True)
            yield guard, _condition_around(way)

    def _list_table_guards(self, table: ast.Dict, name: str) -> Iterator[tuple[Guard, str]]:
        for key, value in zip(table.keys, table.values, strict=True):
            place = (value.lineno, value.col_offset)
            what = f"answer {_text(key)}" if key else "answer"
            lines = _lines_of(value)
            code = _literal_in(key)
            guard = Guard(self.module, name, what, lines, place, is_refusal=True, code=code)
            # Python evaluates every condition of a table: only a removal shows if one holds.
            yield replace(guard, has_own_line=False), ""

    def _refusal_made_by(self, call: ast.Call) -> str:
        """Name the refusal that a call makes; empty if it makes none."""
        code = code_in(call)
        if code is not None:
            return f"{ast.unparse(call.func)} {_text(code)}"
        if not isinstance(call.func, ast.Name) or call.func.id not in self.makers:
            return ""
        texts = [text for text in map(_literal_in, call.args) if text]
        return f"{call.func.id} {_cut(texts[0])}" if texts else call.func.id


def _answer_of(function: ast.FunctionDef) -> str:
    return ast.unparse(function.returns) if function.returns else ""


def _literal_in(node: ast.expr | None) -> str:
    """Return the text that an expression spells out, or empty if it spells out none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node)[2:-1] if isinstance(node, ast.JoinedStr) else ""


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return _cut(ast.unparse(node).splitlines()[0])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _lines_of(node: ast.stmt | ast.expr) -> tuple[int, ...]:
    return tuple(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _condition_around(way: tuple[Step, ...]) -> str:
    for parent, field in reversed(way):
        if isinstance(parent, ast.FunctionDef):
            break
        if isinstance(parent, ast.If | ast.IfExp) and field in ("body", "orelse"):
            word = "if" if field == "body" else "unless"
            return f"{word} {_text(parent.test)}"
        if isinstance(parent, ast.ExceptHandler) and parent.type:
            return f"on {_text(parent.type)}"
    return ""


def _function_around(way: tuple[Step, ...]) -> ast.FunctionDef | None:
    functions = [parent for parent, _ in way if isinstance(parent, ast.FunctionDef)]
    return functions[-1] if functions else None


def _names_around(way: tuple[Step, ...]) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [parent.name for parent, _ in way if isinstance(parent, kinds)]
