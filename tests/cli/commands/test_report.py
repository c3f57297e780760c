"""`mendq report`: the page into a file here, the verdict on the terminal."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import OUTPUTS, Operator
from tests.report.weeks import busy_week

FILE = "mendq-report-2026-W46.html"
PAGE = b"<!doctype html>\xc3\xbc"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to write to; no browser."""
    monkeypatch.setitem(OUTPUTS, "ReportBucket", "cases")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    return tmp_path


def _put(operator: Operator, key: str, body: bytes) -> None:
    operator.aws.clients.s3.put_object(Bucket="cases", Key=key, Body=body)


def _deliver(
    operator: Operator, week: str = "2026-W46", page: bytes = PAGE, **changes: object
) -> None:
    document: Mapping[str, Any] = {**busy_week(), "week": week, **changes}
    _put(operator, f"report/week={week}/report.html", page)
    _put(operator, f"report/week={week}/delivered/verdict.json", b"{}")
    _put(operator, f"summary/week={week}/summary.json", json.dumps(document).encode())


def test_a_week_that_is_not_there_writes_nothing_and_names_those_that_are(
    operator: Operator, here: Path
) -> None:
    for number in range(30, 47):
        _deliver(operator, f"2026-W{number}")
    found = operator.json("report", "--week", "2026-W47", code=4)
    message = found["error"]["message"]
    assert message.startswith("there is no report of 2026-W47: there are 2026-W39, ")
    assert message.endswith("2026-W46, and 9 earlier")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("week", "remedy"),
    [
        ("2026-W99", "2026 has 53, so say one from 2026-W01 to 2026-W53"),
        ("2025-W53", "2025 has 52, so say one from 2025-W01 to 2025-W52"),
        *(
            (each, "say one such as 2026-W46")
            for each in ("W46", "2026-46", "0000-W01", "../x", "")
        ),
        ("٢٠٢٦-W46", "say one such as 2026-W46"),
    ],
)
def test_what_is_no_week_is_said_the_weeks_there_are(
    operator: Operator, week: str, remedy: str, here: Path
) -> None:
    _deliver(operator)
    message = operator.json("report", "--week", week, code=2)["error"]["message"]
    assert message == f"--week {week} is no week: {remedy}"
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "others"),
    [((), ()), (("--week", "2026-W46"), ()), (("--week", "2026-W46"), ("2026-W45",))],
)
def test_a_week_that_is_summed_up_has_its_page_in_a_minute(
    operator: Operator, here: Path, arguments: tuple[str, ...], others: tuple[str, ...]
) -> None:
    for week in others:
        _deliver(operator, week)
    _put(operator, "summary/week=2026-W46/summary.json", b"{}")
    message = operator.json("report", *arguments, code=4)["error"]["message"]
    assert message == (
        "2026-W46 is summed up and its page is not there yet: that takes a minute, come again; "
        "if it stays away, the log of deliver_report says why"
    )
    assert list(here.iterdir()) == []


def test_beside_the_latest_page_it_says_which_is_being_made(operator: Operator) -> None:
    _deliver(operator, "2026-W45")
    assert "summed up" not in operator.mendq("report").stdout
    _put(operator, "summary/week=2026-W46/summary.json", b"{}")
    said = " ".join(operator.mendq("report").stdout.split())
    assert "2026-W46 is summed up and its page is not there yet" in said
    assert "The page: mendq-report-2026-W45.html" in said
    assert "summed up" not in operator.mendq("report", "--week", "2026-W45").stdout


def test_a_bucket_with_other_things_holds_no_report(operator: Operator) -> None:
    for key in (
        "report/week=2026-W46.html",
        "report/week=new/report.html",
        "report/x",
        "summary/x",
    ):
        _put(operator, key, b"")
    for arguments in ((), ("--week", "2026-W46")):
        message = operator.json("report", *arguments, code=4)["error"]["message"]
        assert message.startswith("there is no report yet: the first comes when a week has ended")


def test_what_lies_there_and_differs_is_not_overwritten_unasked(
    operator: Operator, here: Path
) -> None:
    _deliver(operator)
    (here / FILE).write_bytes(b"mine")
    result = operator.mendq("report")
    assert result.exit_code == 2
    assert "26 incidents, 19 healed" in result.stdout
    said = " ".join(result.stderr.split())
    assert f"{FILE} is there already and differs" in said
    assert "--yes overwrites it; or move it away" in said
    assert (here / FILE).read_bytes() == b"mine"
    assert FILE in operator.json("report", code=2)["error"]["message"]
    assert operator.json("report", "--yes")["written"] is True
    assert (here / FILE).read_bytes() == PAGE


