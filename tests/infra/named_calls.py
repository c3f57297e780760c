"""Which AWS operations a Lambda's code names, on whatever path: read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import boto3

import functions
from mendq.aws.clients import Clients
from tests.infra.aws_calls import REGION

ROOT = Path(functions.__file__).resolve().parents[1]


def operations_named(handler: str) -> set[str]:
    """The API's names of the operations that the modules behind a handler speak of."""
    known = _operations()
    return {
        known[word]
        for path in files_behind(ROOT / f"functions/{handler}.py")
        if path.is_relative_to(ROOT / "functions" / "aws")
        for word in words_of(ast.parse(path.read_text()))
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


def files_behind(start: Path) -> set[Path]:
    """The files of ours that importing one imports."""
    found, waiting = set[Path](), [start]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imported(ast.parse(path.read_text()), path.parent))
    return found


def _imported(tree: ast.AST, folder: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            root = folder if node.level else ROOT
            for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names)):
                inner = root.joinpath(*name.split("."))
                candidates = (inner.with_suffix(".py"), inner / "__init__.py")
                yield from (each for each in candidates if each.is_file())


@cache
def _operations() -> dict[str, str]:
    """By the method that calls it, every operation of every client that there is."""
    clients = Clients(boto3.Session("key", "secret", region_name=REGION))
    names = (name for name, each in vars(Clients).items() if isinstance(each, cached_property))
    return {
        method: operation
        for name in names
        for method, operation in getattr(clients, name).meta.method_to_api_mapping.items()
    }
