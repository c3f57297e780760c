"""Every `mendq` command in a document, a report page or a message is valid."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import takewhile
from unittest.mock import patch

from typer.core import TyperCommand
from typer.testing import CliRunner

from infra.alarms import ALARMS_IN_COMPOSITES, NOTIFYING_ALARMS
from infra.alarms.alarm import add_region_option
from mendq.cli.app import app
from mendq.model.state import State
from mendq.notifications.next_steps import list_next_step_lines
from tests.architecture.documents import PAGES, read_command_lines
from tests.notifications.pages import CASE
from tests.source_files import list_files

_INLINE = re.compile(r"`(?:\.venv/bin/)?(mendq [^`\n]+)`")
_MENTION = re.compile("(?<!from )(?<!import )mendq ")
_PLACEHOLDER = "X"


def _list_complete_commands() -> Iterator[str]:
    """Yield the commands that people type as they are shown."""
    command_lines = (
        line.removeprefix(".venv/bin/") for page in PAGES for line in read_command_lines(page)
    )
    yield from (line for line in command_lines if line.startswith("mendq "))
    for state in State:
        lines = list_next_step_lines(replace(CASE, state=state), "")
        yield from (line for line in lines if line.startswith("mendq "))
    yield from (
        add_region_option(alarm.command, "eu-west-1")
        for alarm in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
    )
    for text in _read_product_texts():
        command = text.removeprefix(".venv/bin/").partition("#")[0].strip()
        if re.match(r"mendq [a-z]", command) and command != "mendq drill":
            yield command


def _list_mentioned_commands() -> Iterator[str]:
    """Yield the commands that a sentence mentions, perhaps without their arguments."""
    for page in PAGES:
        yield from _INLINE.findall(page.read_text())
    for text in _read_product_texts():
        yield from _INLINE.findall(text)


@cache
def _read_product_texts() -> tuple[str, ...]:
    """Return the texts of the code that mention Mendq. X stands for a value of the run."""
    paths = list_files("functions/*.py", "infra/*.py", "local_account/*.py", "mendq/*.py")
    sources = [path.read_text() for path in paths]
    texts: list[str] = []
    for source in sources:
        if _MENTION.search(source):
            texts += _read_texts(source)
    return tuple(texts)


def _read_texts(source: str) -> Iterator[str]:
    inner = set[int]()
    for node in ast.walk(ast.parse(source)):  # a parent comes before its children
        inner.update(map(id, _list_ignored_children(node)))
        if id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(getattr(part, "value", _PLACEHOLDER))
                if isinstance(part, ast.Constant)
                else _PLACEHOLDER
                for part in node.values
            )


def _list_ignored_children(node: ast.AST) -> list[ast.expr]:
    """Return the parts of an f-string, and docstrings, which hold no commands to type."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node.value] if isinstance(node, ast.Expr) else []


def _find_mistake(command: str) -> str:
    """Return what `mendq` says against the arguments, or an empty text. The command is not run."""
    words = shlex.split(command.replace("[", "").replace("]", ""))
    _, *arguments = takewhile(lambda word: word not in {"<", ">"}, words)
    with patch.object(TyperCommand, "invoke", lambda *_: None):
        result = CliRunner().invoke(app, arguments)
    return "" if result.exit_code == 0 else result.output


def _is_only_incomplete(mistake: str) -> bool:
    return bool(re.search(r"Missing (argument|option)|\nCommands:", mistake))


def test_every_mendq_command_that_people_are_told_to_type_is_accepted() -> None:
    commands = set(_list_complete_commands())
    assert len(commands) > 50
    mistakes = {command: _find_mistake(command) for command in commands}
    assert {command: mistake for command, mistake in mistakes.items() if mistake} == {}


def test_every_mendq_command_named_in_a_sentence_exists() -> None:
    mistakes = {command: _find_mistake(command) for command in set(_list_mentioned_commands())}
    assert len(mistakes) > 50
    wrong = {
        command: mistake
        for command, mistake in mistakes.items()
        if mistake and not _is_only_incomplete(mistake)
    }
    assert wrong == {}
