"""The packages that AWS's Python runtime brings along, and nothing else of this environment.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html#python-sdk-included
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

SDK = "boto3"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def link_runtime_packages(folder: Path, names: Sequence[str] = (SDK,)) -> None:
    """Fill `folder` with links to packages and what they need, to be a process's PYTHONPATH."""
    folder.mkdir()
    seen: set[str] = set()
    for name in names:
        for package in _with_requirements(name, seen):
            for path in _top_level(package):
                (folder / path.name).symlink_to(path)


def _with_requirements(name: str, seen: set[str]) -> Iterator[Distribution]:
    if name in seen:
        return
    seen.add(name)
    package = distribution(name)
    yield package
    for requirement in package.requires or ():
        if "extra ==" not in requirement and (required := _NAME.match(requirement)):
            yield from _with_requirements(required[0].lower(), seen)


def _top_level(package: Distribution) -> Iterator[Path]:
    names = {Path(str(file)).parts[0] for file in package.files or ()}
    for name in sorted(names - {"..", "__pycache__"}):
        path = Path(str(package.locate_file(name)))
        if path.exists():
            yield path
