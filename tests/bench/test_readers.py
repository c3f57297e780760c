"""The trail that the bench reads is the same every time, and every way finds what lies in it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench import readers
from bench.nightly import KEYS, READERS, count_by_read_json, find_sessions, read_trail
from bench.trail import Trail, trail
from mendq.model.failed_call import FailedCall, read
from tests.analytics.conftest import spark

__all__ = ["spark"]

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
Go = Callable[[SparkSession, Trail], None]
WAYS: dict[str, Go] = {
    **{name: lambda spark, made, name=name: read_trail(spark, made, name) for name in READERS},  # type: ignore[misc]
    "spark.read.json": count_by_read_json,
}


def _contents(made: Trail) -> dict[str, bytes]:
    return {each.relative_to(made.root).as_posix(): each.read_bytes() for each in made.files()}


def test_the_same_trail_every_time_and_half_a_one_is_made_anew(tmp_path: Path) -> None:
    one, other = (trail(4, 50, tmp_path / name) for name in ("one", "other"))
    whole = _contents(one)
    assert len(whole) == 4
    assert whole == _contents(other)
    one.files()[0].write_bytes(b"retained")
    assert b"retained" in _contents(trail(4, 50, tmp_path / "one")).values()
    (one.root / "truth.json").unlink()
    assert _contents(trail(4, 50, tmp_path / "one")) == whole


def test_the_truth_is_what_lies_there_and_what_the_limit_finds(tmp_path: Path) -> None:
    made = trail(6, 1000, tmp_path)
    texts = [gzip.decompress(each) for each in _contents(made).values()]
    records = [each for text in texts for each in json.loads(text)["Records"]]
    failed = [each for each in map(read, records) if isinstance(each, FailedCall)]
    truth = made.truth
    assert (truth.files, truth.records) == (6, len(records))
    assert truth.failed_sqs_calls == len({each.event_id for each in failed}) == len(failed) > 0
    assert truth.raw_bytes == sum(map(len, texts))
    assert truth.bytes == sum(map(len, _contents(made).values()))
    with readers.processes() as pool:
        ways = (readers.inflate, readers.parse)
        found = [readers.read_all(pool, each, made.files()) for each in ways]
    assert found == [(truth.raw_bytes, 0), (truth.raw_bytes, truth.failed_sqs_calls)]


def test_its_shape_is_the_one_that_goals_were_set_on(tmp_path: Path) -> None:
    """1.77 KB a record, 7.2 : 1, 70 of 100 SQS's, 1 of 100 failed."""
    truth = trail(2, 2_000, tmp_path).truth
    assert 1_700 < truth.raw_bytes / truth.records < 1_850
    assert 6.8 < truth.raw_bytes / truth.bytes < 7.6
    assert 0.005 < truth.failed_sqs_calls / truth.records < 0.009


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_trails_truth_and_one_that_loses_calls_is_no_measure(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    made = trail(6, 100, tmp_path)
    WAYS[way](spark, made)
    more = replace(made.truth, failed_sqs_calls=made.truth.failed_sqs_calls + 1)
    with pytest.raises(RuntimeError, match=f"not .*{more.failed_sqs_calls}"):
        WAYS[way](spark, replace(made, truth=more))


def test_bursts_are_as_many_as_the_calls_make(spark: SparkSession) -> None:
    """Or find_sessions would raise."""
    find_sessions(spark, KEYS * 21)
