"""`make demo` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.account
def test_it_ends_as_claimed_and_says_so_to_machines() -> None:
    path = ROOT / "build" / "demo" / "result.json"
    report = path.with_name("report.html")
    for each in (path, report):
        each.unlink(missing_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "local_account.demo"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "70"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(path.read_text())
    seconds = {
        each["queue_arn"].rpartition(":")[2]: (
            each["before"]["VisibilityTimeout"],
            each["after"]["VisibilityTimeout"],
        )
        for each in result["queues"]
    }
    assert seconds == {
        "invoices.fifo": ("2", "6"),
        "mails.fifo": ("2", "2"),
        "exports.fifo": ("2", "2"),
    }
    assert sorted(case["to"] for case in result["cases"]) == ["applied", "observed", "refused"]
    assert 0 < result["seconds_to_heal"] < 60
    assert result["not_emulated"]
    assert [each.partition(":")[0] for each in result["floors_lowered"]] == [
        "timing.propagationSeconds"
    ]
    assert "aws sqs set-queue-attributes" in run.stdout
    assert not re.search(r"lease \d+ s .*\.fifo  ", run.stdout)  # two lines in one
    assert (result["incidents"], result["report"]) == (3, "build/demo/report.html")
    page = report.read_text()
    for name in seconds:
        assert name in page
    assert "3 incidents" in page
    assert "3 incidents" in run.stdout
    assert "ERROR" not in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_an_unknown_story_is_a_usage_error() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "local_account.demo", "--story", "none"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "lease" in run.stderr
    assert "Traceback" not in run.stderr
