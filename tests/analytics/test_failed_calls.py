"""Our own roles are known by the names that infra gives them, in their account and region."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.incidents import OWN_ROLE, failed_calls
from analytics.trail import SPARK_READING
from mendq.model.names import EVERY, LEFT_OUT, PROBE, role_name

ACCOUNT = "123456789012"
# Java ends a text with \\z, Python before 3.14 with \\Z.
PATTERN = re.compile(OWN_ROLE.replace(r"\z", r"\Z"))


@pytest.mark.parametrize("purpose", EVERY)
@pytest.mark.parametrize("region", ["us-east-1", "ap-southeast-4", "us-gov-west-1"])
def test_every_role_of_ours_is_known(purpose: str, region: str) -> None:
    found = PATTERN.search(f"arn:aws:iam::{ACCOUNT}:role/{role_name(purpose, region)}")
    assert found
    assert found.groups() == (ACCOUNT, region)


def test_the_probe_is_ours_though_the_rule_lets_it_through() -> None:
    assert PROBE in EVERY
    assert PROBE not in LEFT_OUT


STRANGERS = [
    f"arn:aws:iam::{ACCOUNT}:role/mendq-demo",
    f"arn:aws:iam::{ACCOUNT}:role/mendq-nobody-us-east-1",
    f"arn:aws:iam::{ACCOUNT}:role/mendq-follow_up-us-east-1",
    f"arn:aws:iam::{ACCOUNT}:role/team/mendq-heal-us-east-1",
    f"arn:aws:iam::{ACCOUNT}:role/x-mendq-heal-us-east-1",
    f"arn:aws:iam::{ACCOUNT}:role/mendq-heal-us-east-1/x",
    f"arn:aws:iam::{ACCOUNT}:role/mendq-heal-us-east-1\n",
    f"arn:aws:iam::{ACCOUNT}:user/mendq-heal-us-east-1",
    f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/mendq-heal-us-east-1",
]


@pytest.mark.parametrize("arn", STRANGERS)
def test_no_other_role_is(arn: str) -> None:
    assert not PATTERN.search(arn)


def reading(spark: SparkSession, file: str, principal_arns: list[str]) -> DataFrame:
    """A file with one failed call of each, whose event ids are their positions."""
    calls = sf.array(
        *(
            sf.struct(
                sf.lit(number).cast("bigint").alias("position"),
                sf.lit(f"{number}").alias("event_id"),
                sf.lit(None).cast("bigint").alias("event_time"),
                sf.lit("DeleteMessage").alias("event_name"),
                sf.lit("MessageNotInflight").alias("error_code"),
                sf.lit("unresolved").alias("queue_arn"),
                sf.lit(ACCOUNT).alias("account"),
                sf.lit("us-east-1").alias("region"),
                sf.lit(arn).alias("principal_arn"),
                sf.lit("r").alias("request_id"),
                sf.lit("visibility_timeout_too_short").alias("symptom"),
            )
            for number, arn in enumerate(principal_arns)
        )
    )
    row = spark.createDataFrame([(file, None, 1, None, None)], SPARK_READING)
    return row.withColumn("calls", calls)


def test_a_call_that_is_delivered_in_two_files_counts_once(spark: SparkSession) -> None:
    """The first by the file's own name tells it, wherever the files lie."""
    late, early = reading(spark, "a/2.json.gz", ["p", "p"]), reading(spark, "b/1.json.gz", ["p"])
    found = failed_calls(late.union(early)).collect()
    assert {each["event_id"]: each["file"] for each in found} == {
        "0": "b/1.json.gz",
        "1": "a/2.json.gz",
    }
    assert len(found) == 2


def test_a_role_of_ours_is_left_out_where_it_may_call_and_nowhere_else(
    spark: SparkSession,
) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/"
    theirs = [
        *STRANGERS,
        "",
        f"{role}mendq-heal-us-east-1x",
        f"{role}mendq-heal-eu-west-1",
        "arn:aws:iam::999999999999:role/mendq-heal-us-east-1",
    ]
    ours = [f"{role}{role_name(each, 'us-east-1')}" for each in EVERY]
    found = failed_calls(reading(spark, "f", [*ours, *theirs])).collect()
    assert {each["principal_arn"] for each in found} == set(theirs)
