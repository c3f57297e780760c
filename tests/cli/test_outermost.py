"""What surrounds the commands: where they write, whom they ask, how a signal ends them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
}


def _mendq(
    *arguments: str, redirected: str = "", given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """As a process of its own, with the shell's redirection behind it."""
    command = f'exec "$0" -W ignore -m mendq.cli "$@" {redirected}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **NOWHERE, **environment},
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_what_went_wrong_is_one_line_in_a_log_and_breaks_at_spaces_on_a_terminal() -> None:
    (line,) = _mendq("show", "a-case").stderr.splitlines()
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "40"}
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", _mendq("show", "a-case", **terminal).stderr)
    shown = drawn[drawn.index("mendq: ") :]
    assert len(shown.splitlines()) > 1
    assert all(len(each.rstrip()) <= 40 for each in shown.splitlines())
    assert " ".join(shown.split()) == line


@pytest.mark.parametrize("endpoint", ["notaurl", "http://[::1"])
def test_an_endpoint_that_is_no_url(endpoint: str) -> None:
    ended = _mendq("cases", "--json", AWS_ENDPOINT_URL=endpoint)
    assert ended.returncode == 2
    assert json.loads(ended.stdout)["error"]["code"] == "usage"
    (line,) = ended.stderr.splitlines()
    assert "AWS_ENDPOINT_URL" in line


@pytest.mark.parametrize("redirected", [">&-", "> /dev/full"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("explain", "-"), ("explain", "-", "--json"), ("--help",)])
def test_where_nothing_can_be_written_one_line_says_so(
    arguments: tuple[str, ...], redirected: str, unbuffered: str
) -> None:
    environment: dict[str, Any] = {"PYTHONUNBUFFERED": unbuffered}
    ended = _mendq(*arguments, redirected=redirected, given="{}", **environment)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("mendq: ") == 1
    assert ended.stderr.splitlines()[-1].startswith("mendq: standard output ")


def test_a_mistake_keeps_its_own_exit_where_nothing_can_be_written() -> None:
    ended = _mendq("cases", "--json", "--stack", "", redirected="> /dev/full", PYTHONUNBUFFERED="1")
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1


def test_who_stops_reading_is_said_nothing() -> None:
    ended = _mendq("--help", redirected="| true")
    assert ended.stderr == ""
