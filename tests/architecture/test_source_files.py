"""`list_files` returns the files that git would add, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.source_files import list_files


def write_files(repository: Path, *names: str) -> None:
    for name in names:
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def list_names(repository: Path, *patterns: str) -> list[str]:
    paths = list_files(*patterns, root=repository)
    return [path.relative_to(repository).as_posix() for path in paths]


def test_list_files_returns_new_file_before_git_add(repository: Path) -> None:
    write_files(repository, "mendq/old.py")
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    write_files(repository, "mendq/new.py")
    assert list_names(repository) == ["mendq/new.py", "mendq/old.py"]


def test_list_files_omits_ignored_file(repository: Path) -> None:
    write_files(repository, "build/made.py", "mendq/kept.py")
    (repository / ".gitignore").write_text("build/\n")
    assert list_names(repository, "*.py") == ["mendq/kept.py"]


def test_list_files_omits_tracked_file_that_was_deleted(repository: Path) -> None:
    write_files(repository, "mendq/deleted.py", "mendq/kept.py")
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    (repository / "mendq/deleted.py").unlink()
    assert list_names(repository) == ["mendq/kept.py"]


def test_list_files_returns_only_files_that_match_pattern(repository: Path) -> None:
    write_files(repository, "mendq/heal/decide.py", "mendq/page.j2", "tests/test_mendq.py")
    assert list_names(repository, "mendq/*.py") == ["mendq/heal/decide.py"]


def test_list_files_returns_names_that_git_would_quote(repository: Path) -> None:
    write_files(repository, "docs/ä page.md")
    assert list_names(repository) == ["docs/ä page.md"]


def test_list_files_outside_a_repository_fails(repository: Path, tmp_path: Path) -> None:
    (repository / ".git").rename(tmp_path / "no-longer-git")
    with pytest.raises(subprocess.CalledProcessError):
        list_files(root=repository)
