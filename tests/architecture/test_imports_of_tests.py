"""Test that nothing imports a file of tests or a `conftest.py`: what is shared is in a builder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.source_files import ROOT, list_files

# Parsing all files takes seconds, so only those with such a line are parsed.
MAY_IMPORT_TESTS_REGEX = re.compile(
    r"^[ \t]*(?:from|import) [^\n(]*(?:\([^)]*)?(?:\btest_|\bconftest\b)", re.MULTILINE
)


def list_imported_names(source: str) -> Iterator[str]:
    """Yield the dotted name of each module, or thing in a module, that a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def list_imported_test_modules(source: str) -> set[str]:
    """Return the imported modules that hold tests or fixtures."""
    modules = set[str]()
    if not MAY_IMPORT_TESTS_REGEX.search(source):
        return modules
    for imported_name in list_imported_names(source):
        folder, _, name = imported_name.rpartition(".")
        is_test_module = name == "conftest" or name.startswith("test_")
        # A function may be called like a test, so the file must exist. A relative import has no
        # folder of its own here.
        is_file = not folder or (ROOT / folder.replace(".", "/") / f"{name}.py").exists()
        if is_test_module and is_file:
            modules.add(imported_name)
    return modules


@pytest.mark.parametrize(
    "source",
    [
        "from tests.cli.commands.test_cost import operator",
        "from tests.cli.commands import test_cost",
        "import tests.cli.commands.test_cost",
        "from tests.cli.conftest import operator",
        "from .test_cost import operator",
        "def test():\n    from . import conftest",
        "from tests.cli.commands import (\n    test_cost,\n)",
    ],
)
def test_import_of_a_test_file_or_conftest_is_found(source: str) -> None:
    assert list_imported_test_modules(source)


@pytest.mark.parametrize(
    "source",
    [
        "from tests.cli.builders import Operator",
        "from local_account.clock import test_time",
        "from tests import real_records",
        "import pytest",
        "text = 'from tests.cli.conftest import operator'",
    ],
)
def test_import_of_a_builder_or_of_a_thing_named_like_a_test_is_not_found(source: str) -> None:
    assert list_imported_test_modules(source) == set()


def test_no_file_imports_a_test_file_or_conftest() -> None:
    imported_by_file = {
        path.relative_to(ROOT).as_posix(): list_imported_test_modules(path.read_text())
        for path in list_files("*.py")
    }
    assert {file: modules for file, modules in imported_by_file.items() if modules} == {}
