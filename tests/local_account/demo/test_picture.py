"""What the demo prints can be read on a small terminal, and what is to be typed works."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console, Group, RenderableType

from local_account.demo.mailbox import Mailbox, Message, write
from local_account.demo.picture import cast, decisions, notified
from local_account.demo.story import Story, stories_of
from mendq.model.case import Severity
from tests.local_account.demo.ended import ended

STORIES = stories_of("all")
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def _lines(shown: RenderableType, columns: int = 80) -> list[str]:
    console = Console(width=columns, file=io.StringIO())
    with console.capture() as capture:
        console.print(shown)
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= columns
    return [line for line in lines if line.strip()]


@EACH
def test_every_decision_is_shown_and_a_change_only_where_one_was_made(story: Story) -> None:
    shown = " ".join(" ".join(_lines(Group(*decisions(story, ended(story))), 120)).split())
    for bad in story.queues:
        assert bad.name in " ".join(_lines(cast(story)))
        assert bad.name in shown
        for name, (before, after) in bad.steps.items():
            both = (f"{name} {before} -> {after}", f"{name} {after} -> {before}")
            assert any(each in shown for each in both)
    assert shown.count("proposed: ") == sum(bad.states == ("proposed",) for bad in story.queues)
    undoable = [bad for bad in story.queues if bad.changes and not bad.a_person_sets]
    assert shown.count("aws sqs") == len(undoable)


def test_what_is_urgent_is_shown_and_the_rest_named(tmp_path: Path) -> None:
    box = Mailbox(None, "url", {})  # type: ignore[arg-type]
    urgent = Message(Severity.URGENT, "Mendq a", "Please act.\n" + "line\n" * 20)
    box.messages += [urgent, Message(Severity.INFO, "Mendq b", "x")]
    printed = "\n".join(_lines(Group(*notified(box, Path("notifications.txt")))))
    first, _, others = printed.partition("more lines")
    assert "Please act." in first
    assert "info  Mendq b" in others
    write(box.messages, path := tmp_path / "demo" / "notifications.txt")
    assert path.read_text().count("line\n") == 20
    assert path.read_text().index("To: urgent") < path.read_text().index("To: info")
