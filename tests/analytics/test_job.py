"""Arguments of the nightly and weekly job, ISO weeks, and the first day of a trail."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from analytics import job
from analytics.days import Days, list_weeks_before, parse_week_days
from analytics.job import BadArguments, parse_arguments
from analytics.storage import FolderStorage
from analytics.trail import find_first_publish_day
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.jobs import NightlyJobRoots, make_nightly_job, make_week_job

ROOTS = ["--trail", "t", "--cases", "c", "--out", "o"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("", "command"),
        ("daily", "daily"),
        ("nightly ROOTS", "--date"),
        ("nightly --date 2026-11-10", "--trail"),
        ("nightly --date 2026-11-31 ROOTS", "--date"),
        ("nightly --date 20261110 ROOTS", "--date"),
        ("nightly --date 9999-12-31 ROOTS", "--date"),
        ("nightly --date 2026-11-10 --what ROOTS", "--what"),
        ("nightly --date 2026-11-10 ROOTS --account 111122223333", "--region go together"),
        ("nightly --date 2026-11-10 ROOTS --region eu-west-1", "--account and"),
        ("backfill --from 2026-11-10 ROOTS", "--to"),
        ("backfill --from 2026-11-10 --to 2026-11-09 ROOTS", "--to"),
        ("weekly --out o", "--week"),
        ("weekly --week 2026-W54 --out o", "--week"),
        ("weekly --week 2026-W46 --out o --cases c/{account}/cases", "needs --trail"),
        ("weekly --week 2026-W46 --out o --scheduled-at 2026-11-16", "'2026-11-16' is not a time"),
        ("weekly --week 2026-W46 --out o --scheduled-at soon", "'soon' is not a time"),
        *(
            (f"weekly --week 2026-W46 --out o --time-zone {zone}", f"'{zone}' is not a time zone")
            for zone in ("Mars/Base", "../etc/passwd", "/etc/localtime")
        ),
    ],
)
def test_job_with_a_bad_or_missing_argument_exits_2_and_prints_one_line_that_names_it(
    arguments: str, names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments.replace("ROOTS", " ".join(ROOTS)).split()
    with pytest.raises(BadArguments, match=names):
        parse_arguments(given)
    assert job.main(given) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert re.search(names, printed.err)


def test_backfill_covers_its_first_to_its_last_day_and_by_default_all_accounts() -> None:
    parsed = parse_arguments(["backfill", "--from", "2026-11-09", "--to", "2026-11-10", *ROOTS])
    assert [str(day) for day in parsed.days] == ["2026-11-09", "2026-11-10"]
    assert parsed.account_and_region is None


def test_weekly_job_with_only_a_week_and_an_output_has_no_cases_or_schedule_and_uses_utc() -> None:
    parsed = parse_arguments(["weekly", "--week", "2026-W46", "--out", "o"])
    assert (parsed.week, parsed.out) == ("2026-W46", "o")
    assert parsed.cases is parsed.scheduled_at is None
    assert str(parsed.time_zone) == "UTC"


SCHEDULED_AT = datetime(2026, 11, 16, 6, tzinfo=UTC)
SCHEDULED_ROOTS = NightlyJobRoots("t", "c", "o", "123456789012", "us-east-1", "Asia/Tokyo")


def test_job_understands_the_arguments_of_the_weekly_job_that_the_lambda_starts() -> None:
    parsed = parse_arguments(make_week_job(SCHEDULED_AT, SCHEDULED_ROOTS).arguments)
    assert (parsed.week, parsed.cases, parsed.out) == ("2026-W46", "c", "o")
    assert parsed.scheduled_at == SCHEDULED_AT
    assert str(parsed.time_zone) == "Asia/Tokyo"


def test_job_understands_the_arguments_of_the_nightly_job_that_the_lambda_starts() -> None:
    parsed = parse_arguments(make_nightly_job(SCHEDULED_AT, SCHEDULED_ROOTS).arguments)
    assert [str(day) for day in parsed.days] == ["2026-11-14", "2026-11-15"]
    assert parsed.account_and_region == AccountAndRegion("123456789012", "us-east-1")


def test_nightly_job_whose_trail_root_lacks_the_folder_awslogs_exits_2_and_writes_nothing(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = [f"--{name}={tmp_path / name}" for name in ("trail", "cases", "out")]
    assert job.main(["nightly", "--date", "2026-11-10", *roots]) == 2
    assert "--trail: there is no AWSLogs/" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trail_root", ["gs://bucket", "s3://", "s3:///key", ""])
def test_nightly_job_whose_trail_root_is_no_folder_or_s3_uri_exits_2_and_writes_nothing(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], trail_root: str
) -> None:
    roots = [f"--trail={trail_root}", f"--cases={tmp_path / 'cases'}", f"--out={tmp_path / 'out'}"]
    assert job.main(["nightly", "--date", "2026-11-10", *roots]) == 2
    assert "neither a folder nor an s3:// URI" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


WEEKS = (
    "", "46", "2026-46", "2026-W00", "2026-W54", "2026-W4", "26-W46", "2026-W4x", "2026-W٤٦",
    "+026-W46", "0001-W01", "9999-W52",
)  # fmt: skip


@pytest.mark.parametrize("week", WEEKS)
def test_week_that_is_malformed_or_does_not_exist_is_refused(week: str) -> None:
    with pytest.raises(ValueError):
        parse_week_days(week)


def test_iso_week_runs_from_monday_to_sunday() -> None:
    assert parse_week_days("2026-W46") == Days(date(2026, 11, 9), date(2026, 11, 15))


def test_weeks_before_a_week_continue_into_the_year_before() -> None:
    assert list_weeks_before("2027-W02")[-4:] == ["2026-W51", "2026-W52", "2026-W53", "2027-W01"]


JUNK = (
    "99999999999999999999/01/01", "9" * 200 + "/01/01", "0001/01/01", "9999/12/31", "10000/01/01",
    "x/y/z", "\N{FULLWIDTH DIGIT TWO}025/01/01", "2026/00/01", "2026/01/99999999999999999999",
    "2026/02/30",
)  # fmt: skip


def test_first_publish_day_of_a_trail_is_its_earliest_folder_with_a_plausible_date(
    tmp_path: Path,
) -> None:
    region = tmp_path / "AWSLogs/123456789012/CloudTrail/us-east-1"
    for folder in JUNK:
        (region / folder).mkdir(parents=True)
        assert find_first_publish_day(FolderStorage(str(tmp_path))) is None, folder
    for folder in ("2026/11/10", "2025/12/31"):
        (region / folder).mkdir(parents=True)
    assert find_first_publish_day(FolderStorage(str(tmp_path))) == date(2025, 12, 31)


@pytest.mark.parametrize(
    ("account", "region", "first_day"),
    [
        ("123456789012", "us-east-1", date(2025, 12, 31)),
        ("123456789012", "eu-west-1", date(2024, 1, 1)),
        ("999999999999", "us-east-1", None),
    ],
)
def test_first_publish_day_in_an_organization_trail_is_of_the_account_and_region(
    tmp_path: Path, account: str, region: str, first_day: date | None
) -> None:
    logs = tmp_path / "AWSLogs"
    (logs / "123456789012/CloudTrail/us-east-1/2025/12/31").mkdir(parents=True)
    (logs / "o-abc/123456789012/CloudTrail/eu-west-1/2024/01/01").mkdir(parents=True)
    trail = FolderStorage(str(tmp_path))
    assert find_first_publish_day(trail, AccountAndRegion(account, region)) == first_day
