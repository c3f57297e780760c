"""Packed tables are measured before they are unpacked: honest ones pass, bombs and lies do not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from analytics.days import to_microseconds
from analytics.packed_table import PackedTableRefused, UnpackedSize, measure_packed_table
from analytics.storage import FolderStorage, unpack_snappy
from analytics.tables import SUMMED_COLUMNS, Tables, make_table_path
from tests.analytics.packed_bombs import (
    MAGIC,
    encode_field,
    encode_number,
    encode_struct,
    make_file,
    make_footer,
    make_page,
    make_row_group,
    pack,
    pack_copies,
    pack_table,
)
from tests.analytics.week_builders import MONDAY, make_account_incident, make_incident

AMPLE = UnpackedSize(1_000_000, 1_000_000_000)
ONE_TEXT = b"\1\0\0\0a"


def _unpack(packed_bytes: bytes) -> bytes:
    """Unpack with Arrow. The first bytes of Snappy say the size."""
    size = 0
    for position, byte in enumerate(packed_bytes):
        size |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    return bytes(pa.decompress(packed_bytes, size, "snappy", asbytes=True))


def _never_unpack(packed_bytes: bytes) -> bytes:
    raise AssertionError(f"{len(packed_bytes)} bytes were unpacked")


def _unpack_little(packed_bytes: bytes) -> bytes:
    unpacked_bytes = _unpack(packed_bytes)
    assert len(unpacked_bytes) < 1_000
    return unpacked_bytes


def _measure(
    content: bytes,
    limit: UnpackedSize = AMPLE,
    unpack: Callable[[bytes], bytes] = _unpack,
) -> UnpackedSize:
    return measure_packed_table(content, SUMMED_COLUMNS, limit, unpack)


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "queue_arn": st.text(max_size=90),
                "symptom": st.text(max_size=90),
                "why": st.none() | st.text(max_size=9),
                "failed_calls": st.integers(0, 2**40),
            }
        ),
        max_size=40,
    ),
    options=st.fixed_dictionaries(
        {
            "use_dictionary": st.booleans(),
            "compression": st.sampled_from(["snappy", "none"]),
            "data_page_size": st.sampled_from([64, 1 << 20]),
            "row_group_size": st.sampled_from([7, 1 << 20]),
        }
    ),
)
def test_well_formed_table_is_measured_with_its_exact_rows_and_at_least_the_bytes_of_its_texts(
    rows: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    content = pack([make_incident() | row for row in rows], **options)
    size = _measure(content)
    assert size.rows == len(rows)
    assert size.bytes >= sum(len(f"{row['queue_arn']}{row['symptom']}".encode()) for row in rows)


def test_tables_of_the_nightly_job_are_measured_with_100_to_500_bytes_a_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The limits of an account are derived from this size."""
    longest = {"queue_arn": f"arn:aws:sqs:ap-southeast-1:123456789012:{'q' * 80}"}
    rows: list[dict[str, Any]] = []
    for number in range(300):
        row = make_incident(number, **longest)
        times = {name: to_microseconds(row[name]) for name in ("first_failure", "last_failure")}
        rows.append(row | times)
    storage = FolderStorage(str(tmp_path))
    Tables(spark, storage, print).write(
        spark.createDataFrame([], "day date").selectExpr(
            *(f"cast(null as string) as {name}" for name in _FAILED_CALL_COLUMNS), "day"
        ),
        {"incidents": {MONDAY: rows}},
        [MONDAY],
    )
    content = storage.read(make_table_path("incidents", MONDAY)) or b""
    size = _measure(content, unpack=lambda packed: unpack_snappy(spark, packed))
    assert size.rows == 300
    assert 100 * 300 < size.bytes < 500 * 300


_FAILED_CALL_COLUMNS = (
    *("event_id", "event_time", "event_name", "error_code", "queue_arn", "account", "region"),
    *("principal_arn", "request_id", "symptom", "file"),
)


def test_empty_table_is_measured_as_no_rows_and_no_bytes() -> None:
    assert _measure(pack([])) == UnpackedSize(0, 0)
    assert _measure(make_file(make_footer([]))) == UnpackedSize(0, 0)


def test_table_at_its_size_limit_is_measured_and_one_row_or_byte_above_it_is_refused() -> None:
    content = pack([make_incident(number) for number in range(9)])
    size = _measure(content)
    assert _measure(content, size) == size
    for limit in (UnpackedSize(size.rows - 1, size.bytes), UnpackedSize(size.rows, size.bytes - 1)):
        with pytest.raises(PackedTableRefused, match=r"^too_much$"):
            _measure(content, limit)


def test_few_kilobytes_with_many_rows_are_refused_before_anything_is_unpacked() -> None:
    content = pack_copies(make_incident(), 300_000)
    assert len(content) < 60_000
    with pytest.raises(PackedTableRefused, match=r"^too_much$"):
        _measure(content, UnpackedSize(250_000, 10**12), _never_unpack)


