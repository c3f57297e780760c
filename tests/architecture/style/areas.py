"""The parts of the repository that are measured one by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.architecture.style.source import SourceFile, read_source
from tests.source_files import list_files


@dataclass(frozen=True)
class Area:
    """A part of the repository. If `is_gate` is true, a missed threshold fails `make check`."""

    name: str
    prefixes: tuple[str, ...]
    is_gate: bool = False

    def select(self, files: list[SourceFile]) -> list[SourceFile]:
        """Return the files that belong to this area."""
        return [file for file in files if file.path.startswith(self.prefixes)]


PRODUCT = Area("product", ("mendq/", "functions/", "infra/", "analytics/", "app.py"))
OTHER = Area("other", ("local_account/", "bench/", "docs/"))
TESTS = Area("tests", ("tests/",))
AREAS = (PRODUCT, OTHER, TESTS)


def read_sources(root: Path) -> list[SourceFile]:
    """Read every Python file below `root` that git does not ignore."""
    return [
        read_source(path.read_text(), path.relative_to(root).as_posix())
        for path in list_files("*.py", root=root)
    ]
