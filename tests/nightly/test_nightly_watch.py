"""What is told of a run that ended; each sentence has a case that turns it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from mendq.nightly.outcome import NightlyMetric, Run, Watched, run_named_in, watched
from mendq.nightly.verdict import FALLBACK, NATIVE, NightlyRead, Verdict

DAY = date(2026, 11, 15)
CREATED_AT = datetime(2026, 11, 16, 2, tzinfo=UTC)
RUN = Run(
    "00f1", "nightly-2026-11-15", "SUCCESS", "", CREATED_AT, CREATED_AT + timedelta(minutes=9)
)
ID = "00f1982r1uukb925"
FAILED, WRITTEN = "NightlyRunsFailed", "NightlyRunsWritten"
DOUBTFUL, READ = "NightlyRunsDoubtful", "NightlyRecordsRead"
UNREADABLE = "NightlyBytesUnreadable"


def nightly(day: date = DAY, records: int = 10_000, **fields: Any) -> NightlyRead:
    fields = {"made_at": CREATED_AT + timedelta(minutes=2), "reader": NATIVE, **fields}
    fields = {"why_fallback": "", "failed_calls": min(records, 3), **fields}
    return NightlyRead(day, records=records, **fields)


EARLIER = [
    nightly(DAY - timedelta(days=n), made_at=CREATED_AT - timedelta(days=n)) for n in range(1, 6)
]


def see(*nightly_runs: NightlyRead, state: str = "SUCCESS", details: str = "") -> Watched:
    run = replace(RUN, state=state, details=details)
    return watched(run, DAY, {each.day: each for each in (*EARLIER, *nightly_runs)})


def figures(seen: Watched) -> dict[str, int]:
    """Without those that are zero."""
    return {str(name): value for name, value in seen.metrics().items() if value}


SLOW = nightly(reader=FALLBACK, why_fallback="no isal on the executors")
# An earlier run's, which does not excuse this one.
THERE = nightly(made_at=CREATED_AT - timedelta(seconds=1), bytes_unreadable=5, reader=FALLBACK)
AGAIN = nightly(DAY - timedelta(days=1), bytes_unreadable=7)
OTHERS = [replace(each, bytes_unreadable=100) for each in EARLIER[1:]]


ALL = "10000 records were read of 2026-11-15"
NOTHING = "nothing was read of 2026-11-15 though the trail is active"
ENDED = "the run ended FAILED after it had written: "
NOTHING_WRITTEN = "wrote nothing of 2026-11-15"
MISSING = (
    f"the run ended well and {NOTHING_WRITTEN}: the trail began later, or there was nothing new "
    "to say"
)


@pytest.mark.parametrize(
    ("seen", "told", "why"),
    [
        (see(nightly()), {WRITTEN: 1, READ: 10_000}, ALL),
        # Exit code 3 is about all days that the run wrote.
        (
            see(nightly(bytes_unreadable=40), AGAIN, *OTHERS, state="FAILED", details="Exit 3."),
            {WRITTEN: 1, READ: 10_000, UNREADABLE: 47},
            f"{ALL}; 47 bytes were unreadable: quality names the files; {ENDED}Exit 3.",
        ),
        # Exit code 4, and 0 where the day before had something.
        (see(nightly(records=0)), {WRITTEN: 1, DOUBTFUL: 1}, NOTHING),
        (
            see(nightly(records=0), state="FAILED"),
            {WRITTEN: 1, DOUBTFUL: 1},
            f"{NOTHING}; {ENDED}",
        ),
        (
            see(nightly(records=100)),
            {WRITTEN: 1, DOUBTFUL: 1, READ: 100},
            "100 records were read of 2026-11-15 where 10000 are usual",
        ),
        (
            see(SLOW),
            {WRITTEN: 1, READ: 10_000, "NightlyFallbacks": 1},
            f"{ALL}; read by the slower reader: no isal on the executors",
        ),
        (see(state="FAILED"), {FAILED: 1}, f"the run ended FAILED and {NOTHING_WRITTEN}"),
        (
            see(THERE, state="CANCELLED"),
            {FAILED: 1},
            f"the run ended CANCELLED and {NOTHING_WRITTEN}",
        ),
        (see(), {}, MISSING),
        (see(THERE), {}, MISSING),
    ],
)
def test_each_end_has_its_figures_and_its_sentence(
    seen: Watched, told: dict[str, int], why: str
) -> None:
    assert figures(seen) == told
    assert seen.metrics().keys() == set(NightlyMetric), "a figure that is missing was not watched"
    assert seen.why == why
    assert seen.is_fine is (READ in told and not {DOUBTFUL, UNREADABLE} & told.keys())


def test_a_day_that_was_not_over_yet_is_said() -> None:
    early = nightly(made_at=datetime.combine(DAY, time(23), UTC))
    assert watched(RUN, DAY, {DAY: early}).verdict is Verdict.MISSING, "another run had written it"
    seen = watched(replace(RUN, created_at=early.made_at), DAY, {DAY: early})
    assert seen.verdict is Verdict.PARTIAL
    assert not seen.is_fine
    assert seen.why.endswith(f"records were read of {DAY}, which was not over yet")


@pytest.mark.parametrize(
    "name",
    ["week-2026-W46", "", "nightly-", "nightly-2026-13-01", "nightly-2026-11-15x", "backfill"],
)
def test_another_run_is_no_nightly(name: str) -> None:
    assert RUN.day == DAY
    assert replace(RUN, name=name).day is None


_OURS: dict[str, Any] = {}


def event(detail: object = _OURS, **over: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html"""
    ours = {"jobRunId": "00f1cbn5g4bb0c01", "applicationId": ID, "state": "FAILED"}
    return {
        "version": "0",
        "source": "aws.emr-serverless",
        "detail-type": "EMR Serverless Job Run State Change",
        "detail": {**ours, **detail} if isinstance(detail, dict) else detail,
        **over,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        *({}, [], None, "x", 7, {"detail": {}}, event(["x"]), event(None), event(7)),
        event(source="drill"),
        event(**{"detail-type": "EMR Serverless Application State Change"}),
        *(event({"applicationId": each}) for each in ("00another", None)),
        *(event({"jobRunId": each}) for each in (None, "../../x", "0" * 65, ["00f1"])),
    ],
)
def test_an_event_of_something_else_names_no_run(wrong: object) -> None:
    assert run_named_in(event(), ID) == "00f1cbn5g4bb0c01"
    assert run_named_in(wrong, ID) is None
