"""Outcome of a nightly job run: metrics, explanation and EventBridge event."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from mendq.nightly.outcome import (
    NightlyJobRun,
    NightlyMetric,
    NightlyRunOutcome,
    describe_run,
    read_run_id,
)
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER, NightlyCounts, Verdict
from tests.nightly.events import APPLICATION_ID, make_job_run_event

DAY = date(2026, 11, 15)
CREATED_AT = datetime(2026, 11, 16, 2, tzinfo=UTC)
RUN = NightlyJobRun(
    "00f1", "nightly-2026-11-15", "SUCCESS", "", CREATED_AT, CREATED_AT + timedelta(minutes=9)
)


def make_counts(day: date = DAY, records: int = 10_000, **fields: Any) -> NightlyCounts:
    fields = {"made_at": CREATED_AT + timedelta(minutes=2), "reader": NATIVE_READER, **fields}
    fields = {"why_fallback": "", "failed_calls": min(records, 3), **fields}
    return NightlyCounts(day, records=records, **fields)


EARLIER = [
    make_counts(DAY - timedelta(days=n), made_at=CREATED_AT - timedelta(days=n))
    for n in range(1, 6)
]


def describe_outcome(
    *nightly_runs: NightlyCounts, state: str = "SUCCESS", details: str = ""
) -> NightlyRunOutcome:
    run = structs.replace(RUN, state=state, details=details)
    return describe_run(
        run, DAY, {nightly_run.day: nightly_run for nightly_run in (*EARLIER, *nightly_runs)}
    )


COUNTS_OF_FALLBACK = make_counts(reader=FALLBACK_READER, why_fallback="no isal on the executors")
# Counts of an earlier run. They do not excuse this run.
COUNTS_OF_EARLIER_RUN = make_counts(
    made_at=CREATED_AT - timedelta(seconds=1), bytes_unreadable=5, reader=FALLBACK_READER
)
DAY_BEFORE_WITH_UNREADABLE_BYTES = make_counts(DAY - timedelta(days=1), bytes_unreadable=7)
OTHER_DAYS_WITH_UNREADABLE_BYTES = [
    replace(nightly_run, bytes_unreadable=100) for nightly_run in EARLIER[1:]
]


# In the order of `runs.json`.
OUTCOME_BY_DESCRIPTION = {
    "read everything": describe_outcome(make_counts()),
    "exit code 3, which covers all days that the run wrote": describe_outcome(
        make_counts(bytes_unreadable=40),
        DAY_BEFORE_WITH_UNREADABLE_BYTES,
        *OTHER_DAYS_WITH_UNREADABLE_BYTES,
        state="FAILED",
        details="Exit 3.",
    ),
    "no records": describe_outcome(make_counts(records=0)),
    "exit code 4: no records, and the day before had some": describe_outcome(
        make_counts(records=0), state="FAILED"
    ),
    "few records": describe_outcome(make_counts(records=100)),
    "read by the slow fallback": describe_outcome(COUNTS_OF_FALLBACK),
    "failed without counts": describe_outcome(state="FAILED"),
    "cancelled, with counts of an earlier run": describe_outcome(
        COUNTS_OF_EARLIER_RUN, state="CANCELLED"
    ),
    "succeeded without counts": describe_outcome(),
    "succeeded, with counts of an earlier run": describe_outcome(COUNTS_OF_EARLIER_RUN),
}
RECORDED_OUTCOMES = json.loads(Path(__file__).with_name("runs.json").read_text())


@pytest.mark.parametrize(
    ("outcome", "recorded"),
    [*zip(OUTCOME_BY_DESCRIPTION.values(), RECORDED_OUTCOMES, strict=True)],
    ids=OUTCOME_BY_DESCRIPTION,
)
def test_outcome_of_a_nightly_job_run_has_the_recorded_metrics_and_explanation(
    outcome: NightlyRunOutcome, recorded: dict[str, Any]
) -> None:
    metrics = outcome.metrics()
    assert metrics.keys() == set(NightlyMetric), "an alarm would miss a metric"
    assert {str(name): value for name, value in metrics.items() if value} == recorded["figures"]
    assert outcome.explanation == recorded["why"]
    assert outcome.is_without_problem is recorded["is_fine"]


UNFINISHED_DAY_COUNTS = make_counts(made_at=datetime.combine(DAY, time(23), UTC))


def test_nightly_job_run_that_read_a_day_before_its_end_is_partial_and_says_so() -> None:
    early_run = structs.replace(RUN, created_at=UNFINISHED_DAY_COUNTS.made_at)
    outcome = describe_run(early_run, DAY, {DAY: UNFINISHED_DAY_COUNTS})
    assert outcome.verdict is Verdict.PARTIAL
    assert not outcome.is_without_problem
    assert outcome.explanation.endswith(f"records were read of {DAY}, which was not over yet")


def test_nightly_job_run_that_wrote_no_counts_is_missing_despite_an_earlier_runs_counts() -> None:
    outcome = describe_run(RUN, DAY, {DAY: UNFINISHED_DAY_COUNTS})
    assert outcome.verdict is Verdict.MISSING


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {},
            [],
            None,
            "x",
            7,
            {"detail": {}},
            *(make_job_run_event(detail) for detail in (["x"], None, 7)),
        ),
        make_job_run_event(source="drill"),
        make_job_run_event(**{"detail-type": "EMR Serverless Application State Change"}),
        *(
            make_job_run_event({"applicationId": application_id})
            for application_id in ("00another", None)
        ),
        *(
            make_job_run_event({"jobRunId": run_id})
            for run_id in (None, "../../x", "0" * 65, ["00f1"])
        ),
    ],
)
def test_event_that_is_malformed_or_of_another_source_or_application_gives_no_job_run_id(
    wrong: object,
) -> None:
    assert read_run_id(wrong, APPLICATION_ID) is None


def test_event_of_the_application_gives_its_job_run_id() -> None:
    assert read_run_id(make_job_run_event(), APPLICATION_ID) == "00f1cbn5g4bb0c01"