def test_long_text_that_many_rows_share_counts_once_for_each_row() -> None:
    """Spark copies the text for each row, though the file holds it once."""
    content = pack_copies(make_incident(symptom="s" * 500_000), 10_000)
    assert len(content) < 100_000
    assert _measure(content, UnpackedSize(10**6, 10**12)).bytes > 500_000 * 10_000


def test_page_that_unpacks_beyond_the_limit_is_refused_before_it_is_unpacked() -> None:
    content = pack([make_incident(symptom="s" * 3_000_000)])
    assert len(content) < 300_000
    with pytest.raises(PackedTableRefused, match=r"^too_much$"):
        _measure(content, UnpackedSize(10, 1_000_000), _unpack_little)


def test_columns_that_mendq_does_not_read_do_not_count_toward_the_measured_size() -> None:
    lean = _measure(pack([make_incident()]))
    assert _measure(pack([make_incident(principals=["p" * 3_000_000])])) == lean


def test_page_that_two_row_groups_name_is_refused_before_anything_is_unpacked() -> None:
    """Otherwise 60 kB of footer could name 20 MB two thousand times."""
    page = make_page(1, ONE_TEXT, unpacked_bytes=5)
    begin = len(MAGIC)
    row_group = make_row_group(1, begin, len(page))
    next_row_group = make_row_group(1, begin + len(page), len(page))
    once = _measure(make_file(make_footer([row_group]), page))
    apart = _measure(make_file(make_footer([next_row_group, row_group]), page * 2))
    assert (apart.rows, apart.bytes) == (2 * once.rows, 2 * once.bytes)
    wide_row_group = make_row_group(2, begin, 2 * len(page))
    for row_groups in ([row_group, row_group], [next_row_group, wide_row_group]):
        content = make_file(make_footer(list(row_groups)), page * 2)
        with pytest.raises(PackedTableRefused, match=r"^unreadable$"):
            _measure(content, AMPLE, _never_unpack)


def test_page_header_longer_than_16_kib_is_refused_though_its_page_is_tiny() -> None:
    """A header of 20 MB takes seconds and gigabytes to read, and announces 0 bytes."""
    for extra_bytes, is_accepted in ((16_000, True), (17_000, False), (2_000_000, False)):
        page = make_page(1, ONE_TEXT, unpacked_bytes=5, extra_bytes=extra_bytes)
        content = make_file(make_footer([make_row_group(1, len(MAGIC), len(page))]), page)
        if is_accepted:
            assert _measure(content).rows == 1
            continue
        with pytest.raises(PackedTableRefused, match=r"^unreadable$"):
            _measure(content, AMPLE, _never_unpack)


def test_page_headers_of_more_than_1_mib_together_are_refused() -> None:
    page = make_page(1, ONE_TEXT, unpacked_bytes=5, extra_bytes=16_000)
    for page_count, is_accepted in ((60, True), (70, False)):
        pages = page * page_count
        row_group = make_row_group(page_count, len(MAGIC), len(pages))
        content = make_file(make_footer([row_group]), pages)
        if is_accepted:
            assert _measure(content).rows == page_count
            continue
        with pytest.raises(PackedTableRefused, match=r"^too_much$"):
            _measure(content, AMPLE, _never_unpack)


def _make_lies() -> dict[str, bytes]:
    """Return files that Spark would unpack to something else than their headers announce."""
    page = make_page(1, ONE_TEXT, unpacked_bytes=5)
    snappy_bomb = encode_number(2_000_000_000) + b"\0a"
    lying_page = make_page(1, snappy_bomb, unpacked_bytes=5)
    begin = len(MAGIC)
    good = make_row_group(1, begin, len(page))
    deep: list[Any] = [{4: b"root", 5: 1}, *({4: b"a", 5: 1} for _ in range(300)), {1: 6, 4: b"x"}]
    twice = encode_struct(make_footer([]))[:-1] + encode_field(4, [good]) + b"\0"
    return {
        "no footer": MAGIC + page + MAGIC,
        "footer beyond the file": MAGIC + b"\xff\xff\xff\x7f" + MAGIC,
        "footer too long": make_file(make_footer([], schema=[{4: b"x" * 70_000}])),
        "other magic": b"PARE" + make_file(make_footer([good]), page)[4:],
        "page larger than announced": make_file(
            make_footer([make_row_group(1, begin, len(lying_page), codec=1)]), lying_page
        ),
        "page without packing larger than announced": make_file(
            make_footer([good]), make_page(1, ONE_TEXT, unpacked_bytes=4)
        ),
        "page beyond its column": make_file(
            make_footer([make_row_group(1, begin, len(page) - 1)]), page
        ),
        "column beyond the file": make_file(make_footer([make_row_group(1, begin, 10**9)]), page),
        "more values than pages have": make_file(
            make_footer([make_row_group(1, begin, len(page), values=10**12)]), page
        ),
        "values built from values before": make_file(
            make_footer([good]), make_page(1, ONE_TEXT, unpacked_bytes=5, encoding=7)
        ),
        "another packing": make_file(
            make_footer([make_row_group(1, begin, len(page), codec=6)]), page
        ),
        "texts of fixed length": make_file(
            make_footer([make_row_group(1, begin, len(page), type=7)]), page
        ),
        "values in another file": make_file(
            make_footer([make_row_group(1, begin, len(page), file=b"s3://x")]), page
        ),
        "fewer than no rows": make_file(make_footer([make_row_group(-1, begin, len(page))]), page),
        "columns nested too deeply": make_file(make_footer([good], schema=deep), page),
        "name of a writer too long": make_file(make_footer([good], creator=b" " * 999), page),
        "field twice": make_file(twice, page),
        "structs nested too deeply": make_file(b"\x1c" * 900 + b"\0" * 901, page),
        "list longer than the file": make_file(b"\x19\xfc\xff\xff\xff\xff\x07\0", page),
        "number longer than Java reads": make_file(b"\x15" + b"\x80" * 9 + b"\x01\0", page),
    }