def test_the_same_page_again_changes_nothing(operator: Operator, here: Path) -> None:
    _deliver(operator)
    assert operator.json("report")["written"] is True
    before = (here / FILE).stat().st_mtime_ns
    again = operator.json("report")
    assert again["written"] is False
    assert (here / FILE).stat().st_mtime_ns == before
    assert "as it was there before" in operator.mendq("report").stdout


def test_open_hands_the_file_to_the_browser(
    operator: Operator, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def start(url: str) -> bool:
        asked.append(url)
        return True

    _deliver(operator)
    assert "no browser could be started" in operator.mendq("report", "--open").output
    monkeypatch.setattr(webbrowser, "open", start)
    assert operator.json("report")["opened"] is False
    assert asked == []
    assert operator.json("report", "--open")["opened"] is True
    assert asked == [(here / FILE).as_uri()]


def test_what_a_browser_prints_is_no_part_of_the_document(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Started by fd 1, which is the command's own standard output."""
    monkeypatch.setattr(webbrowser, "open", webbrowser.GenericBrowser(["echo", "%s"]).open)
    _deliver(operator)
    assert operator.json("report", "--open")["opened"] is True
    printed = capfd.readouterr()
    assert printed.out == ""
    assert FILE in printed.err
    operator.mendq("report", "--open")
    assert FILE in capfd.readouterr().out


def test_the_verdict_is_on_the_terminal(operator: Operator) -> None:
    _deliver(operator)
    shown = " ".join(operator.mendq("report").stdout.split())
    for says in (
        "week 46 of 2026, 9 to 15 Nov 2026 (UTC)",
        "26 incidents, 19 healed before anyone was paged.",
        "6 above the 4-week median of 20",
        "1. Set VisibilityTimeout of invoices to 690 s in its template.",
        "VisibilityTimeout: 690",
        "mendq show visibility_timeout_too_short-invoices --region us-east-1",
        "All 7 nightly runs were read.",
        f"The page: {FILE}",
    ):
        assert says in shown, says


def test_nothing_of_others_steers_the_terminal(operator: Operator) -> None:
    evil = "\x1b[2J\x07\u202e[bold]x\n\r"
    document = busy_week()
    for case in document["cases"]:
        case.update(queue_arn=evil, symptom=evil, why=evil, outcome=evil)
    for recommendation in document["do_this_week"]:
        recommendation.update(
            {name: evil for name, value in recommendation.items() if isinstance(value, str)}
        )
    _deliver(operator, **document)
    result = operator.mendq("report")
    assert result.exit_code == 0, result.output
    assert not set(result.stdout) & {"\x1b", "\x07", "\u202e", "\r"}
    assert "[bold]x" in result.stdout


@pytest.mark.parametrize("summary", [b"", b"{}", b'{"schema": 2}'])
def test_a_summary_of_another_version_costs_the_verdict_alone(
    operator: Operator, here: Path, summary: bytes
) -> None:
    _deliver(operator)
    _put(operator, "summary/week=2026-W46/summary.json", summary)
    assert operator.json("report")["verdict"] is None
    assert (here / FILE).read_bytes() == PAGE


def test_where_the_newest_week_has_no_page_the_newest_with_one_is_taken(
    operator: Operator, here: Path
) -> None:
    for week in ("2026-W44", "2026-W45", "2026-W46"):
        _deliver(operator, week)
    for key in ("report/week=2026-W46/report.html", "summary/week=2026-W46/summary.json"):
        operator.aws.clients.s3.delete_object(Bucket="cases", Key=key)
    found = operator.json("report")
    assert (found["week"], found["weeks"]) == ("2026-W45", ["2026-W44", "2026-W45"])
    assert (found["file"], found["place"]) == (
        str(here / "mendq-report-2026-W45.html"),
        "s3://cases/report/week=2026-W45/report.html",
    )
    message = operator.json("report", "--week", "2026-W46", code=4)["error"]["message"]
    assert message == "there is no report of 2026-W46: there are 2026-W44, 2026-W45"
    assert [each.name for each in here.iterdir()] == ["mendq-report-2026-W45.html"]
