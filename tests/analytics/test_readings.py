"""Both readers give the rows of the standard library's, whatever lies in the trail."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from pathlib import Path

import pytest
from chispa import assert_df_equality
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics import trail
from analytics.trail import SPARK_READING, Reader, binary_files
from analytics.trail_file import MAXIMUM_CONTAINERS, call_row, file_reader, read_file
from mendq.nightly.verdict import FALLBACK, NATIVE
from tests.analytics.authored import burst, content
from tests.analytics.nasty_files import GOOD, LARGEST, readable, unreadable, zipped


@pytest.fixture(params=[NATIVE, FALLBACK])
def reader(request: pytest.FixtureRequest) -> Reader:
    return Reader(request.param)


def read(spark: SparkSession, folder: Path, reader: Reader) -> DataFrame:
    root = f"file:{folder}/"
    return reader.readings(binary_files(spark, root, ["d [1]"]), root)


def write(folder: Path, files: dict[str, bytes]) -> None:
    (folder / "d [1]").mkdir()
    for name, written in files.items():
        (folder / "d [1]" / f"{name}.json.gz").write_bytes(written)


def expected(spark: SparkSession, files: dict[str, bytes]) -> DataFrame:
    rows = []
    for name, written in files.items():
        reading = read_file(written)
        rows.append(
            (
                f"d [1]/{name}.json.gz",
                reading.reason,
                reading.records,
                list(reading.unreadable.items()),
                [call_row(*call) for call in reading.calls],
            )
        )
    return spark.createDataFrame(rows, SPARK_READING)


def test_nasty_files_give_the_rows_of_the_standard_library(
    spark: SparkSession, tmp_path: Path, reader: Reader
) -> None:
    files = {f"u-{name}": written for name, (written, _) in unreadable().items()}
    files |= {f"r-{name}": written for name, written in readable().items()}
    write(tmp_path, files)
    assert_df_equality(
        read(spark, tmp_path, reader),
        expected(spark, files),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_what_lies_deeper_is_not_read(spark: SparkSession, tmp_path: Path, reader: Reader) -> None:
    """No listing names it, so that quality would be silent about its calls."""
    write(tmp_path, {"a": content(burst("11-10 09:00"))})
    for deeper in ("x", "day=1"):
        (tmp_path / "d [1]" / deeper).mkdir()
        (tmp_path / "d [1]" / deeper / "b.json.gz").write_bytes(content(burst("11-10 10:00")))
    found = read(spark, tmp_path, reader).collect()
    assert [each["file"] for each in found] == ["d [1]/a.json.gz"]


def test_the_reasons_and_what_is_legal() -> None:
    assert {name: read_file(each).reason for name, (each, _) in unreadable().items()} == {
        name: reason for name, (_, reason) in unreadable().items()
    }
    assert {read_file(each).reason for each in readable().values()} == {None}


def test_the_largest_legal_file_is_read_and_one_byte_more_is_not(
    spark: SparkSession, tmp_path: Path, reader: Reader
) -> None:
    write(tmp_path, {"a": zipped(LARGEST), "b": zipped(LARGEST + b" "), "c": GOOD})
    found = read(spark, tmp_path, reader).select("file", "reason", "records").collect()
    assert sorted(tuple(each) for each in found) == [
        ("d [1]/a.json.gz", None, 0),
        ("d [1]/b.json.gz", "too_large", 0),
        ("d [1]/c.json.gz", None, 3),
    ]


def test_thousands_of_small_files_make_few_tasks(
    spark: SparkSession, tmp_path: Path, reader: Reader
) -> None:
    write(tmp_path, {f"{number}": GOOD for number in range(3_000)})
    found = read(spark, tmp_path, reader)
    assert found.rdd.getNumPartitions() <= 8
    [total] = found.select(sf.sum("records").alias("n"), sf.sum(sf.size("calls"))).collect()
    assert tuple(total) == (9_000, 9_000)


@given(st.binary(max_size=300), st.integers(0, 400), st.booleans())
@settings(deadline=None)
def test_native_code_is_of_no_other_opinion(noise: bytes, cut: int, is_inside: bool) -> None:
    native = file_reader()
    text = zlib.decompress(GOOD, 31)
    torn = zipped(text[:cut] + noise + text[cut:]) if is_inside else GOOD[:cut] + noise
    for written in (noise, torn, zipped(noise)):
        assert native(written) == read_file(written)


def test_a_file_shows_nothing_of_the_one_before() -> None:
    native = file_reader()
    assert native(content(burst("11-10 09:00", calls=9))).records == 9
    for written in (zipped('{"Records": [{}]}'), GOOD[:-9], GOOD):
        assert native(written) == read_file(written)


@pytest.mark.parametrize("more", [0, 1])
def test_values_are_counted_alike_over_every_block(more: int) -> None:
    of_each = (MAXIMUM_CONTAINERS - 3) // 2
    nested = '[],{},"["' if more else '[],{},"("'
    text = f'{{"Records":[{{"eventSource":"a","b":[{"[],{}," * (of_each - 1)}{nested}]}}]}}'
    opened = text.count("[") + text.count("{")
    assert opened - MAXIMUM_CONTAINERS == more
    native, written = file_reader()(zipped(text)), read_file(zipped(text))
    assert (native.reason, native.records) == (written.reason, written.records)
    assert (native.reason is None) is not bool(more)


@pytest.mark.parametrize("at", [0, 200_000])
def test_a_byte_that_is_no_utf8_is_seen_wherever_it_lies(at: int) -> None:
    text = b'{"Records":[{"eventSource":"a","b":"%s"}]}' % (b"a" * at + b"\xff" + b"a" * 200_000)
    assert file_reader()(zipped(text)) == read_file(zipped(text))


def test_the_native_reader_is_chosen_where_its_wheels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Reader.of_this_process() == Reader(NATIVE)
    monkeypatch.setattr(trail, "WHY_NO_ARROW", "cannot import pyarrow")
    assert Reader.of_this_process() == Reader(FALLBACK, "cannot import pyarrow")


@pytest.mark.parametrize("wheel", ["isal", "msgspec", "numpy"])
def test_without_a_wheel_the_standard_library_reads_in_its_place(
    monkeypatch: pytest.MonkeyPatch, wheel: str
) -> None:
    """A module of its own, so that no other test sees it."""
    monkeypatch.setitem(sys.modules, wheel, None)
    found = importlib.util.find_spec("analytics.trail_file")
    assert found
    assert found.loader
    alone = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "analytics.trail_file", alone)
    found.loader.exec_module(alone)
    assert wheel in alone.WHY_NOT_NATIVE
    assert alone.file_reader()(memoryview(GOOD)).records == 3
