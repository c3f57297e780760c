"""Reading one trail file: unreadable and unusual bytes, and agreement of both readers."""

from __future__ import annotations

import importlib.util
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from analytics import trail
from analytics.trail import Reader, load_binary_files
from analytics.trail_file import (
    MAXIMUM_JSON_CONTAINERS,
    WHY_NOT_NATIVE,
    FileReading,
    make_call_row,
    make_file_reader,
    read_file,
)
from mendq.model.failed_call import RefusedBy
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER
from tests.analytics.builders import QUEUE_ARN, WORKER, make_burst, make_record, pack_records
from tests.analytics.trail_file_examples import (
    GOOD,
    LARGEST,
    compress,
    make_readable_files,
    make_unreadable_files,
)
from tests.real_records import read_cloudtrail_records


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        *make_unreadable_files().values(),
        (b"", "empty"),
        (b"\x1f", "not_gzip"),
        (b"\x1f\x8b", "truncated"),
        (pack_records([])[:-1], "truncated"),
        (pack_records([]) + b"\x1f\x8bgarbage", "corrupt_gzip"),
        (compress(b"\xff\xfe\xfd"), "not_json"),
    ],
)
def test_unreadable_trail_file_gives_its_reason_and_no_calls(written: bytes, reason: str) -> None:
    reading = read_file(written)
    assert (reading.reason, reading.record_count, reading.calls) == (reason, 0, ())


def test_malformed_trail_record_is_counted_and_the_other_records_of_the_file_are_read() -> None:
    calls = make_burst("11-10 09:00", calls=2)
    without_time = make_record("11-10 09:00", eventTime=None)
    success = make_record("11-10 09:00", errorCode=None)
    text = json.dumps(calls[0])
    reading = read_file(pack_records([None, calls[0], text, without_time, success, calls[1]]))
    assert [position for position, _ in reading.calls] == [1, 5]
    assert reading.record_count == 6
    assert reading.unreadable_count_by_reason == {"not_a_record": 2, "without_id_name_or_time": 1}


@pytest.mark.parametrize(
    ("event", "agent", "is_own"),
    [
        ("ReceiveMessage", "mendq/cli md/Botocore#1.43", True),
        ("GetQueueAttributes", "[mendq/cli md/Botocore#1.43]", True),
        ("ChangeMessageVisibility", "mendq/client x", False),
        ("ChangeMessageVisibility", "Boto3/1.43 mendq/cli x", False),
        ("SendMessageBatch", "mendq/cli md/Botocore#1.43", False),
        ("SetQueueAttributes", "mendq/cli md/Botocore#1.43", False),
        ("ReceiveMessage", None, False),
    ],
)
def test_call_is_an_operators_own_look_only_if_a_read_api_was_called_by_the_mendq_cli(
    event: str, agent: str | None, *, is_own: bool
) -> None:
    made = make_record("11-10 09:00", eventName=event, userAgent=agent)
    ((position, call),) = read_file(pack_records([made])).calls
    assert make_call_row(position, call)["is_own_look"] is is_own


def test_read_file_finds_no_failed_calls_in_real_records_of_other_services() -> None:
    records = read_cloudtrail_records()
    reading = read_file(pack_records(records))
    assert reading.record_count == len(records) == 59
    assert (reading.calls, reading.unreadable_count_by_reason) == ((), {})


def test_native_reader_agrees_with_the_standard_library_reader_on_every_example_file() -> None:
    """The native reader is reused, so a file could leak into the next one."""
    assert WHY_NOT_NATIVE == "", "otherwise the standard library's reader is compared with itself"
    native = make_file_reader()
    for name, written in {**make_readable_files(), "torn": GOOD[:-9], "good": GOOD}.items():
        found = native(written)
        assert found.reason is None or name == "torn"
        assert found == read_file(written), name
    for written, _ in make_unreadable_files().values():
        assert native(written) == read_file(written)


@given(st.binary(max_size=300), st.integers(0, 400), st.booleans())
@settings(deadline=None)
@example(b"", 0, False)
def test_native_and_standard_library_reader_agree_on_any_bytes(
    noise: bytes, cut: int, is_inside: bool
) -> None:
    native = make_file_reader()
    text = zlib.decompress(GOOD, 31)
    torn = compress(text[:cut] + noise + text[cut:]) if is_inside else GOOD[:cut] + noise
    for written in (noise, torn, compress(noise)):
        assert native(written) == read_file(written)


