"""A bad argument: one line, exit 2, nothing written, Spark never started."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics import job
from analytics.job import BadArguments, parse
from mendq.nightly.jobs import Roots, week

ROOTS = ["--trail", "t", "--cases", "c", "--out", "o"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], "command"),
        (["daily"], "daily"),
        (["nightly", *ROOTS], "--date"),
        (["nightly", "--date", "2026-11-10"], "--trail"),
        (["nightly", "--date", "2026-11-31", *ROOTS], "--date"),
        (["nightly", "--date", "20261110", *ROOTS], "--date"),
        (["nightly", "--date", "2026-W46-1", *ROOTS], "--date"),
        (["nightly", "--date", "9999-12-31", *ROOTS], "--date"),
        (["nightly", "--date", "2026-11-10", *ROOTS, "--what"], "--what"),
        (["backfill", "--from", "2026-11-10", *ROOTS], "--to"),
        (["backfill", "--from", "2026-11-10", "--to", "2026-11-09", *ROOTS], "--to"),
        (["weekly", "--out", "o"], "--week"),
        (["weekly", "--week", "2026-W54", "--out", "o"], "--week"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_argument(
    arguments: list[str], names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadArguments, match=names):
        parse(arguments)
    assert job.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


def test_backfill_takes_both_days() -> None:
    parsed = parse(["backfill", "--from", "2026-11-09", "--to", "2026-11-10", *ROOTS])
    assert [str(day) for day in parsed.days] == ["2026-11-09", "2026-11-10"]


def test_weekly_takes_the_root_it_does_not_read_and_needs_no_cases() -> None:
    week = ["weekly", "--week", "2026-W46"]
    for given, cases in ((ROOTS, "c"), (["--out", "o"], None)):
        parsed = parse([*week, *given])
        assert (parsed.week, parsed.cases, parsed.out) == ("2026-W46", cases, "o")
        assert parsed.scheduled_at is None


def test_weekly_takes_the_time_it_was_scheduled_for() -> None:
    at = datetime(2026, 11, 16, 6, tzinfo=UTC)
    scheduled = week(at, Roots("t", "c", "o"))
    parsed = parse(scheduled.arguments)
    assert (parsed.week, parsed.cases, parsed.out) == ("2026-W46", "c", "o")
    assert parsed.scheduled_at == at


@pytest.mark.parametrize("time", ["", "tomorrow", "2026-11-16", "2026-11-16T06:00:00"])
def test_a_time_without_a_zone_is_a_bad_argument(time: str) -> None:
    with pytest.raises(BadArguments, match=f"--scheduled-at {time!r} is no time"):
        parse(["weekly", "--week", "2026-W46", "--out", "o", "--scheduled-at", time])


def test_a_trail_that_is_none_is_a_bad_argument(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = [f"--{name}={tmp_path / name}" for name in ("trail", "cases", "out")]
    assert job.main(["nightly", "--date", "2026-11-10", *roots]) == 2
    assert "--trail: there is no AWSLogs/" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    for root in ("gs://bucket", "s3://", "s3:///key", ""):
        roots[0] = f"--trail={root}"
        assert job.main(["nightly", "--date", "2026-11-10", *roots]) == 2
        assert "neither a folder nor an s3:// URI" in capsys.readouterr().err
