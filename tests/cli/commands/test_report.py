"""Test `mendq report`, which writes the weekly page to a file and prints its verdict."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.builders import STACK_OUTPUTS, Operator
from tests.report.weeks import make_busy_week

FILE = "mendq-report-2026-W46.html"
PAGE = b"<!doctype html>\xc3\xbc"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.setitem(STACK_OUTPUTS, "ReportBucket", "cases")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _put_object(operator: Operator, key: str, body: bytes) -> None:
    operator.aws.clients.s3.put_object(Bucket="cases", Key=key, Body=body)


def _deliver_report(
    operator: Operator, week: str = "2026-W46", page: bytes = PAGE, **changes: object
) -> None:
    document: Mapping[str, Any] = {**make_busy_week(), "week": week, **changes}
    _put_object(operator, f"report/week={week}/report.html", page)
    _put_object(operator, f"report/week={week}/delivered/verdict.json", b"{}")
    _put_object(operator, f"summary/week={week}/summary.json", json.dumps(document).encode())


def test_report_of_a_missing_week_writes_no_file_and_names_the_existing_weeks(
    operator: Operator, here: Path
) -> None:
    for number in range(30, 47):
        _deliver_report(operator, f"2026-W{number}")
    message = operator.read_refusal("report", "--week", "2026-W47", code=4)
    assert message.startswith("there is no report of 2026-W47: there are 2026-W39, ")
    assert message.endswith("2026-W46, and 9 earlier")
    assert list(here.iterdir()) == []


NO_PAGE_YET = "2026-W46 is summed up and its page is not there yet"


@pytest.mark.parametrize(
    "arguments", [(), ("--week", "2026-W46")], ids=["newest week", "named week"]
)
def test_report_of_a_week_with_a_summary_but_no_page_yet_says_to_try_again(
    operator: Operator, here: Path, arguments: tuple[str, ...]
) -> None:
    _put_object(operator, "summary/week=2026-W46/summary.json", b"{}")
    assert operator.read_refusal("report", *arguments, code=4) == (
        f"{NO_PAGE_YET}: that takes a minute, come again; "
        "if it stays away, the log of deliver_report says why"
    )
    assert list(here.iterdir()) == []


def test_report_writes_the_newest_page_and_says_that_a_newer_week_has_none_yet(
    operator: Operator,
) -> None:
    _put_object(operator, "summary/week=2026-W46/summary.json", b"{}")
    _deliver_report(operator, "2026-W45")
    output = operator.read_output("report")
    assert NO_PAGE_YET in output
    assert "The page: mendq-report-2026-W45.html" in output
    assert "summed up" not in operator.run("report", "--week", "2026-W45").stdout


def test_report_ignores_other_objects_in_the_bucket_and_says_there_is_no_report(
    operator: Operator,
) -> None:
    for key in ("report/week=2026-W46.html", "report/week=new/report.html", "summary/x"):
        _put_object(operator, key, b"")
    for arguments in ((), ("--week", "2026-W46")):
        message = operator.read_refusal("report", *arguments, code=4)
        assert message.startswith("there is no report yet: the first comes when a week has ended")


def test_report_without_the_nightly_job_says_that_the_job_is_off(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(STACK_OUTPUTS, "NightlyApplication")
    off = "the nightly job is off (nightly.enabled: false)"
    assert operator.read_refusal("report", code=4).startswith(f"there is no report: {off}")
    _deliver_report(operator)
    assert off in operator.read_output("report")


def test_report_does_not_rewrite_an_identical_file(operator: Operator, here: Path) -> None:
    _deliver_report(operator)
    assert operator.run_json("report")["written"] is True
    before = (here / FILE).stat().st_mtime_ns
    assert operator.run_json("report")["written"] is False
    assert (here / FILE).stat().st_mtime_ns == before


def test_report_without_yes_keeps_a_different_file_and_prints_the_verdict_and_the_cure(
    operator: Operator, here: Path
) -> None:
    _deliver_report(operator)
    (here / FILE).write_bytes(b"mine")
    output = operator.read_output("report", code=2)
    for words in ("26 incidents, 19 healed", f"{FILE} exists with other content", "--yes"):
        assert words in output
    assert (here / FILE).read_bytes() == b"mine"


def test_report_with_yes_overwrites_a_different_file(operator: Operator, here: Path) -> None:
    _deliver_report(operator)
    (here / FILE).write_bytes(b"mine")
    assert operator.run_json("report", "--yes")["written"] is True
    assert (here / FILE).read_bytes() == PAGE


def test_report_makes_an_existing_page_private_that_others_could_read_and_says_so(
    operator: Operator, here: Path
) -> None:
    _deliver_report(operator)
    (here / FILE).write_bytes(PAGE)
    (here / FILE).chmod(0o644)
    output = operator.read_output("report")
    assert f"other users of this machine could read or write {FILE} (mode 0644)" in output
    assert (here / FILE).stat().st_mode & 0o777 == 0o600


def test_report_with_open_opens_the_page_except_with_json_and_says_if_no_browser_starts(
    operator: Operator, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened_urls.append)
    _deliver_report(operator)
    operator.run_json("report", "--open")
    assert opened_urls == []
    assert "no browser could be started" in operator.read_output("report", "--open")
    assert opened_urls == [(here / FILE).as_uri()]


def test_report_prints_the_verdict_and_the_first_actions_on_the_terminal(
    operator: Operator,
) -> None:
    _deliver_report(operator)
    verdict = operator.run_json("report")["verdict"].splitlines()
    output = operator.read_output("report")
    assert len(verdict) > 5
    command = "mendq show visibility_timeout_too_short-491dabd42b00 --region us-east-1"
    first = "1. Set VisibilityTimeout of invoices to 690 s in its template."
    for line in (*verdict, first, command, f"The page: {FILE}"):
        assert " ".join(line.split()) in output


def test_report_escapes_terminal_codes_in_the_weekly_summary(operator: Operator) -> None:
    evil = "\x1b[2J\x07\u202e[bold]x\n\r"
    document = make_busy_week()
    for case in document["cases"]:
        case.update(dict.fromkeys(("queue_arn", "symptom", "why", "outcome"), evil))
    for action in document["do_this_week"]:
        action.update({name: evil for name, value in action.items() if isinstance(value, str)})
    _deliver_report(operator, **document)
    output = operator.run("report").stdout
    assert "mendq show" not in output
    assert not set(output) & {"\x1b", "\x07", "\u202e", "\r"}
    assert "[bold]x" in output


@pytest.mark.parametrize("summary", [b"", b'{"schema": 2}'])
def test_report_with_an_unreadable_summary_still_writes_the_page_but_gives_no_verdict(
    operator: Operator, here: Path, summary: bytes
) -> None:
    _deliver_report(operator)
    _put_object(operator, "summary/week=2026-W46/summary.json", summary)
    result = operator.run_json("report")
    assert (result["verdict"], (here / FILE).read_bytes()) == (None, PAGE)
    place = "s3://cases/report/week=2026-W46/report.html"
    assert (result["file"], result["place"]) == (str(here / FILE), place)
