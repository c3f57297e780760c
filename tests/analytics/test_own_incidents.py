"""One definition of the incidents that count: in Python, in Spark, and in every figure."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from analytics.own_incidents import (
    count_incidents,
    is_own_incident,
    is_own_queue,
    make_own_incident_column,
)
from analytics.week import make_summary
from analytics.week_parts import Row
from analytics.weekly import to_json_bytes
from mendq.nightly.verdict import NATIVE_READER, NightlyCounts, read_nightly_counts
from mendq.report.html_page import make_page
from mendq.report.links import ReportedAccount
from mendq.report.mail import OutgoingReport
from mendq.report.summary import Summary, read_summary
from mendq.report.tiles import make_tiles
from mendq.report.verdict import make_headline
from mendq.report.words import format_count
from tests.analytics.builders import ACCOUNT, REGION
from tests.analytics.week_builders import (
    DAYS,
    MADE_AT,
    WEEK,
    make_incident,
    make_queue_arn,
    make_week_input,
)

NAMES = st.sampled_from(
    [
        *("orders", "mendq-drill-0a.fifo", "mendq-drill-", "mendq-probe.fifo", "mendq-probe"),
        *("mendq-drill", "x-mendq-drill-1", "Mendq-drill-1", "mendq-probe.fifo.fifo", "", ":"),
    ]
)
ARNS = st.builds(make_queue_arn, NAMES) | NAMES | st.text(max_size=20)
REASONS = st.sampled_from([None, "own_look", "unknown_code", "OWN_LOOK", "own_look ", ""])
OUTCOMES = st.sampled_from(["healed", "approved", "escalated", "proposed", "not_seen", "refused"])


@pytest.fixture(scope="module")
def spark_rows(spark: SparkSession) -> list[Row]:
    """Return rows of all combinations, with the answer of the Spark column in `is_own`."""
    names = ["orders", "mendq-drill-1", "mendq-probe.fifo", "mendq-probe", "x-mendq-drill-1", ""]
    arns = [*map(make_queue_arn, names), *names, "a:b:mendq-drill-2:c", "c:mendq-probe.fifo", None]
    reasons = [None, "own_look", "unknown_code", ""]
    rows = [(arn, why) for arn in arns for why in reasons]
    frame = spark.createDataFrame(rows, "queue_arn string, why string")
    answered = frame.withColumn("is_own", make_own_incident_column()).collect()
    return [row.asDict() for row in answered]


def test_spark_column_is_true_for_exactly_the_rows_that_are_own_incidents_in_python(
    spark_rows: list[Row],
) -> None:
    assert {row["is_own"] for row in spark_rows} == {True, False}
    assert [row["is_own"] for row in spark_rows] == [is_own_incident(row) for row in spark_rows]


@settings(max_examples=8, deadline=None)
@given(rows=st.lists(st.tuples(ARNS, REASONS), min_size=30, max_size=60))
def test_spark_and_python_agree_on_any_queue_and_reason(
    spark: SparkSession, rows: list[tuple[str, str | None]]
) -> None:
    documents = [
        {"queue_arn": arn, "why": why} for arn, why in rows if "\0" not in arn and arn.isprintable()
    ]
    frame = spark.createDataFrame(documents, "queue_arn string, why string")
    answers = [
        row["is_own"] for row in frame.select(make_own_incident_column().alias("is_own")).collect()
    ]
    assert answers == [is_own_incident(row) for row in documents]


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("mendq-drill-0123abcd.fifo", True),
        ("mendq-probe.fifo", True),
        ("x-mendq-drill-1", False),
        ("mendq-probe", False),
        ("orders", False),
    ],
)
def test_queue_is_mendqs_own_only_if_it_is_the_probe_queue_or_its_name_begins_with_mendq_drill(
    name: str, is_own: bool
) -> None:
    assert is_own_queue(make_queue_arn(name)) is is_own


@st.composite
def draw_incidents(draw: st.DrawFn) -> dict[date, list[dict[str, Any]]]:
    """Draw a week of incidents; about half of them are Mendq's own."""
    numbers = count(1)
    incidents_by_day: dict[date, list[dict[str, Any]]] = {}
    for day in DAYS:
        incidents_by_day[day] = [
            make_incident(
                next(numbers),
                queue_arn=make_queue_arn(draw(NAMES)),
                why=draw(REASONS),
                outcome=draw(OUTCOMES),
                symptom=draw(st.sampled_from(["dlq_missing", "consumer_failing", "unknown:X"])),
                found_by=draw(st.sampled_from(["failed_calls", "scan"])),
                failed_calls=draw(st.integers(0, 9)),
            )
            for _ in range(draw(st.integers(0, 6)))
        ]
    return incidents_by_day


def make_nightly_counts(day: date, rows: list[dict[str, Any]]) -> NightlyCounts:
    """Return the counts as a nightly run stores them and the weekly job reads them."""
    numbers = count_incidents(rows)
    counts = NightlyCounts(day, MADE_AT, NATIVE_READER, "")
    stored = replace(counts, incidents=numbers.counted, own_incidents=numbers.own)
    read = read_nightly_counts(to_json_bytes(stored.document()))
    assert read == stored
    return read


def list_figures(summary: Summary) -> dict[str, int]:
    """Return every number of incidents that the summary has for the whole week."""
    return {
        "totals": summary.totals.incidents,
        "by_found_by": summary.by_found_by.failed_calls + summary.by_found_by.scan,
        "by_outcome": sum(summary.by_outcome.values()),
        "by_symptom": sum(summary.by_symptom.values()),
        "per_day": sum(day.incidents for day in summary.per_day),
        "queue_days": summary.queue_days.incidents_left_out
        + sum(sum(queue.incidents) for queue in summary.queue_days.queues),
        "cases": len(summary.cases) + summary.cases_left_out,
    }


@settings(max_examples=15, deadline=None)
@given(incidents_by_day=draw_incidents())
def test_nightly_counts_of_a_week_and_every_figure_of_its_report_agree(
    incidents_by_day: dict[date, list[dict[str, Any]]],
) -> None:
    counts_by_day = {day: make_nightly_counts(day, rows) for day, rows in incidents_by_day.items()}
    week_input = make_week_input(incidents_by_day, nightly_counts_by_day=counts_by_day)
    summary = read_summary(to_json_bytes(make_summary(WEEK, week_input, MADE_AT)))
    counted = sum(counts.incidents for counts in counts_by_day.values())
    own = sum(counts.own_incidents or 0 for counts in counts_by_day.values())
    assert list_figures(summary) == dict.fromkeys(list_figures(summary), counted)
    assert summary.not_seen.own_incidents == own
    assert counted + own == sum(map(len, incidents_by_day.values()))
    assert not any(night.verdict == "torn" for night in summary.not_seen.nightly_runs)
    if counted and not summary.nothing_was_read:
        assert_people_read(summary, counted)


def assert_people_read(summary: Summary, counted: int) -> None:
    """Assert that headline, tile, mail and page have this number of incidents."""
    text = format_count(counted, "incident")
    account = ReportedAccount(REGION, ACCOUNT, "", "")
    report = OutgoingReport(summary, "s3://bucket/key", account, "mendq@example.com")
    assert make_headline(summary).startswith(text)
    assert make_tiles(summary)[0].figure == f"{counted:,}"
    assert text in report.subject
    assert text in report.mail_text
    assert text in make_page(summary, account)
