"""Which case speaks for an incident, and what can be told where none does."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from analytics.cases import SPARK_CASE
from analytics.days import microseconds
from analytics.incidents import Round, joined, managed
from tests.analytics.authored import ACCOUNT, QUEUE_ARN, REGION, at

INCIDENT = (
    "incident_id string, account string, region string, queue_arn string, symptom string, "
    "error_codes array<string>, first bigint, last bigint, failed_calls bigint, "
    "principals array<string>, enough_evidence boolean"
)


def micros(when: str) -> int:
    return microseconds(at(f"11-{when}"))


def incident(name: str, first: str, last: str, **fields: Any) -> dict[str, Any]:
    return {
        "incident_id": name,
        "account": ACCOUNT,
        "region": REGION,
        "queue_arn": QUEUE_ARN,
        "symptom": "visibility_timeout_too_short",
        "error_codes": ["MessageNotInflight"],
        "first": micros(first),
        "last": micros(last),
        "failed_calls": 3,
        "principals": [],
        "enough_evidence": True,
        **fields,
    }


def case(name: str, opened: str, evidence: tuple[str, str], **fields: Any) -> dict[str, Any]:
    return {
        "case_id": name,
        "case_queue_arn": QUEUE_ARN,
        "case_symptom": "visibility_timeout_too_short",
        "case_outcome": name,
        "case_seconds_to_heal": None,
        "case_notified": False,
        "opened_at": micros(opened),
        "ended_at": micros(opened),
        "evidence": [{"first_at": micros(evidence[0]), "last_at": micros(evidence[1])}],
        **fields,
    }


CASES = [
    case("early", "10 09:06", ("10 09:00", "10 09:05"), case_notified=True),
    case("later", "10 09:30", ("10 09:20", "10 09:25"), case_seconds_to_heal=7.5),
    case("open", "12 09:06", ("12 09:00", "12 09:05"), ended_at=None),
    case("of another symptom", "10 09:40", ("10 09:00", "10 09:35"), case_symptom="other"),
    case("of another queue", "10 09:40", ("10 09:00", "10 09:35"), case_queue_arn="q"),
]
INCIDENTS = [
    incident("both", "10 09:05", "10 09:20"),
    incident("only touched", "10 09:25", "10 09:26"),
    incident("beside", "11 09:00", "11 09:05"),
    incident("while open", "12 20:00", "12 20:05"),
    incident("too little", "11 12:00", "11 12:05", enough_evidence=False),
    incident("before all", "09 09:00", "09 09:05"),
    incident("unknown_code", "11 09:00", "11 09:05", symptom="unknown:Teapot"),
    incident("counted", "11 09:00", "11 09:05", symptom="invalid_request"),
    incident("nowhere", "11 09:00", "11 09:05", queue_arn="unresolved"),
    incident("long after", "20 10:00", "20 10:05", queue_arn="q"),
    # Scans came at 03 and 04 o'clock on the 15th, and at 9 on the 16th.
    incident("never managed", "15 03:10", "15 03:50", queue_arn="never"),
    incident("never and little", "15 03:10", "15 03:10", queue_arn="never", enough_evidence=False),
    incident(
        "never and counted", "15 03:10", "15 03:10", queue_arn="never", symptom="invalid_request"
    ),
    incident("tagged later", "15 03:10", "15 03:50", queue_arn="later"),
    incident("tagged meanwhile", "15 03:10", "15 03:50", queue_arn="meanwhile"),
    incident("tagged long after", "15 03:10", "15 03:50", queue_arn="long after"),
    incident("managed", "15 03:10", "15 03:50", queue_arn="always"),
    incident(
        "managed and little", "15 03:10", "15 03:50", queue_arn="always", enough_evidence=False
    ),
    incident("no scan after", "15 04:10", "15 04:20", queue_arn="never"),
    incident("no scan before", "15 00:30", "15 02:10", queue_arn="never"),
    incident("not all were listed", "16 09:10", "16 09:20", queue_arn="never"),
]
SCANS = [
    Round(micros("15 03:00"), ("always",), whole=True),
    Round(micros("15 04:00"), ("always", "meanwhile"), whole=True),
    Round(micros("16 09:00"), ("always", "later"), whole=True),
    Round(micros("16 10:00"), ("always",), whole=False),
    Round(micros("22 09:00"), ("long after",), whole=True),
]


def test_each_incident_has_its_outcome_or_its_why(spark: SparkSession) -> None:
    incidents = (
        spark.createDataFrame(INCIDENTS, INCIDENT)
        .withColumn("first_failure", sf.timestamp_micros("first"))
        .withColumn("last_failure", sf.timestamp_micros("last"))
        .drop("first", "last")
    )
    cases = spark.createDataFrame(CASES, SPARK_CASE)
    found = joined(incidents, cases, managed(spark, SCANS)).collect()
    assert {row["incident_id"]: (row["outcome"], row["why"]) for row in found} == {
        "both": ("later", None),
        "only touched": ("later", None),
        "beside": ("not_seen", "event_lost"),
        "while open": ("not_seen", "case_open"),
        "too little": ("not_seen", "too_little_evidence"),
        "before all": ("not_seen", "unknown"),
        "unknown_code": ("not_seen", "unknown_code"),
        "counted": ("not_seen", "count_only"),
        "nowhere": ("not_seen", "unresolved_queue"),
        "long after": ("not_seen", "unknown"),
        "never managed": ("not_seen", "not_managed"),
        "never and little": ("not_seen", "not_managed"),
        "never and counted": ("not_seen", "count_only"),
        "tagged later": ("not_seen", "not_tagged_in_time"),
        "tagged meanwhile": ("not_seen", "unknown"),
        "tagged long after": ("not_seen", "not_managed"),
        "managed": ("not_seen", "event_lost"),
        "managed and little": ("not_seen", "too_little_evidence"),
        "no scan after": ("not_seen", "unknown"),
        "no scan before": ("not_seen", "unknown"),
        "not all were listed": ("not_seen", "unknown"),
    }
    by_id = {row["incident_id"]: row for row in found}
    assert by_id["both"]["notified"] is True
    assert by_id["only touched"]["notified"] is False
    assert by_id["only touched"]["seconds_to_heal"] == 7.5
    assert by_id["beside"]["case_id"] is None
