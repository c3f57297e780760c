"""Reading assemblies, and what is published of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from local_account.cannot_start import CannotStart
from local_account.deployment import read_assembly, zip_folder
from tests.local_account.assemblies import write_assembly


def test_an_assembly(tmp_path: Path) -> None:
    stack = read_assembly(write_assembly(tmp_path / "cdk.out"))
    assert stack.name == "Mendq"
    assert stack.template["Resources"]["Trail"]["Type"] == "AWS::CloudTrail::Trail"
    (asset,) = stack.assets
    assert (asset.bucket, asset.key) == ("assets-000000000000", "code.zip")
    with zipfile.ZipFile(io.BytesIO(zip_folder(asset.path))) as archive:
        assert archive.namelist() == ["index.py"]


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="holds no cloud assembly"):
        read_assembly(tmp_path)


def test_equal_folders_give_equal_zips(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "b.py").write_text("b")
        (tmp_path / name / "inner" / "a.py").write_text("a")
    assert zip_folder(tmp_path / "one") == zip_folder(tmp_path / "two")
    (tmp_path / "two" / "b.py").write_text("c")
    assert zip_folder(tmp_path / "one") != zip_folder(tmp_path / "two")
