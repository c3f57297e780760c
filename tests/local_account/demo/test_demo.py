"""`make demo` as a user runs it: one run of each story."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from local_account.demo import mailbox, picture
from local_account.demo import run as demo
from local_account.demo.mailbox import Message
from local_account.demo.story import Story, read_stories
from local_account.demo.verdict import make_result
from local_account.where import REPOSITORY
from mendq.model.case import Severity
from tests.local_account.demo.ended import RESULT_OF_THE_DEMO, make_ended_watch

STORIES = read_stories("all")
MESSAGES = {
    "messages": 200,
    "processed": 180,
    "quarantined": 20,
    "left": 0,
    "lost": 0,
    "came_back": 20,
    "charged_again": {"careful": 0, "careless": 20},
}


@pytest.mark.account
@pytest.mark.long
@pytest.mark.parametrize("name", STORIES)
def test_demo_story_ends_as_claimed_and_writes_result_json_and_report(
    name: str, tmp_path: Path
) -> None:
    story = STORIES[name]
    folder = tmp_path / "build" / "demo"
    run = _run_demo(name, tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads((folder / "result.json").read_text())
    changed = {
        queue["queue_arn"].rpartition(":")[2]: _find_changes(queue) for queue in result["queues"]
    }
    assert changed == {bad.name: bad.changes for bad in story.queues}
    states = Counter(str(state) for bad in story.queues for state in bad.states)
    assert Counter(case["to"] for case in result["cases"]) == states
    assert bool(result["clock_put_forward"]) == bool(story.script)
    assert (result["seconds_to_heal"] or 1) > 0
    assert result["not_emulated"]
    floors = {floor.partition(":")[0] for floor in result["floors_lowered"]}
    assert floors == {"timing.propagationSeconds"} if name != "redrive" else len(floors) > 3
    sent = (folder / "notifications.txt").read_text().count("Subject: Mendq ")
    assert result["notifications"] == sent == story.notifications
    assert result["stories"] == [name]
    assert {claim["holds"] for claim in result["claims"]} == {True}
    assert (result["incidents"], result["report"]) == (len(changed), "build/demo/report.html")
    page = (folder / "report.html").read_text()
    assert all(name in page for name in changed)
    mail = message_from_bytes((folder / "report.eml").read_bytes(), policy=default)
    assert "image/png" in [part.get_content_type() for part in mail.walk()]
    assert_messages_are_counted(result, name)
    undone = [bad for bad in story.queues if bad.changes and not bad.a_person_sets]
    assert run.stdout.count(" undo aws sqs set-queue-attributes") == len(undone)
    assert "not as claimed" not in run.stdout
    assert "ERROR" not in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def assert_messages_are_counted(result: dict[str, Any], story: str) -> None:
    messages = result["messages"] or {}
    # Those of the new orders that a loaded machine lets die go back as well.
    assert messages.pop("went_back", 200) >= 200
    assert messages == (MESSAGES if story == "redrive" else {})


def _find_changes(queue: dict[str, dict[str, str]]) -> dict[str, tuple[str | None, str | None]]:
    before = queue["before"]
    after = queue["after"]
    names = before.keys() | after.keys()
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _run_demo(story: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Two at once would write into one folder of the repository."""
    return subprocess.run(
        [sys.executable, "-m", "local_account.demo", "--story", story],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_demo_log_prints_a_long_command_on_one_unbroken_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture.print_all(picture.make_console(), *picture.draw_command("mendq x", 0, "aws " * 99))
    assert "aws " * 99 in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("wrong", ["", "life"])
def test_demo_of_all_stories_writes_one_result_and_fails_if_one_story_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str
) -> None:
    folder = tmp_path / "demo"
    monkeypatch.setattr(demo, "RESULT_PATH", folder / "result.json")

    def run(name: str, story: Story, _port: int, _console: Console) -> Any:
        mailbox.append_to_file(
            [Message(Severity.INFO, name, "text")], folder / mailbox.NOTIFICATIONS_FILE_NAME
        )
        return make_result(make_ended_watch(story), RESULT_OF_THE_DEMO), name != wrong

    monkeypatch.setattr(demo, "_run_in_account", run)
    assert demo.main(["--story", "all"]) == (1 if wrong else 0)
    result = json.loads(demo.RESULT_PATH.read_text())
    assert len(result["queues"]) == sum(len(story.queues) for story in STORIES.values())
    sent = (folder / mailbox.NOTIFICATIONS_FILE_NAME).read_text().splitlines()
    subjects = [line for line in sent if line.startswith("Subject")]
    assert subjects == [f"Subject: {name}" for name in STORIES]
