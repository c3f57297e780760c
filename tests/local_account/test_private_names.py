"""The names of MiniStack that nobody promised to keep: a new version moves them without a word."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from local_account.where import REPOSITORY

# The hooks were written for this one. A newer one may also change what stands behind a name: run
# everything of tests/local_account before pinning it.
PINNED = "1.5.33"
FILES = [
    each
    for each in sorted((REPOSITORY / "local_account").rglob("*.py"))
    if "demo" not in each.parts and "ministack" in each.read_text("utf-8")
]


def _used(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of everything that a file reads off MiniStack's modules, or hooks there."""
    tree, modules = ast.parse(source), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ministack"):
            for each in node.names:
                yield str(node.module), each.name
                modules[each.asname or each.name] = f"{node.module}.{each.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in modules:
            yield modules[ast.unparse(node.value)], node.attr
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "around":
            hooked = modules.get(ast.unparse(node.args[0]))
            for name in node.args[1:] if hooked else ():
                yield str(hooked), str(ast.literal_eval(name))


def test_the_version_is_the_one_that_the_hooks_were_written_for() -> None:
    assert version("ministack") == PINNED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_name_is_where_it_was(path: Path) -> None:
    assert FILES
    for module, name in _used(path.read_text("utf-8")):
        try:
            owner = importlib.import_module(module)
        except ModuleNotFoundError:  # a class or a name of a module
            parent, _, child = module.rpartition(".")
            owner = getattr(importlib.import_module(parent), child)
        if not hasattr(owner, name):
            importlib.import_module(f"{module}.{name}")
