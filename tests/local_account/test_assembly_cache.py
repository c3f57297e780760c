"""When an assembly is made anew, and where it may not be kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from infra.node import require_node
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


def test_what_does_not_go_into_the_stack_does_not_matter(repository: Path) -> None:
    before = digest_of("{}")
    (repository / "README.md").write_text("new")
    (repository / "infra" / "__pycache__" / "stack.pyc").write_text("new")
    assert digest_of("{}") == before


@pytest.mark.parametrize(
    "name", ["functions/heal.py", "functions/new.py", "infra/stack.py", "cdk.json"]
)
def test_what_goes_into_the_stack_makes_another(repository: Path, name: str) -> None:
    before = digest_of("{}")
    (repository / name).write_text("new")
    assert digest_of("{}") != before


def test_other_settings_make_another(repository: Path) -> None:
    assert digest_of('{"mode": "heal"}') != digest_of("{}")


def test_a_kept_assembly_is_taken(repository: Path) -> None:
    kept = repository / "build" / "account" / digest_of("{}")
    kept.mkdir(parents=True)
    (kept / "manifest.json").touch()
    said: list[str] = []
    assert Synthesis().assembly_for({}, said.append) == kept
    assert said == [f"the stack as synthesized before: build/account/{kept.name}"]


def test_a_kept_assembly_is_taken_from_a_folder_that_cannot_be_written(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = repository / "build" / "account" / digest_of("{}")
    kept.mkdir(parents=True)
    (kept / "manifest.json").touch()

    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "touch", refuse)
    assert Synthesis().assembly_for({}, lambda _: None) == kept


def test_a_folder_that_cannot_be_written(repository: Path) -> None:
    (repository / "build").touch()
    with pytest.raises(CannotStart, match=r"build/account cannot be written"):
        Synthesis().assembly_for({}, lambda _: None)


def test_another_start_that_synthesized_the_same_meanwhile(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts at once: the later finds the folder of the earlier, and takes it."""
    kept = repository / "build" / "account" / digest_of("{}")

    def synthesize(_self: Synthesis, _settings: str, folder: Path) -> None:
        (folder / "manifest.json").write_text("mine")
        kept.mkdir(parents=True)
        (kept / "manifest.json").write_text("the other's")

    monkeypatch.setattr(Synthesis, "_synthesize", synthesize)
    assert Synthesis().assembly_for({}, print) == kept
    assert (kept / "manifest.json").read_text() == "the other's"
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


def test_a_synthesis_that_fails_leaves_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly_cache, "SYNTHESIZE", "no_such_module")
    with pytest.raises(CannotStart, match=r"cannot be synthesized: .*no_such_module"):
        Synthesis().assembly_for({}, lambda _: None)
    assert list((repository / "build" / "account").iterdir()) == []


def test_old_assemblies_are_forgotten(repository: Path) -> None:
    cache = repository / "build" / "account"
    for number in range(assembly_cache.KEPT + 3):
        (cache / str(number)).mkdir(parents=True)
    assembly_cache._forget_old()
    assert len(list(cache.iterdir())) == assembly_cache.KEPT


def test_a_missing_node(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = partial(require_node, repository / "bin" / "node")
    monkeypatch.setattr(assembly_cache, "require_node", nowhere)
    with pytest.raises(CannotStart, match=r"Node.*is missing: run `make clean setup`"):
        Synthesis().assembly_for({}, lambda _: None)
    assert list((repository / "build" / "account").iterdir()) == []
