"""Bursts: 900 seconds join, 901 split."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import microseconds
from analytics.incidents import incidents
from tests.analytics.authored import ACCOUNT, QUEUE_ARN, REGION, at

CALL = (
    "event_id string, micros bigint, error_code string, queue_arn string, account string, "
    "region string, principal_arn string, symptom string"
)
START = at("11-10 09:00")


def call(seconds: float, **fields: Any) -> dict[str, Any]:
    return {
        "event_id": f"{seconds}",
        "micros": microseconds(START + timedelta(seconds=seconds)),
        "error_code": "MessageNotInflight",
        "queue_arn": QUEUE_ARN,
        "account": ACCOUNT,
        "region": REGION,
        "principal_arn": "p",
        "symptom": "visibility_timeout_too_short",
        **fields,
    }


def calls(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    frame = spark.createDataFrame(list(rows), CALL)
    return frame.withColumn("event_time", sf.timestamp_micros("micros")).drop("micros")


def test_nine_hundred_seconds_join_and_one_more_splits(spark: SparkSession) -> None:
    authored = calls(spark, call(0), call(900), call(1801), call(2701), call(3601.000001))
    found = authored.transform(incidents).select(
        (sf.unix_micros("first_failure") - microseconds(START)).alias("after"), "failed_calls"
    )
    expected = spark.createDataFrame(
        [(0, 2), (1801_000_000, 2), (3601_000_001, 1)], "after bigint, failed_calls bigint"
    )
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_each_part_of_the_key_has_its_own_bursts(spark: SparkSession) -> None:
    other = [
        call(1, account="999999999999"),
        call(2, region="eu-west-1"),
        call(3, queue_arn="unresolved"),
        call(4, symptom="unknown:Teapot"),
    ]
    found = calls(spark, call(0), *other, call(5)).transform(incidents).collect()
    assert sorted(row["failed_calls"] for row in found) == [1, 1, 1, 1, 2]
    assert len({row["incident_id"] for row in found}) == 5


def test_principals_and_codes_are_sorted_and_few(spark: SparkSession) -> None:
    rows = [
        call(number, principal_arn=f"p{20 - number:02}", error_code=f"c{number % 2}")
        for number in range(12)
    ]
    [found] = calls(spark, *rows).transform(incidents).collect()
    assert found["principals"] == [f"p{number:02}" for number in range(9, 19)]
    assert found["error_codes"] == ["c0", "c1"]


@pytest.mark.parametrize(
    ("seconds", "enough"),
    [
        ((0, 300), False),
        ((0, 300, 601), False),
        ((0, 300, 600), True),
        ((0, 800, 1000, 1400), True),
    ],
)
def test_enough_evidence_is_what_heal_asks_for(
    spark: SparkSession, seconds: tuple[int, ...], enough: bool
) -> None:
    [found] = calls(spark, *map(call, seconds)).transform(incidents).collect()
    assert found["enough_evidence"] is enough


def test_the_id_knows_the_moment_exactly(spark: SparkSession) -> None:
    ids = [
        calls(spark, call(each)).transform(incidents).collect()[0]["incident_id"]
        for each in (0, 0.001, 0)
    ]
    assert ids[0] == ids[2] != ids[1]
