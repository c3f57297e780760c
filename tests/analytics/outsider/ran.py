"""The nightly runs of a scene, in the orders in which the contract lets them run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.days import Days
from analytics.nightly import Nightly
from analytics.storage import open_root
from analytics.trail import Reader
from tests.analytics.outsider.scene import Scene

MADE_AT = datetime(2026, 12, 24, tzinfo=UTC)


def nightly(days: Sequence[date]) -> list[Days]:
    """A run for each, in this order."""
    return [Days(each, each) for each in days]


def backfill(days: Sequence[date]) -> list[Days]:
    return [Days(min(days), max(days))]


def run(spark: SparkSession, scene: Scene, out: Path, runs: Sequence[Days], reader: str) -> None:
    """Write the tables of `runs`, one after another, as the named reader reads the trail."""
    roots = (scene.trail, scene.cases, out, scene.findings)
    trail, cases, tables, findings = (open_root(str(each), spark) for each in roots)
    nightly = Nightly(
        spark,
        trail,
        cases=cases,
        findings=findings,
        out=tables,
        made_at=MADE_AT,
        reader=Reader(reader),
        say=lambda _: None,
    )
    for days in runs:
        nightly.write(days)
