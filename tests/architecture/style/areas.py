"""The parts of the repository that are measured one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.style.exceptions import NameException
from tests.architecture.style.source import SourceFile, read_source
from tests.source_files import list_files


@dataclass(frozen=True)
class Area:
    """A part of the repository. If `is_gate` is true, `make check` fails above a threshold."""

    name: str
    prefixes: tuple[str, ...]
    is_gate: bool = False

    def select(self, files: list[SourceFile]) -> list[SourceFile]:
        """Return the files that belong to this area."""
        return [file for file in files if file.path.startswith(self.prefixes)]


PRODUCT = Area("product", ("mendq/", "functions/", "infra/", "analytics/", "app.py"), is_gate=True)
OTHER = Area("other", ("local_account/", "bench/", "docs/"), is_gate=True)
TESTS = Area("tests", ("tests/",), is_gate=True)
AREAS = (PRODUCT, OTHER, TESTS)


def read_sources(root: Path, exceptions: Sequence[NameException]) -> list[SourceFile]:
    """Read every Python file below `root` that git does not ignore."""
    files: list[SourceFile] = []
    for file in list_files("*.py", root=root):
        path = file.relative_to(root).as_posix()
        names = frozenset(exception.name for exception in exceptions if exception.path == path)
        files.append(read_source(file.read_text(), path, excepted_functions=names))
    return files
