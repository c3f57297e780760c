"""The trail that the bench reads is the same every time, and every way finds what lies in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.nightly import READERS, count_by_read_json, read_trail
from bench.trail import Trail, trail
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


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_trails_truth_and_one_that_loses_calls_is_no_measure(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    made = trail(6, 100, tmp_path)
    WAYS[way](spark, made)
    more = replace(made.truth, failed_sqs_calls=made.truth.failed_sqs_calls + 1)
    with pytest.raises(RuntimeError, match=f"not .*{more.failed_sqs_calls}"):
        WAYS[way](spark, replace(made, truth=more))
