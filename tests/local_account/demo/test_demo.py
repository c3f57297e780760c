"""`make demo` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


FOLDER = ROOT / "build" / "demo"
LEASE_CHANGES = {"invoices.fifo": {"VisibilityTimeout": ("2", "6")}}
CATALOGUE_CHANGES = {**LEASE_CHANGES, "parcels": {"KmsDataKeyReusePeriodSeconds": ("60", "300")}}
LIFE_CHANGES = {
    **LEASE_CHANGES,
    "reports.fifo": {"VisibilityTimeout": ("2", "3")},
    "tickets.fifo": {
        "DeduplicationScope": ("queue", "messageGroup"),
        "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    },
    "parcels": {"KmsDataKeyReusePeriodSeconds": ("60", "900")},
}
LIFE_STATES = {
    **dict.fromkeys(("proposed", "approved", "ineffective", "escalated"), 1),
    **dict.fromkeys(("rolled_back", "contested"), 1),
    **dict.fromkeys(("verified", "watching", "closed"), 2),
    "applied": 5,
}


@pytest.mark.account
@pytest.mark.long
@pytest.mark.parametrize(
    ("story", "changes", "states", "pages"),
    [
        ("lease", LEASE_CHANGES, {"applied": 1, "observed": 1, "refused": 1}, 1),
        (
            "catalogue",
            CATALOGUE_CHANGES,
            {"applied": 2, "proposed": 3, "refused": 1, "escalated": 1},
            5,
        ),
        ("life", LIFE_CHANGES, LIFE_STATES, 3),
    ],
)
def test_it_ends_as_claimed_and_says_so_to_machines(
    story: str, changes: dict[str, Any], states: dict[str, int], pages: int
) -> None:
    for name in ("result.json", "report.html", "report.eml", "pages.txt"):
        (FOLDER / name).unlink(missing_ok=True)
    run = _run(story)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads((FOLDER / "result.json").read_text())
    names = [each["queue_arn"].rpartition(":")[2] for each in result["queues"]]
    changed = dict(zip(names, map(_changed, result["queues"]), strict=True))
    assert {name: each for name, each in changed.items() if each} == changes
    assert Counter(case["to"] for case in result["cases"]) == states
    # Until the fix stands; where the clock was put forward, until it was verified.
    assert bool(result["clock_put_forward"]) == (story == "life") == ("verified" in states)
    assert 0 < result["seconds_to_heal"] - (15 * 60 if story == "life" else 0) < 150
    assert result["not_emulated"]
    assert [each.partition(":")[0] for each in result["floors_lowered"]] == [
        "timing.propagationSeconds"
    ]
    assert result["pages"] == (FOLDER / "pages.txt").read_text().count("Subject: Mendq ") == pages
    assert (result["incidents"], result["report"]) == (len(names), "build/demo/report.html")
    page = (FOLDER / "report.html").read_text()
    assert all(name in page for name in names)
    assert f"{len(names)} incidents" in page
    assert f"{len(names)} incidents" in run.stdout
    mail = message_from_bytes((FOLDER / "report.eml").read_bytes(), policy=default)
    assert f"{len(names)} incidents" in mail["Subject"]
    assert "image/png" in [each.get_content_type() for each in mail.walk()]
    kept = story == "life"
    assert run.stdout.count(" undo aws sqs set-queue-attributes") == len(changes) - kept
    assert "ERROR" not in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.account
@pytest.mark.long
def test_every_letter_that_goes_back_is_handled_or_kept_apart() -> None:
    (FOLDER / "result.json").unlink(missing_ok=True)
    run = _run("redrive")
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads((FOLDER / "result.json").read_text())
    letters = result["letters"]
    went_back = letters.pop("went_back")
    assert letters == {
        "letters": 200,
        "processed": 180,
        "quarantined": 20,
        "left": 0,
        "lost": 0,
        "came_back": 20,
        "charged_again": {"careful": 0, "careless": 20},
    }
    # A move task knows neither what is back already nor who sent it.
    assert 200 <= went_back < 240
    assert went_back == _said(run.stdout, r"done: (\d+) letters went back, 20 of them came back")
    assert {each.partition(":")[0] for each in result["floors_lowered"]} > {
        "redrive.halt_share",
        "redrive.least_soak_seconds",
    }
    assert result["clock_put_forward"]
    assert (result["pages"], result["incidents"]) == (1, 1)
    assert "Traceback" not in run.stdout + run.stderr


def _said(printed: str, words: str) -> int:
    found = re.search(words.replace(" ", r"\s+"), printed)
    assert found, printed
    return int(found.group(1))


def _changed(queue: dict[str, dict[str, str]]) -> dict[str, tuple[str | None, str | None]]:
    before, after = queue["before"], queue["after"]
    return {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def _run(story: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "local_account.demo", "--story", story],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_an_unknown_story_is_one_line() -> None:
    run = _run("none")
    assert run.returncode == 2
    known = "lease, catalogue, life, sweep, redrive, all"
    assert run.stdout == f"make demo: STORY 'none' is not known: give one of {known}\n"
    assert run.stderr == ""
