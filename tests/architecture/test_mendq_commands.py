"""Every `mendq` command that a document, a page or a message names is one that `mendq` takes."""

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
_SAID = re.compile("(?<!from )(?<!import )mendq ")
_PLACE = "X"


def _typed() -> Iterator[str]:
    """Whole commands, to be typed as they stand."""
    shown = (line.removeprefix(".venv/bin/") for page in PAGES for line in read_command_lines(page))
    yield from (line for line in shown if line.startswith("mendq "))
    for state in State:
        lines = list_next_step_lines(replace(CASE, state=state), "")
        yield from (line for line in lines if line.startswith("mendq "))
    yield from (
        add_region_option(each.command, "eu-west-1")
        for each in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
    )
    for text in _texts():
        command = text.removeprefix(".venv/bin/").partition("#")[0].strip()
        if re.match(r"mendq [a-z]", command) and command != "mendq drill":
            yield command


def _named() -> Iterator[str]:
    """Named in a sentence, perhaps without what they are about."""
    for page in PAGES:
        yield from _INLINE.findall(page.read_text())
    for text in _texts():
        yield from _INLINE.findall(text)


@cache
def _texts() -> tuple[str, ...]:
    """What the code says to people, where it names Mendq; X stands for what it fills in."""
    paths = list_files("functions/*.py", "infra/*.py", "local_account/*.py", "mendq/*.py")
    sources = [path.read_text() for path in paths]
    return tuple(text for source in sources if _SAID.search(source) for text in _texts_in(source))


def _texts_in(source: str) -> Iterator[str]:
    inner = set[int]()
    for node in ast.walk(ast.parse(source)):  # what holds another comes before it
        inner.update(map(id, _parts(node)))
        if id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(getattr(each, "value", _PLACE)) if isinstance(each, ast.Constant) else _PLACE
                for each in node.values
            )


def _parts(node: ast.AST) -> list[ast.expr]:
    """Of a longer text, and docstrings, which nobody types from."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node.value] if isinstance(node, ast.Expr) else []


def _mistake_in(command: str) -> str:
    """What `mendq` says against the arguments, up to a redirection; nothing is run."""
    words = shlex.split(command.replace("[", "").replace("]", ""))
    _, *arguments = takewhile(lambda each: each not in {"<", ">"}, words)
    with patch.object(TyperCommand, "invoke", lambda *_: None):
        result = CliRunner().invoke(app, arguments)
    return "" if result.exit_code == 0 else result.output


def _about_nothing(mistake: str) -> bool:
    return bool(re.search(r"Missing (argument|option)|\nCommands:", mistake))


def test_every_mendq_command_that_people_are_told_to_type_is_accepted() -> None:
    commands = {*_typed()}
    assert len(commands) > 50
    assert {each: said for each in commands if (said := _mistake_in(each))} == {}


def test_every_mendq_command_named_in_a_sentence_exists() -> None:
    said = {each: _mistake_in(each) for each in {*_named()}}
    assert len(said) > 50
    assert {each: no for each, no in said.items() if no and not _about_nothing(no)} == {}
