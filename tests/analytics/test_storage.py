"""Storage roots: folder, Hadoop and Arrow behave alike. Without S3 all three read folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from pyspark.sql import SparkSession

from analytics.storage import (
    ArrowStorage,
    FolderStorage,
    HadoopStorage,
    RootUnusable,
    Storage,
    open_root,
)
from analytics.trail import Reader
from mendq.nightly.verdict import FALLBACK_READER
from tests.analytics.trail_file_examples import GOOD


class BucketInAFolder(ArrowStorage):
    """Arrow storage in a folder that, like S3, needs no parent folders."""

    def __init__(self, folder: Path) -> None:
        super().__init__("s3://bucket", SubTreeFileSystem(str(folder), LocalFileSystem()))
        self._parent = folder

    def write(self, path: str, content: bytes) -> None:
        (self._parent / "bucket" / path).parent.mkdir(parents=True, exist_ok=True)
        super().write(path, content)


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


def test_storage_lists_nothing_in_a_missing_folder_and_reads_none_for_a_missing_file(
    root: Storage,
) -> None:
    assert (root.list_folders("x"), root.list_file_sizes("x"), root.read("x/y")) == ([], {}, None)


def test_storage_reads_what_was_written_last_whole_or_up_to_a_number_of_bytes(
    root: Storage,
) -> None:
    """Hadoop reads the part before a colon as a URI scheme."""
    root.write("t:1/dt=1/t.parquet", b"old" * 999)
    root.write("t:1/dt=1/t.parquet", bytes(range(256)))
    assert root.read("t:1/dt=1/t.parquet") == bytes(range(256))
    assert root.read("t:1/dt=1/t.parquet", 9) == bytes(range(9))


def test_storage_lists_only_what_is_directly_in_a_folder_even_with_colons_in_names(
    root: Storage,
) -> None:
    root.write("t:1/dt=1/t.parquet", bytes(range(256)))
    root.write("t:1/dt=2/t.parquet", b"")
    assert root.list_folders("t:1") == ["dt=1", "dt=2"]
    assert root.list_folders("") == ["t:1"]
    sizes = root.list_file_sizes("t:1/dt=1").items()
    assert [size for size in sizes if "crc" not in size[0]] == [("t:1/dt=1/t.parquet", 256)]
    assert root.list_file_sizes("t:1") == {}


def test_storage_finds_a_file_with_its_size_or_a_folder_and_takes_neither_for_the_other(
    root: Storage,
) -> None:
    for region in ("c", "a", "b"):
        root.write(f"t/{region}/x.parquet", b"four")
    assert root.find_file_size("t/a/x.parquet") == 4
    assert root.find_file_size("t/a/y.parquet") is None
    assert root.find_file_size("t/a") is None
    assert root.find_file_size("t/a/x.parquet/deeper") is None
    assert [root.has_folder(folder) for folder in ("t/a", "t/z", "t/a/x.parquet")] == [
        *(True, False, False)
    ]


def test_storage_lists_all_first_folders_in_order_or_as_many_as_it_may(root: Storage) -> None:
    for region in ("c", "a", "b"):
        root.write(f"t/{region}/x.parquet", b"four")
    assert root.list_first_folders("t", 9) == ["a", "b", "c"]
    assert len(root.list_first_folders("t", 2)) == 2
    assert root.list_first_folders("nothing", 2) == []


def test_log_file_that_grows_after_listing_is_read_up_to_its_listed_size(root: Storage) -> None:
    root.write("t/grown", GOOD * 2)
    [row] = Reader(FALLBACK_READER).read_on_driver(root, [("t/grown", len(GOOD))]) or []
    assert (row["reason"], row["records"]) == (None, 3)


def test_folder_storage_skips_files_that_vanish_and_folders_with_undecodable_names(
    tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "d" / "\udcff").mkdir(parents=True)
    (tmp_path / "d" / "stays").write_bytes(b"1")
    (tmp_path / "d" / "gone").symlink_to("nothing")
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    looked = FolderStorage(str(tmp_path))
    assert (looked.list_file_sizes("d"), looked.list_folders("d")) == ({"d/stays": 1}, [])


def test_staged_files_can_be_read_while_staging_and_are_gone_afterwards_and_other_files_stay(
    root: Storage, spark: SparkSession
) -> None:
    root.write("t/y", b"2")
    with root.staging() as stage:
        spark.range(3).coalesce(1).write.parquet(f"{stage.make_spark_root([])}n")
        [part] = [name for name in stage.list_file_sizes("n") if name.endswith(".parquet")]
        assert (stage.read(part) or b"").startswith(b"PAR1")
    assert stage.list_file_sizes("n") == {}
    assert [folder for name in root.list_folders("") for folder in root.list_folders(name)] == []
    assert root.read("t/y") == b"2"


def test_spark_paths_below_a_storage_root_equal_the_storage_paths(
    root: Storage, spark: SparkSession
) -> None:
    root.write("d/x.json.gz", b"<html>")
    spark_root = root.make_spark_root(["d"])
    pattern = spark_root.replace("[", "\\[").replace("]", "\\]")
    [found] = spark.read.format("binaryFile").load(f"{pattern}d").select("path").collect()
    assert found["path"].removeprefix(spark_root) == "d/x.json.gz"


def test_storage_reads_a_file_as_it_is_though_its_name_says_gzip(root: Storage) -> None:
    root.write("d/x.json.gz", b"<html>")
    assert root.read("d/x.json.gz") == b"<html>"


@pytest.mark.parametrize("spelled", ["x/../trail", "./trail", "trail/", "trail//", "link"])
def test_folder_root_with_dots_or_links_is_resolved_as_spark_resolves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    for name in ("x", "trail"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("trail")
    monkeypatch.chdir(tmp_path)
    assert FolderStorage(spelled).make_spark_root([]) == f"file:{tmp_path.resolve()}/trail/"


def test_failed_write_to_folder_storage_changes_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    storage = FolderStorage(str(tmp_path))
    storage.write("t/a", b"1")
    (tmp_path / "t" / "b").mkdir()
    for name, target in (("x", "y"), ("y", "x")):
        (tmp_path / name).symlink_to(target)
    for root, path in (("", "t/b"), ("t/a", "b"), ("t/a/below", "b"), ("x", "t")):
        with pytest.raises(RootUnusable, match="cannot be written to"):
            FolderStorage(str(tmp_path / root)).write(path, b"2")
    there = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert there == ["t", "t/a", "t/b", "x", "y"]
    assert storage.read("t/a") == b"1"


def test_hadoop_storage_that_cannot_read_raises_and_does_not_report_the_file_missing(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a nightly run would silently lack all its trail files."""
    (tmp_path / "file").write_bytes(b"there")
    root = HadoopStorage(f"file://{tmp_path}", spark)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(RootUnusable, match="gone"):
        root.read("file")
