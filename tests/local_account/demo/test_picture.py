"""What the demo prints can be read on a small terminal, and what is to be typed works."""

from __future__ import annotations

import io
import shlex

import boto3
import pytest
from rich.console import Console, RenderableType

from functions.healing.steps import SetVisibilityTimeout
from local_account.demo.picture import cast, decisions, standing, undo_commands
from local_account.demo.stories import STORIES
from local_account.demo.story import Story
from local_account.demo.watching import Seen, configuration
from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, SECRET_KEY
from tests.local_account.demo.ended import ended

EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def _lines(shown: RenderableType, columns: int) -> list[str]:
    console = Console(width=columns, file=io.StringIO())
    with console.capture() as capture:
        console.print(shown)
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= columns
    return lines


@EACH
@pytest.mark.parametrize("columns", [80, 120])
def test_every_queue_stands_on_a_line_of_its_own(story: Story, columns: int) -> None:
    rows = [line for line in _lines(standing(story, ended(story)), columns) if line.strip()][2:]
    assert len(rows) == len(story.queues)
    for row, bad in zip(rows, story.queues, strict=True):
        assert bad.name in row
        assert bad.path[-1] in row
        made = [f"{name} {old} -> {new}" for name, (old, new) in bad.changes.items()] or ["-"]
        assert row.rstrip().endswith(made[0] if len(made) == 1 else f"{len(made)} attributes")


@EACH
def test_the_cast_and_the_decisions_name_every_queue(story: Story) -> None:
    watch = ended(story)
    for shown in (cast(story), decisions(story, watch)):
        text = "\n".join(_lines(shown, 80))
        assert all(bad.name in text for bad in story.queues)


@EACH
def test_a_change_that_was_not_made_is_not_shown_as_one(story: Story) -> None:
    text = " ".join(" ".join(_lines(decisions(story, ended(story)), 120)).split())
    for bad in story.queues:
        for step in bad.steps:
            assert str(step) in text or str(step.inverse()) in text
    assert text.count("proposed: ") == sum(bad.path == ("proposed",) for bad in story.queues)
    undoable = [bad for bad in story.queues if bad.changes and not bad.a_person_sets]
    assert text.count("aws sqs") == len(undoable)


@pytest.mark.account
def test_the_undo_command_undoes_the_change(account: LocalAccount) -> None:
    sqs = account.client("sqs")
    url = sqs.create_queue(QueueName="undone", Attributes={"VisibilityTimeout": "2"})["QueueUrl"]
    before = configuration(sqs, url)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "6"})
    case = {"steps": [SetVisibilityTimeout(before=2, after=6).document()]}
    seen = Seen(before["QueueArn"], url, before, configuration(sqs, url), case=case)
    (command,) = undo_commands(seen)
    _run_as_typed(command)
    assert configuration(sqs, url) == before


def _run_as_typed(command: str) -> None:
    """With nothing but what the command says, and credentials."""
    words = shlex.split(command)
    assert words[:3] == ["aws", "sqs", "set-queue-attributes"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    sqs = boto3.client(
        "sqs",
        region_name=options.pop("--region"),
        endpoint_url=options.pop("--endpoint-url"),
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    name, _, value = options.pop("--attributes").partition("=")
    sqs.set_queue_attributes(QueueUrl=options.pop("--queue-url"), Attributes={name: value})
    assert options == {}
