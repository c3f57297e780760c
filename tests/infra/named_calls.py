"""Which AWS operations a Lambda's code names, on whatever path: read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import boto3

import functions
from mendq.aws.clients import Clients
from tests.infra.aws_calls import REGION

ROOT = Path(functions.__file__).resolve().parents[1]
# The rooms that call AWS; the others are pure.
CALLING = ("aws", "cases", "consumer", "follow_up", "heal", "nightly", "probe", "redrive", "scan")


def operations_named(handler: str) -> set[str]:
    """The API's names of the operations that the definitions behind a handler speak of."""
    known = _operations()
    return {
        known[word]
        for path, nodes in behind(ROOT / f"functions/{handler}.py").items()
        if any(path.is_relative_to(ROOT / "mendq" / room) for room in CALLING)
        for node in nodes
        for word in words_of(node)
        if word in known
    }


def words_of(tree: ast.AST) -> Iterator[str]:
    """Attributes, and what paginators and the like are asked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call):
            yield from (
                each.value
                for each in node.args
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def behind(start: Path) -> dict[Path, set[ast.AST]]:
    """The definitions of ours, by file, that those of a file use, directly or by others."""
    found: dict[Path, set[ast.AST]] = {}
    waiting = [(start, name) for name in _File.read(start).defined]
    seen = set(waiting)
    while waiting:
        path, name = waiting.pop()
        file = _File.read(path)
        nodes = file.defined.get(name, [])
        found.setdefault(path, set()).update(nodes)
        used = {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
        further = {(path, each) for each in used & file.defined.keys()}
        further |= {place for each in used for place in file.imported.get(each, ())}
        if name in file.imported:  # a package that hands on what it imports
            further |= set(file.imported[name])
        waiting.extend(further - seen)
        seen |= further
    return found


@dataclass(frozen=True)
class _File:
    """The top-level definitions of a file, and where what it imports of ours is defined."""

    defined: Mapping[str, list[ast.AST]]
    imported: Mapping[str, list[tuple[Path, str]]]

    @classmethod
    @cache
    def read(cls, path: Path) -> _File:
        tree = ast.parse(path.read_text())
        defined: dict[str, list[ast.AST]] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
                for each in ast.walk(node):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        defined.setdefault(each.id, []).append(node)
        imported: dict[str, list[tuple[Path, str]]] = {}
        for each in ast.walk(tree):
            if isinstance(each, ast.ImportFrom):
                module = _module_of(each, path)
                for alias in each.names:
                    imported[alias.asname or alias.name] = _places(module, alias.name)
        return cls(defined, imported)


def _module_of(imports: ast.ImportFrom, path: Path) -> str:
    """By its whole name, where the file at `path` names it from its own folder too."""
    folder = path.parents[imports.level - 1].relative_to(ROOT).parts if imports.level else ()
    return ".".join((*folder, *filter(None, [imports.module])))


def _places(module: str, name: str) -> list[tuple[Path, str]]:
    """Where a name is defined; all of it where the name is a module's."""
    if inner := _file_of(f"{module}.{name}"):
        return [(inner, each) for each in _File.read(inner).defined]
    file = _file_of(module)
    return [(file, name)] if file else []


def _file_of(module: str) -> Path | None:
    inner = ROOT.joinpath(*module.split("."))
    candidates = (inner.with_suffix(".py"), inner / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


@cache
def _operations() -> dict[str, str]:
    """By the method that calls it, every operation of every client that there is."""
    clients = Clients(boto3.Session("key", "secret", region_name=REGION))
    found = {name for name, each in vars(Clients).items() if isinstance(each, cached_property)}
    names = found - {"event_history_pace"}  # a pace
    return {
        method: operation
        for name in names
        for method, operation in getattr(clients, name).meta.method_to_api_mapping.items()
    }