@pytest.mark.parametrize("more", [0, 1])
def test_both_readers_refuse_a_trail_file_above_the_same_number_of_json_containers(
    more: int,
) -> None:
    """Each record is an object with a list in it; the document and its list are two more."""
    record_text = '{"eventSource":"a","b":[]},'
    odd = f'{{"eventSource":"{"[" * (1 + more)}"}}'
    text = f'{{"Records":[{record_text * ((MAXIMUM_JSON_CONTAINERS - 3) // 2)}{odd}]}}'
    assert text.count("[") + text.count("{") - MAXIMUM_JSON_CONTAINERS == more
    native = make_file_reader()(compress(text))
    written = read_file(compress(text))
    assert (native.reason, native.record_count) == (written.reason, written.record_count)
    assert (native.reason is None) is not bool(more)


def test_native_reader_is_chosen_only_if_its_wheels_can_be_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Reader.choose_for_this_process() == Reader(NATIVE_READER)
    monkeypatch.setattr(trail, "WHY_NO_ARROW", "cannot import pyarrow")
    assert Reader.choose_for_this_process() == Reader(FALLBACK_READER, "cannot import pyarrow")


@pytest.mark.parametrize("wheel", ["isal", "msgspec", "numpy"])
def test_standard_library_reads_the_trail_if_a_wheel_is_missing(
    monkeypatch: pytest.MonkeyPatch, wheel: str
) -> None:
    """Import a second copy of the module, so that no other test sees it."""
    monkeypatch.setitem(sys.modules, wheel, None)
    found = importlib.util.find_spec("analytics.trail_file")
    assert found
    assert found.loader
    alone = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "analytics.trail_file", alone)
    found.loader.exec_module(alone)
    assert wheel in alone.WHY_NOT_NATIVE
    assert alone.make_file_reader()(memoryview(GOOD)).record_count == 3


# Trail files read by Spark.

FOLDER = "d [1]"
# `refused_by` is an enum of Mendq, and Spark takes only text.
REFUSED = {
    "eventName": "SendMessage",
    "errorCode": "AccessDenied",
    "errorMessage": f"User: {WORKER} is not authorized to perform: sqs:sendmessage on resource: "
    f"{QUEUE_ARN} with an explicit deny in a resource-based policy",
}


@pytest.fixture(params=[NATIVE_READER, FALLBACK_READER])
def reader(request: pytest.FixtureRequest) -> Reader:
    return Reader(request.param)


def read_files(
    spark: SparkSession, folder: Path, reader: Reader, files: dict[str, bytes]
) -> DataFrame:
    (folder / FOLDER).mkdir()
    for name, written in files.items():
        (folder / FOLDER / f"{name}.json.gz").write_bytes(written)
    root = f"file:{folder}/"
    return reader.read_in_spark(load_binary_files(spark, root, [FOLDER]), root)


def make_row(name: str, reading: FileReading) -> dict[str, Any]:
    faults = [
        {"reason": why, "records": number}
        for why, number in reading.unreadable_count_by_reason.items()
    ]
    calls = [make_call_row(*call) for call in reading.calls]
    own = {"file": f"{FOLDER}/{name}.json.gz", "reason": reading.reason}
    return own | {"records": reading.record_count, "unreadable_records": faults, "calls": calls}


def test_spark_reads_files_of_the_listed_folders_only_into_the_standard_library_readers_rows(
    spark: SparkSession, tmp_path: Path, reader: Reader
) -> None:
    """Files in deeper folders are not read, because the listing does not name them."""
    names = ("types", "surrogate", "codes", "many", "visibility", "utf-16")
    files = {name: make_readable_files()[name] for name in names}
    files |= {"refused": pack_records([make_record("11-10 09:00", **REFUSED)])}
    files |= {"torn": GOOD[:-9], "largest": compress(LARGEST), "larger": compress(LARGEST + b" ")}
    for deeper in ("x", "day=1"):
        (tmp_path / FOLDER / deeper).mkdir(parents=True)
        (tmp_path / FOLDER / deeper / "b.json.gz").write_bytes(GOOD)
    (tmp_path / FOLDER).rename(tmp_path / "moved")
    frame = read_files(spark, tmp_path, reader, files)
    for deeper in ("x", "day=1"):
        (tmp_path / "moved" / deeper).rename(tmp_path / FOLDER / deeper)
    found = {spark_row["file"]: spark_row.asDict(recursive=True) for spark_row in frame.collect()}
    expected = (make_row(name, read_file(written)) for name, written in files.items())
    assert found == {expected_row["file"]: expected_row for expected_row in expected}
    (call,) = found[f"{FOLDER}/refused.json.gz"]["calls"]
    assert call["refused_by"] == RefusedBy.RESOURCE_POLICY_DENIES