def test_well_formed_file_that_the_lies_are_made_from_is_measured() -> None:
    page = make_page(1, ONE_TEXT, unpacked_bytes=5)
    content = make_file(make_footer([make_row_group(1, len(MAGIC), len(page))]), page)
    assert _measure(content).rows == 1


@pytest.mark.parametrize("lie", [pytest.param(lie, id=name) for name, lie in _make_lies().items()])
def test_file_whose_headers_lie_or_are_unsupported_is_refused_before_anything_is_unpacked(
    lie: bytes,
) -> None:
    with pytest.raises(PackedTableRefused, match=r"^unreadable$"):
        _measure(lie, AMPLE, _never_unpack)


@pytest.mark.parametrize(
    "options",
    [{"compression": "zstd"}, {"compression": "gzip"}, {"data_page_version": "2.0"}],
    ids=str,
)
def test_table_that_is_packed_in_another_way_than_the_nightly_jobs_is_refused(
    options: dict[str, Any],
) -> None:
    with pytest.raises(PackedTableRefused, match=r"^unreadable$"):
        _measure(pack([make_incident()], **options))


def test_column_with_delta_encoded_texts_is_refused() -> None:
    """A short page could hold the square of its size."""
    names = [f"{'n' * 50_000}{number}" for number in range(50)]
    content = pack_table(
        pa.table({"queue_arn": names}),
        use_dictionary=False,
        column_encoding={"queue_arn": "DELTA_BYTE_ARRAY"},
    )
    with pytest.raises(PackedTableRefused, match=r"^unreadable$"):
        _measure(content)


def test_file_with_101_row_groups_or_2001_pages_is_refused_before_anything_is_unpacked() -> None:
    page = make_page(1, ONE_TEXT, unpacked_bytes=5)
    groups = [make_row_group(1, len(MAGIC), len(page))] * 101
    empty_groups = [make_row_group(0, len(MAGIC), 0)] * 101
    many_pages = page * 2_001
    wide = make_row_group(2_001, len(MAGIC), len(many_pages))
    for content in (
        make_file(make_footer(list(groups)), page),
        make_file(make_footer(list(empty_groups)), page),
        make_file(make_footer([wide]), many_pages),
    ):
        with pytest.raises(PackedTableRefused, match=r"^too_much$"):
            _measure(content, AMPLE, _never_unpack)


@given(
    st.integers(0, 2**31),
    st.binary(min_size=1, max_size=8),
    st.sampled_from([0.0, 0.5, 0.9, 0.97, 1.0]),
)
def test_any_change_to_a_table_leads_to_a_size_or_a_refusal(
    offset: int, change: bytes, region: float
) -> None:
    """No other exception: one file must not end the job."""
    content = bytearray(_pack_sample())
    position = min(int(region * len(content)) + offset % 400, len(content) - len(change))
    content[position : position + len(change)] = change
    size = UnpackedSize(0, 0)
    with suppress(PackedTableRefused):
        size = _measure(bytes(content), AMPLE, _unpack_or_refuse)
    assert size.fits(AMPLE)


def _unpack_or_refuse(packed_bytes: bytes) -> bytes:
    try:
        return _unpack(packed_bytes)
    except OSError as error:
        raise ValueError(str(error)) from error


@cache
def _pack_sample() -> bytes:
    """Return a table. pyarrow imports pandas for the first one, so none is made at import."""
    return pack([make_account_incident("1" * 12, number) for number in range(40)])


def test_unpack_snappy_returns_the_unpacked_bytes_and_raises_value_error_for_corrupt_ones(
    spark: SparkSession,
) -> None:
    packed = pa.compress(b"a" * 1000, "snappy", asbytes=True)
    assert unpack_snappy(spark, packed) == b"a" * 1000
    with pytest.raises(ValueError, match=r".+"):
        unpack_snappy(spark, b"\x05\xff\xff")
