"""The bench measures what the night does, and notices where it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.spark_ways import (
    KEYS,
    READERS,
    count_by_read_json,
    failed_calls,
    find_sessions,
    read_trail,
)
from bench.trail_files import Trail, trail
from tests.analytics.conftest import spark

__all__ = ["spark"]

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
Go = Callable[[SparkSession, Trail], None]
WAYS: dict[str, Go] = {
    **{name: lambda spark, made, name=name: read_trail(spark, made, name) for name in READERS},  # type: ignore[misc]
    "spark.read.json": count_by_read_json,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_trails_truth(spark: SparkSession, tmp_path: Path, way: str) -> None:
    WAYS[way](spark, trail(6, 100, tmp_path))


@pytest.mark.parametrize("way", WAYS)
def test_a_way_that_loses_calls_is_no_measure(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    made = trail(6, 100, tmp_path)
    more = replace(made.truth, failed_sqs_calls=made.truth.failed_sqs_calls + 1)
    with pytest.raises(RuntimeError, match=f"not .*{more.failed_sqs_calls}"):
        WAYS[way](spark, replace(made, truth=more))


@pytest.mark.parametrize("each", [1, 21])
def test_bursts_are_as_many_as_the_calls_make(spark: SparkSession, each: int) -> None:
    """Or find_sessions would raise."""
    find_sessions(spark, KEYS * each)
    assert failed_calls(spark, KEYS * each).count() == KEYS * each
