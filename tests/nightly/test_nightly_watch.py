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


SLOW = make_counts(reader=FALLBACK_READER, why_fallback="no isal on the executors")
# Counts of an earlier run. They do not excuse this run.
THERE = make_counts(
    made_at=CREATED_AT - timedelta(seconds=1), bytes_unreadable=5, reader=FALLBACK_READER
)
AGAIN = make_counts(DAY - timedelta(days=1), bytes_unreadable=7)
OTHERS = [replace(nightly_run, bytes_unreadable=100) for nightly_run in EARLIER[1:]]


# Outcomes in the order of `runs.json`.
SEEN = (
    describe_outcome(make_counts()),
    # Exit code 3 covers all days that the run wrote.
    describe_outcome(
        make_counts(bytes_unreadable=40), AGAIN, *OTHERS, state="FAILED", details="Exit 3."
    ),
    # Exit code 4, and 0 where the day before had something.
    describe_outcome(make_counts(records=0)),
    describe_outcome(make_counts(records=0), state="FAILED"),
    describe_outcome(make_counts(records=100)),
    describe_outcome(SLOW),
    describe_outcome(state="FAILED"),
    describe_outcome(THERE, state="CANCELLED"),
    describe_outcome(),
    describe_outcome(THERE),
)
TOLD = json.loads(Path(__file__).with_name("runs.json").read_text())


@pytest.mark.parametrize(("seen", "told"), [*zip(SEEN, TOLD, strict=True)])
def test_outcome_of_a_nightly_job_run_has_the_recorded_metrics_and_explanation(
    seen: NightlyRunOutcome, told: dict[str, Any]
) -> None:
    assert {str(name): value for name, value in seen.metrics().items() if value} == told["figures"]
    assert seen.metrics().keys() == set(NightlyMetric), "a figure that is missing was not watched"
    assert seen.explanation == told["why"]
    assert seen.is_without_problem is told["is_fine"]


def test_nightly_job_run_that_read_an_unfinished_day_is_partial() -> None:
    early = make_counts(made_at=datetime.combine(DAY, time(23), UTC))
    assert describe_run(RUN, DAY, {DAY: early}).verdict is Verdict.MISSING, (
        "another run had written it"
    )
    seen = describe_run(structs.replace(RUN, created_at=early.made_at), DAY, {DAY: early})
    assert seen.verdict is Verdict.PARTIAL
    assert not seen.is_without_problem
    assert seen.explanation.endswith(f"records were read of {DAY}, which was not over yet")


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
def test_event_of_another_source_or_application_gives_no_job_run_id(wrong: object) -> None:
    assert read_run_id(make_job_run_event(), APPLICATION_ID) == "00f1cbn5g4bb0c01"
    assert read_run_id(wrong, APPLICATION_ID) is None
