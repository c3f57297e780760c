"""Read from a Lambda's source which AWS operations its code can call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import boto3

import functions
from mendq.aws.clients import Clients
from tests.infra.aws_calls import REGION

ROOT = Path(functions.__file__).resolve().parents[1]
# The packages of mendq that call AWS.
CALLING_PACKAGES = (
    "aws",
    "cases",
    "consumer",
    "follow_up",
    "heal",
    "nightly",
    "probe",
    "redrive",
    "scan",
)


def list_named_operations(handler: str) -> set[str]:
    """Return the API operations that the code behind a handler names."""
    operation_by_method = _list_operations()
    calling_folders = [ROOT / "mendq" / package for package in CALLING_PACKAGES]
    operations = set()
    for path, nodes in find_used_definitions(ROOT / f"functions/{handler}.py").items():
        if not any(path.is_relative_to(folder) for folder in calling_folders):
            continue
        for node in nodes:
            words = operation_by_method.keys() & set(list_words(node))
            operations |= {operation_by_method[word] for word in words}
    return operations


def list_words(tree: ast.AST) -> Iterator[str]:
    """Yield attribute names and the texts passed to calls, such as `get_paginator`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call):
            yield from (
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )


def find_used_definitions(start: Path) -> dict[Path, set[ast.AST]]:
    """Return the definitions that a file uses directly or through others, by file."""
    definitions: dict[Path, set[ast.AST]] = {}
    waiting = [(start, name) for name in _File.read(start).defined]
    seen = set(waiting)
    while waiting:
        path, name = waiting.pop()
        file = _File.read(path)
        nodes = file.defined.get(name, [])
        definitions.setdefault(path, set()).update(nodes)
        used_names = _list_names(nodes)
        further = {(path, used_name) for used_name in used_names & file.defined.keys()}
        for used_name in used_names & file.imported.keys():
            further |= set(file.imported[used_name])
        if name in file.imported:  # a package that re-exports the name
            further |= set(file.imported[name])
        waiting.extend(further - seen)
        seen |= further
    return definitions


def _list_names(nodes: Iterable[ast.AST]) -> set[str]:
    names = set()
    for node in nodes:
        names |= {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return names


def _list_assigned_names(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id


@dataclass(frozen=True)
class _File:
    """The top-level definitions of a file, and the places where its imports are defined."""

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
                for name in _list_assigned_names(node):
                    defined.setdefault(name, []).append(node)
        imported: dict[str, list[tuple[Path, str]]] = {}
        for imports in ast.walk(tree):
            if isinstance(imports, ast.ImportFrom):
                module = _resolve_module(imports, path)
                for alias in imports.names:
                    imported[alias.asname or alias.name] = _find_definitions(module, alias.name)
        return cls(defined, imported)


def _resolve_module(imports: ast.ImportFrom, path: Path) -> str:
    """Return the absolute name of an imported module, also of a relative import in `path`."""
    folder = path.parents[imports.level - 1].relative_to(ROOT).parts if imports.level else ()
    return ".".join((*folder, *filter(None, [imports.module])))


def _find_definitions(module: str, name: str) -> list[tuple[Path, str]]:
    """Return where a name is defined, or all definitions of the module if it names a module."""
    if inner := _find_file(f"{module}.{name}"):
        return [(inner, name) for name in _File.read(inner).defined]
    file = _find_file(module)
    return [(file, name)] if file else []


def _find_file(module: str) -> Path | None:
    inner = ROOT.joinpath(*module.split("."))
    candidates = (inner.with_suffix(".py"), inner / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@cache
def _list_operations() -> dict[str, str]:
    """Return the operations of all clients by the name of the client's method."""
    clients = Clients(boto3.Session("key", "secret", region_name=REGION))
    properties = {
        name for name, attribute in vars(Clients).items() if isinstance(attribute, cached_property)
    }
    operation_by_method: dict[str, str] = {}
    for name in properties - {"event_history_pace", "metric_count"}:  # they are no clients
        operation_by_method |= getattr(clients, name).meta.method_to_api_mapping
    return operation_by_method
