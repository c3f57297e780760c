"""Folders as roots, however they are spelled; what cannot be a root is said. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.storage import RootUnusable
from analytics.storage.folder import FolderStorage


@pytest.mark.parametrize("spelled", ["x/../trail", "./trail", "trail/", "trail//", "link"])
def test_a_root_is_spelled_as_spark_spells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    for name in ("x", "trail"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("trail")
    monkeypatch.chdir(tmp_path)
    assert FolderStorage(spelled).spark_root([]) == f"file:{tmp_path.resolve()}/trail/"


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(RootUnusable, match="cannot be written to"):
        FolderStorage(str(tmp_path / "out")).put("t/a", b"1")
    with pytest.raises(RootUnusable, match="cannot be written to"):
        FolderStorage(str(tmp_path / "out" / "below")).put("t/a", b"1")
    assert (tmp_path / "out").read_text() == "mine"


def test_links_in_a_circle_are_no_root(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RootUnusable):
        FolderStorage(str(tmp_path / "a")).put("t", b"1")


def test_spark_is_shown_files_alone_where_something_else_lies_among_them(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    for folder in ("plain", "strange/folder"):
        (trail / folder).mkdir(parents=True)
        (trail / folder / "a").write_text("a")
    (trail / "strange" / "b").write_text("b")
    (trail / "strange" / "to-nothing").symlink_to("gone")
    storage = FolderStorage(str(trail))
    assert storage.no_files("plain") == []
    assert storage.no_files("strange") == ["strange/folder", "strange/to-nothing"]
    assert storage.spark_root(["plain"]) == f"file:{trail.resolve()}/"
    shown = Path(storage.spark_root(["plain", "strange"]).removeprefix("file:"))
    assert shown != trail
    there = sorted(each.relative_to(shown).as_posix() for each in shown.rglob("*"))
    assert there == ["plain", "plain/a", "strange", "strange/b"]
    assert (shown / "strange" / "b").read_text() == "b"
