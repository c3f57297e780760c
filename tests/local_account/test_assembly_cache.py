"""When an assembly is made anew, and where it may not be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_account import assembly_cache
from local_account.assembly_cache import Synthesis, digest_of
from local_account.cannot_start import CannotStart


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one with a cache of its own."""
    (tmp_path / "infra" / "__pycache__").mkdir(parents=True)
    (tmp_path / "functions").mkdir()
    for name in ("app.py", "cdk.json", "requirements.txt", "infra/stack.py", "functions/heal.py"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(assembly_cache, "REPOSITORY", tmp_path)
    monkeypatch.setattr(assembly_cache, "CACHE", tmp_path / "build" / "account")
    return tmp_path


@pytest.mark.parametrize("name", ["functions/new.py", "infra/stack.py", "cdk.json"])
def test_what_goes_into_the_stack_and_its_settings_make_another(
    repository: Path, name: str
) -> None:
    before = digest_of("{}")
    assert digest_of('{"mode": "heal"}') != before
    (repository / name).write_text("new")
    assert digest_of("{}") != before


def test_a_retained_assembly_is_taken(repository: Path) -> None:
    retained = repository / "build" / "account" / digest_of("{}")
    retained.mkdir(parents=True)
    (retained / "manifest.json").touch()
    said: list[str] = []
    assert Synthesis().assembly_for({}, said.append) == retained
    assert said == [f"the stack as synthesized before: build/account/{retained.name}"]


def test_a_folder_that_cannot_be_written(repository: Path) -> None:
    (repository / "build").touch()
    with pytest.raises(CannotStart, match=r"build/account cannot be written"):
        Synthesis().assembly_for({}, lambda _: None)


def test_a_synthesis_that_fails_leaves_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly_cache, "SYNTHESIZE", "no_such_module")
    with pytest.raises(CannotStart, match=r"cannot be synthesized: .*no_such_module"):
        Synthesis().assembly_for({}, lambda _: None)
    assert list((repository / "build" / "account").iterdir()) == []
