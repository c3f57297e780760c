"""What is told of a run that ended; each sentence has a case that turns it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.nightly.outcome import NightlyMetric, Run, Watched, run_named_in, watched
from mendq.nightly.verdict import FALLBACK, NATIVE, NightlyRead, Verdict

DAY = date(2026, 11, 15)
CREATED_AT = datetime(2026, 11, 16, 2, tzinfo=UTC)
RUN = Run(
    "00f1", "nightly-2026-11-15", "SUCCESS", "", CREATED_AT, CREATED_AT + timedelta(minutes=9)
)
ID = "00f1982r1uukb925"


def nightly(day: date = DAY, records: int = 10_000, **fields: Any) -> NightlyRead:
    made_at = fields.pop("made_at", CREATED_AT + timedelta(minutes=2))
    fields = {"files": 1, "bytes": 100, "failed_calls": min(records, 3), **fields}
    return NightlyRead(day, made_at, fields.pop("reader", NATIVE), "", records=records, **fields)


def see(*nightly_runs: NightlyRead, state: str = "SUCCESS", details: str = "") -> Watched:
    run = replace(RUN, state=state, details=details)
    return watched(run, DAY, {each.day: each for each in nightly_runs})


def earlier(records: int = 10_000, days: int = 5) -> list[NightlyRead]:
    return [
        nightly(DAY - timedelta(days=n), records, made_at=CREATED_AT - timedelta(days=n))
        for n in range(1, days + 1)
    ]


def figures(seen: Watched) -> dict[str, int]:
    """Without those that are zero."""
    return {str(name): value for name, value in seen.metrics().items() if value}


def test_a_good_nightly_is_fine() -> None:
    seen = see(nightly(), *earlier())
    assert seen.is_fine
    assert figures(seen) == {"NightlyRunsWritten": 1, "NightlyRecordsRead": 10_000}
    assert seen.metrics().keys() == set(NightlyMetric), "a figure that is missing was not watched"
    assert seen.why == "10000 records were read of 2026-11-15"


def test_more_than_can_be_passed_over_was_unreadable_and_the_nightly_is_there() -> None:
    """Exit code 3: to EMR the run failed."""
    seen = see(
        nightly(bytes_unreadable=40), *earlier(), state="FAILED", details="Job failed. ExitCode: 3."
    )
    assert figures(seen) == {
        "NightlyRunsWritten": 1, "NightlyRecordsRead": 10_000, "NightlyBytesUnreadable": 40,
    }  # fmt: skip
    assert not seen.is_fine
    assert seen.why == (
        "10000 records were read of 2026-11-15; 40 bytes were unreadable: quality names the files; "
        "the run ended FAILED after it had written: Job failed. ExitCode: 3."
    )


def test_what_was_unreadable_of_the_day_before_counts_where_this_run_wrote_it() -> None:
    """Exit code 3 is about all days that the run wrote."""
    again = nightly(DAY - timedelta(days=1), bytes_unreadable=7)
    other_nightly_runs = [replace(each, bytes_unreadable=100) for each in earlier()[1:]]
    seen = see(nightly(), again, *other_nightly_runs, state="FAILED")
    assert figures(seen)["NightlyBytesUnreadable"] == 7


def test_nothing_read_in_an_active_trail_is_said_though_the_run_ended_well() -> None:
    """Exit code 4, and 0 where the day before had something."""
    silent = nightly(records=0, files=0, bytes=0)
    for state in ("SUCCESS", "FAILED"):
        seen = see(silent, *earlier(), state=state)
        assert figures(seen) == {"NightlyRunsWritten": 1, "NightlyRunsDoubtful": 1}
        assert seen.why.startswith("nothing was read of 2026-11-15 though the trail is active")
        assert not seen.is_fine


def test_a_day_that_was_not_over_yet_is_said() -> None:
    seen = watched(RUN, DAY, {DAY: nightly(made_at=datetime.combine(DAY, time(23), UTC))})
    assert seen.verdict is Verdict.MISSING, "another run had written it"
    early = replace(RUN, created_at=datetime.combine(DAY, time(22), UTC))
    seen = watched(early, DAY, {DAY: nightly(made_at=datetime.combine(DAY, time(23), UTC))})
    assert seen.verdict is Verdict.PARTIAL
    assert not seen.is_fine
    assert seen.why.endswith(f"records were read of {DAY}, which was not over yet")


def test_far_fewer_than_usual_is_said_with_the_usual() -> None:
    seen = see(nightly(records=100), *earlier())
    assert figures(seen) == {
        "NightlyRunsWritten": 1,
        "NightlyRunsDoubtful": 1,
        "NightlyRecordsRead": 100,
    }
    assert seen.why == "100 records were read of 2026-11-15 where 10000 are usual"


def test_the_slower_reader_is_said_with_its_reason() -> None:
    slow = replace(nightly(reader=FALLBACK), why_fallback="no isal on the executors")
    seen = see(slow, *earlier())
    assert figures(seen) == {
        "NightlyRunsWritten": 1,
        "NightlyFallbacks": 1,
        "NightlyRecordsRead": 10_000,
    }
    assert seen.why.endswith("; read by the slower reader: no isal on the executors")


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_run_that_ended_without_writing_failed(state: str) -> None:
    seen = see(*earlier(), state=state)
    assert figures(seen) == {"NightlyRunsFailed": 1}
    assert seen.why == f"the run ended {state} and wrote nothing of 2026-11-15"


def test_what_an_earlier_run_wrote_does_not_excuse_this_one() -> None:
    there = nightly(made_at=CREATED_AT - timedelta(seconds=1), bytes_unreadable=5, reader=FALLBACK)
    assert figures(see(there, *earlier(), state="FAILED")) == {"NightlyRunsFailed": 1}
    assert see(there, *earlier()).verdict is Verdict.MISSING


def test_a_run_that_had_nothing_to_write_did_not_fail() -> None:
    seen = see(*earlier())
    assert (figures(seen), seen.verdict) == ({}, Verdict.MISSING)
    assert "the trail began later" in seen.why
    assert not seen.is_fine


@pytest.mark.parametrize(
    "name",
    ["week-2026-W46", "", "nightly-", "nightly-2026-13-01", "nightly-2026-11-15x", "backfill"],
)
def test_another_run_is_no_nightly(name: str) -> None:
    assert replace(RUN, name=name).day is None


def test_a_nightly_runs_name_tells_its_day() -> None:
    assert RUN.day == DAY


def event(**over: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html"""
    detail = {"jobRunId": "00f1cbn5g4bb0c01", "applicationId": ID, "state": "FAILED"}
    whole = {
        "version": "0",
        "source": "aws.emr-serverless",
        "detail-type": "EMR Serverless Job Run State Change",
        "detail": {**detail, **over.pop("detail", {})},
    }
    return {**whole, **over}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        None,
        "x",
        event(source="drill"),
        event(**{"detail-type": "EMR Serverless Application State Change"}),
        event(detail={"applicationId": "00another"}),
        event(detail={"applicationId": None}),
        event(detail={"jobRunId": None}),
        event(detail={"jobRunId": "../../x"}),
        event(detail={"jobRunId": "0" * 65}),
        event(detail={"jobRunId": ["00f1"]}),
        event() | {"detail": ["x"]},
        event() | {"detail": None},
    ],
)
def test_an_event_of_something_else_names_no_run(wrong: object) -> None:
    assert run_named_in(wrong, ID) is None


def test_an_event_of_our_application_names_its_run() -> None:
    assert run_named_in(event(), ID) == "00f1cbn5g4bb0c01"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["source", "detail-type", "detail", "jobRunId", "applicationId"]), inner
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_no_event_breaks_it(given_event: object) -> None:
    assert run_named_in(given_event, ID) is None
