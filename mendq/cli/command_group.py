"""Groups of commands for Typer: help by panel, and usage errors as JSON if `--json` is given.

The root group finds its commands by reading the source files, and imports a command only when it
is called. `mendq --help` and a mistyped command therefore import no command.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import Output

_JSON_OPTION_META_KEY = "mendq.cli.command_group.as_json"


class CommandGroup(TyperGroup):
    """A group of commands that prints its usage errors as JSON too if `--json` is given.

    All other errors are printed by Invocation, which does not exist yet when usage is checked.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **context_settings: Any
    ) -> Any:
        # A usage error in a group within the root group is printed by the root group's `invoke`.
        as_json = parent is None and _has_json_option(args)
        with _print_usage_errors(as_json=as_json):
            context = super().make_context(info_name, args, parent, **context_settings)
        context.meta.setdefault(_JSON_OPTION_META_KEY, as_json)
        return context

    def invoke(self, ctx: Any) -> Any:
        with _print_usage_errors(as_json=ctx.parent is None and ctx.meta[_JSON_OPTION_META_KEY]):
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's
        """Write one section of the help for each panel.

        If the group's own help has no examples, add the first example of each command.
        """
        help_rows_by_panel = defaultdict[str, list[tuple[str, str]]](list)
        for panel, name, sentence in self.list_help_rows():
            help_rows_by_panel[panel].append((name, sentence))
        for panel, rows in help_rows_by_panel.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
        if not list_examples(self.help):
            with formatter.section("Examples"):
                for command in self.commands.values():
                    formatter.write(f"  {list_examples(command.help)[0]}\n")

    def list_help_rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the panel, the name and the first sentence of the help of each command."""
        for name, command in self.commands.items():
            yield "Commands", name, (command.help or "").partition("\n\n")[0]


class RootGroup(CommandGroup):
    """All commands of `mendq`. A command is imported when it is called, not before."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _LazyCommands()  # type: ignore[assignment]

    def list_help_rows(self) -> Iterator[tuple[str, str, str]]:
        for source in find_commands().values():
            yield source.panel.capitalize(), source.name, source.sentence


class _LazyCommands(Mapping[str, Any]):
    """Click commands by name. Getting one imports its module."""

    def __iter__(self) -> Iterator[str]:
        return iter(find_commands())

    def __len__(self) -> int:
        return len(find_commands())

    def __getitem__(self, name: str) -> Any:
        source = find_commands()[name]
        command_function = getattr(import_module(source.module), source.variable)
        if isinstance(command_function, typer.Typer):
            return get_group(command_function)
        app = typer.Typer(
            add_completion=False, rich_markup_mode=None, context_settings=CONTEXT_SETTINGS
        )
        app.command(name, help=format_help(command_function))(command_function)
        return get_command(app)


# The folders of the commands, in the order in which `mendq --help` shows them.
HELP_PANELS = ("look", "queues", "decide", "undo", "redrive", "deploy")
_EXAMPLES_HEADING = "\nExamples:\n"
# Added to an error if an argument has an equals sign.
_EQUALS_SIGN_HINT = (
    """: say --option value, and quote a filter whole: --where "body.type == 'order'\""""
)
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}
# The form in which a file of a panel declares a command: decorator, function and docstring.
_COMMAND_PATTERN = re.compile(
    r"^@command\(\s*(?P<position>\d+),\s.*?(?P<group>[a-z]*),?\s*\)\n(?:@\w+\n)?"
    r"^def (?P<variable>\w+)\("
    r'.*?"""(?P<sentence>[^\n]*?)(?:"""|$)',
    re.MULTILINE | re.DOTALL,
)
# The form in which a file of a panel declares a group of commands.
_GROUP_PATTERN = re.compile(
    r'^(?P<variable>\w+) = group\("(?P<name>[a-z-]+)", "(?P<sentence>[^"]+)"', re.MULTILINE
)


class CommandSource(NamedTuple):
    """The place in the source code where a command, or a group of commands, is declared."""

    panel: str
    # Position in the panel: the first argument of `@command`.
    position: int
    name: str
    # First line of the docstring, which the help shows.
    sentence: str
    module: str
    # Name of the function, or of the group's variable, in the module.
    variable: str


@cache
def find_commands() -> Mapping[str, CommandSource]:
    """Return all commands and groups of commands by name, without importing any.

    They are in the order of `mendq --help`.
    """
    command_sources = list[CommandSource]()
    for panel in HELP_PANELS:
        for path in sorted(Path(__file__).with_name(panel).glob("*.py")):
            module = f"{__package__}.{panel}.{path.stem}"
            command_sources += parse_commands(path.read_text(), panel, module)
    command_sources.sort(key=lambda source: (HELP_PANELS.index(source.panel), source.position))
    return {source.name: source for source in command_sources}


def parse_commands(source_text: str, panel: str, module: str) -> Iterator[CommandSource]:
    """Yield the commands that the source text of a module declares.

    A command of a group is yielded as its group if the module declares that group.
    """
    group_match_by_variable = {
        match["variable"]: match for match in _GROUP_PATTERN.finditer(source_text)
    }
    for match in _COMMAND_PATTERN.finditer(source_text):
        position = int(match["position"])
        group_match = group_match_by_variable.get(match["group"])
        if group_match is None:
            variable = match["variable"]
            name = to_command_name(variable)
            yield CommandSource(panel, position, name, match["sentence"], module, variable)
        else:
            name = to_command_name(group_match["name"])
            sentence = group_match["sentence"]
            yield CommandSource(panel, position, name, sentence, module, group_match["variable"])


def to_command_name(variable: str) -> str:
    """Return the command name for a function's name, such as `return` for `return_`.

    A function has a trailing underscore if its name would be a Python keyword or built-in. An
    underscore between words becomes a hyphen.
    """
    return variable.rstrip("_").replace("_", "-")


def group(name: str, sentence: str) -> typer.Typer:
    """Make a group of commands within `mendq`, such as `mendq policy`."""
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        help=sentence,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=CONTEXT_SETTINGS,
    )


def format_help(command_function: Callable[..., object]) -> str:
    """Convert a command's docstring to help for Click. The examples keep their line breaks."""
    return cleandoc(command_function.__doc__ or "").replace(
        _EXAMPLES_HEADING, f"\n\b{_EXAMPLES_HEADING}"
    )


def list_examples(help_text: str | None) -> list[str]:
    """Return the example commands of a command's help text or docstring, one per line."""
    _, _, examples_text = cleandoc(help_text or "").partition(_EXAMPLES_HEADING)
    return [line.strip() for line in examples_text.splitlines()]


def _has_json_option(arguments: Sequence[str]) -> bool:
    """Return True if `--json` is given as an option. Words after `--` are arguments."""
    for argument in arguments:
        if argument in ("--json", "--"):
            return argument == "--json"
    return False


@contextmanager
def _print_usage_errors(*, as_json: bool) -> Iterator[None]:
    """Print usage errors of the block as JSON if `as_json`. The errors are raised again.

    Typer then prints them as text. If an unexpected argument has an equals sign, a hint is added.
    """
    try:
        yield
    except typer.TyperException as error:
        if "unexpected extra" in error.message and "=" in error.message:
            error.message += _EQUALS_SIGN_HINT
        message = error.format_message()
        Output(as_json).print_json(CommandError(message, Exit.USAGE).document())
        raise
