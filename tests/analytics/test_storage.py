"""Roots: the same answers from each kind; for lack of S3, Hadoop and Arrow read folders here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from pyspark.sql import SparkSession

from analytics.storage import RootUnusable, Storage, open_root
from analytics.storage.arrow import S3Storage
from analytics.storage.folder import FolderStorage
from analytics.storage.hadoop import HadoopStorage, in_one_slash, knows_s3


class BucketInAFolder(S3Storage):
    """A bucket needs no folders made before its objects."""

    def __init__(self, folder: Path) -> None:
        super().__init__("s3://bucket", SubTreeFileSystem(str(folder), LocalFileSystem()))
        self._parent = folder

    def put(self, path: str, content: bytes) -> None:
        (self._parent / "bucket" / path).parent.mkdir(parents=True, exist_ok=True)
        super().put(path, content)


@pytest.fixture(params=["folder", "hadoop", "bucket"])
def root(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Storage]:
    folder = tmp_path / "a b [1]=2"
    folder.mkdir()
    if request.param == "folder":
        yield open_root(str(folder), spark)
    elif request.param == "hadoop":
        yield HadoopStorage(f"file://{folder}", spark)
    else:
        yield BucketInAFolder(folder)


def test_what_is_not_there_is_empty(root: Storage) -> None:
    assert root.folders("x") == []
    assert root.files("x") == []
    assert root.read("x/y") is None


def test_what_is_put_is_read_and_listed(root: Storage) -> None:
    root.put("t/dt=1/t.parquet", b"old and longer")
    root.put("t/dt=1/t.parquet", bytes(range(256)))
    root.put("t/dt=2/t.parquet", b"")
    assert root.read("t/dt=1/t.parquet") == bytes(range(256))
    assert root.folders("t") == ["dt=1", "dt=2"]
    assert root.folders("") == ["t"]
    assert [tuple(each) for each in root.files("t/dt=1") if "crc" not in each.path] == [
        ("t/dt=1/t.parquet", 256)
    ]
    assert root.files("t") == []


def test_what_is_removed_is_gone(root: Storage) -> None:
    root.put("t/.writing/x", b"1")
    root.put("t/y", b"2")
    root.remove("t/.writing")
    assert root.folders("t") == []
    assert root.read("t/y") == b"2"


def test_what_looks_compressed_is_read_as_it_is(root: Storage) -> None:
    root.put("d/x.json.gz", b"<html>")
    assert root.read("d/x.json.gz") == b"<html>"


def test_spark_spells_the_paths_below_the_root_as_we_do(root: Storage, spark: SparkSession) -> None:
    root.put("d/x.json.gz", b"1")
    spark_root = root.spark_root(["d"])
    pattern = spark_root.replace("[", "\\[").replace("]", "\\]")
    [found] = spark.read.format("binaryFile").load(f"{pattern}d").select("path").collect()
    assert found["path"].removeprefix(spark_root) == "d/x.json.gz"


def test_a_bucket_is_spelled_as_the_paths_below_it() -> None:
    """https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/fs/Path.html"""
    assert in_one_slash("s3://bucket/") == "s3://bucket/"
    assert in_one_slash("s3://bucket/prefix") == "s3://bucket/prefix/"
    assert in_one_slash("file:/") == "file:/"


def test_a_folder_holds_nothing_but_what_was_put(tmp_path: Path) -> None:
    storage = FolderStorage(str(tmp_path))
    storage.put("t/a", b"1")
    (tmp_path / "t" / "b").mkdir()
    with pytest.raises(RootUnusable, match="cannot be written"):
        storage.put("t/b", b"2")
    assert sorted(each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*")) == [
        "t",
        "t/a",
        "t/b",
    ]


def test_spark_from_pip_has_no_s3(spark: SparkSession) -> None:
    """Where it has, the night goes through Hadoop; that was never run on EMR."""
    assert not knows_s3(spark)
