"""The nightly job against a count that shares nothing with it but the reading of a record."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mendq.nightly.verdict import FALLBACK, NATIVE
from tests.analytics.outsider.compared import disagreements, tables
from tests.analytics.outsider.plain_count import Count, count
from tests.analytics.outsider.ran import backfill, nightly, run
from tests.analytics.outsider.scene import Scene, Size, scene

SMALL = Size(bursts=40, chained=110, records_of_largest_file=12)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("outsider"), seed=7, size=SMALL)


@pytest.fixture(scope="module")
def counted(hostile: Scene) -> Count:
    return count(hostile.trail, hostile.cases)


def test_the_scene_is_hostile(hostile: Scene, counted: Count) -> None:
    rows = [each for of_day in counted.incidents.values() for each in of_day]
    assert hostile.files > 150
    assert {each["outcome"] for each in rows} == {
        "healed", "applied", "approved", "observed", "refused", "proposed", "declined", "expired",
        "escalated", "overridden", "rolled_back", "ineffective", "not_seen",
    }  # fmt: skip
    assert {each["why"] for each in rows} == {
        None, "unknown_code", "count_only", "unresolved_queue", "case_open", "too_little_evidence",
        "event_lost", "unknown", "not_managed", "not_tagged_in_time",
    }  # fmt: skip
    assert max(each["last_failure"] - each["first_failure"] for each in rows).days == 1


@pytest.mark.long
def test_nightly_runs_in_any_order_and_a_backfill_write_what_an_outsider_counts(
    spark: SparkSession, hostile: Scene, counted: Count, tmp_path: Path
) -> None:
    first, _, third = hostile.days  # the chain makes the first one write the second as well
    run(spark, hostile, tmp_path / "nightly_runs", nightly([third, first]), NATIVE)
    run(spark, hostile, tmp_path / "backfill", backfill(hostile.days), FALLBACK)
    assert disagreements(tmp_path / "nightly_runs", counted) == []
    assert disagreements(tmp_path / "backfill", counted) == []
    assert tables(tmp_path / "nightly_runs") == tables(tmp_path / "backfill")
    assert set(hostile.days) <= set(tables(tmp_path / "nightly_runs")["incidents"])
