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
