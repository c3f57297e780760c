"""Command lines and texts for people leave through few functions, which break or quote links.

The functions themselves are tested in tests/notifications/test_links.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.source_files import ROOT, list_files

# By file, why it may write to a terminal without `Output`.
WRITERS: Mapping[str, str] = {
    "mendq/cli/output.py": "it is the place that makes text safe",
    "mendq/cli/app.py": "the version only",
    "mendq/cli/deploy/lint.py": "SARIF and annotations, made safe by `mendq/lint/view.py`",
    "mendq/cli/deploy/record_failed_calls.py": "it runs without Mendq too",
    "mendq/consumer/__init__.py": "a log of the user's own consumer",
}
_PRINTING_FUNCTIONS = frozenset({
    "print", "typer.echo", "click.echo", "sys.stdout.write", "sys.stdout.writelines",
    "sys.stderr.write", "sys.stderr.writelines",
})  # fmt: skip
# These return a command, or a note, in which nothing becomes a link.
_COMMAND_MAKERS = frozenset(
    {"quote_links", "command_or_note", "terminal_command_or_note", "say_command"}
)
# By file, why it makes a command line in another way. The file's texts are tested for links.
OTHER_MAKERS: Mapping[str, str] = {
    "mendq/cli/queues/alarms.py": "`Output.say_command` prints it",
    "mendq/report/mail.py": "week and region are checked; the report imports no other package",
    "mendq/report/open_now.py": "only a checked case id; the report imports no other package",
    "mendq/report/to_do.py": "only a checked case id; the report imports no other package",
    "mendq/cli/deploy/record_failed_calls.py": "it runs without Mendq too",
}
# A name stands inside the command: no backtick ends it before the name.
_COMMAND_WITH_NAME = re.compile(r"(?:^|[`(]|: )(?:aws|mendq) [a-z][^`]*\{\}")


@cache
def _parse_sources() -> Mapping[str, ast.Module]:
    """Return the syntax tree of each file of the product, by its path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in list_files("functions/*.py", "mendq/*.py")
    }


def _find_calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def _is_console_print(function: str) -> bool:
    return function.endswith((".print", "secho", "rprint"))


def test_exactly_the_listed_files_write_to_a_terminal_without_the_output_class() -> None:
    writers = {
        path
        for path, tree in _parse_sources().items()
        for function, _ in _find_calls(tree)
        if function in _PRINTING_FUNCTIONS or _is_console_print(function)
    }
    assert writers == WRITERS.keys()


def _make_template(text: ast.JoinedStr) -> str:
    """Return the text with `{}` for each name in it."""
    return "".join(
        part.value if isinstance(part, ast.Constant) else "{}"  # type: ignore[misc]
        for part in text.values
    )


def _list_unquoted_commands(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    """Yield the texts with a name in a command that are no argument of a command's maker."""
    quoted_nodes = {
        id(node)
        for function, call in _find_calls(tree)
        if function.split(".")[-1] in _COMMAND_MAKERS
        for argument in call.args
        for node in ast.walk(argument)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.JoinedStr)
            and _COMMAND_WITH_NAME.search(_make_template(node))
            and id(node) not in quoted_nodes
        ):
            yield node


def test_every_command_line_with_a_name_is_made_by_a_function_that_quotes_links() -> None:
    unquoted = {
        f"{path}:{text.lineno}: {_make_template(text)}"
        for path, tree in _parse_sources().items()
        if path not in OTHER_MAKERS
        for text in _list_unquoted_commands(tree)
    }
    assert unquoted == set(), "build it with a function of mendq/notifications/commands.py"


@pytest.mark.parametrize("path", sorted({*WRITERS, *OTHER_MAKERS}))
def test_every_file_with_an_exception_for_output_or_command_lines_exists(path: str) -> None:
    assert Path(ROOT, path).is_file()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("say(f'run `mendq show {case}`')", 1),
        ("say('run ' + f'mendq show {case} --region {region}')", 1),
        ("remedy = f'aws sqs purge-queue --queue-url {url}'", 1),
        ("say(f'to undo: mendq confirm {name} --revoke')", 1),
        ("say(quote_links(f'mendq show {case}'))", 0),
        ("out.say_command(f'mendq show {quote(case)}')", 0),
        ("say(f'`mendq cases` lists {count}')", 0),
        ("say(f'{name}: see `mendq cases`')", 0),
    ],
)
def test_search_for_command_lines_finds_names_inside_commands_only(source: str, count: int) -> None:
    assert len([*_list_unquoted_commands(ast.parse(source))]) == count
