"""One file's bytes: near-misses of legal gzip and JSON first."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics import trail_file
from analytics.trail_file import read_file
from tests.analytics.authored import burst, content, record
from tests.real_records import DETONATIONS, detonations


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"", "empty"),
        (b"\x1f", "not_gzip"),
        (b"\x1f\x8b", "truncated"),
        (content([])[:-1], "truncated"),
        (content([])[:-8] + bytes(8), "corrupt_gzip"),
        (content([]) + b"\x1f\x8bgarbage", "corrupt_gzip"),
        (gzip.compress(b" ", mtime=0) * 17, "too_many_gzip_members"),
        (gzip.compress(bytes(trail_file.MAXIMUM_BYTES + 1), mtime=0), "too_large"),
        (
            gzip.compress(b"{" * (trail_file.MAXIMUM_CONTAINERS + 1), mtime=0),
            "too_many_json_values",
        ),
        (gzip.compress(b'{"Records": {}}', mtime=0), "not_a_trail_file"),
        (gzip.compress(b'{"Records": [NaN', mtime=0), "not_json"),
        (gzip.compress(b"\xff\xfe\xfd", mtime=0), "not_json"),
    ],
)
def test_an_unreadable_file_names_its_reason(written: bytes, reason: str) -> None:
    reading = read_file(written)
    assert (reading.reason, reading.records, reading.calls) == (reason, 0, ())


def test_records_cost_themselves() -> None:
    calls = burst("11-10 09:00", calls=2)
    without_time = record("11-10 09:00", eventTime=None)
    success = record("11-10 09:00", errorCode=None)
    text = json.dumps(calls[0])
    reading = read_file(content([None, calls[0], text, without_time, success, calls[1]]))
    assert [position for position, _ in reading.calls] == [1, 5]
    assert reading.records == 6
    assert reading.unreadable == {"not_a_record": 2, "without_id_name_or_time": 1}


def test_a_number_longer_than_python_converts_is_legal_json() -> None:
    reading = read_file(gzip.compress(b'{"Records": [' + b"9" * 5000 + b"]}", mtime=0))
    assert (reading.records, reading.unreadable) == (1, {"not_a_record": 1})


def test_what_follows_the_gzip_is_not_ours() -> None:
    assert read_file(content(burst("11-10 09:00")) + bytes(512)).records == 3


@pytest.mark.skipif(not DETONATIONS.exists(), reason=f"{DETONATIONS.name} is not here")
def test_real_records_of_other_services_are_no_faults() -> None:
    reading = read_file(content(detonations()))
    assert reading.records == len(detonations()) > 300
    assert (reading.calls, reading.unreadable) == ((), {})


@given(st.binary(max_size=400), st.integers(0, 400))
@example(b"", 0)
def test_any_bytes_give_a_reading(noise: bytes, cut: int) -> None:
    assert read_file(noise).calls == ()
    read_file(content(burst("11-10 09:00"))[:cut] + noise)
