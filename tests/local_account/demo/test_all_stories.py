"""`STORY=all`: every story on an account of its own, one result for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from functions.healing.paging import Severity
from local_account.demo import __main__ as demo
from local_account.demo import pages
from local_account.demo.honesty import Honesty
from local_account.demo.mailbox import Message
from local_account.demo.stories import STORIES
from local_account.demo.story import Story
from local_account.demo.verdict import result_of
from tests.local_account.demo.ended import ended


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "RESULT", tmp_path / "demo" / "result.json")


def _tells(monkeypatch: pytest.MonkeyPatch, *, wrong: str = "") -> list[Path]:
    """Every story ends as claimed, but for one; the folders they were told to use."""
    folders: list[Path] = []

    def run(story: Story, _port: int, _console: Console, folder: Path) -> demo.Told:
        folders.append(folder)
        pages.write([Message(Severity.INFO, folder.name, "a page")], folder / pages.NAME)
        (folder / "report.html").write_text(f"the page of {folder.name}")
        (folder / "report.eml").write_text(f"the mail of {folder.name}")
        result = result_of(ended(story), None, 1, Honesty((), ()))
        result |= {"incidents": 1, "report": str(folder / "report.html")}
        return demo.Told(result, is_as_claimed=story is not STORIES.get(wrong))

    monkeypatch.setattr(demo, "_run_in_account", run)
    return folders


def _result() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(demo.RESULT.read_text())
    return result


def test_one_story_has_no_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = _tells(monkeypatch)
    assert demo.main(["--story", "life"]) == 0
    assert folders == [demo.RESULT.parent]
    assert len(_result()["queues"]) == len(STORIES["life"].queues)


def test_all_are_told_and_written_down_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = _tells(monkeypatch)
    assert demo.main(["--story", "all"]) == 0
    assert folders == [demo.RESULT.parent / name for name in STORIES]
    result, last = _result(), list(STORIES)[-1]
    assert len(result["queues"]) == sum(len(each.queues) for each in STORIES.values())
    assert result["pages"] == result["incidents"] == len(STORIES)
    assert Path(result["report"]).read_text() == f"the page of {last}"
    assert Path(result["report"]).parent == demo.RESULT.parent
    assert (demo.RESULT.parent / "report.eml").read_text() == f"the mail of {last}"
    sent = (demo.RESULT.parent / pages.NAME).read_text()
    assert [line for line in sent.splitlines() if line.startswith("Subject: ")] == [
        f"Subject: {name}" for name in STORIES
    ]


@pytest.mark.parametrize("wrong", STORIES)
def test_one_that_is_not_as_claimed_is_enough(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    folders = _tells(monkeypatch, wrong=wrong)
    assert demo.main(["--story", "all"]) == 1
    assert len(folders) == len(STORIES)
    assert len(_result()["cases"]) > 0
