"""The groups of commands: panels in their help; with --json, a usage error is a document too."""

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

_AS_JSON = "mendq.cli.command_group.as_json"


class CommandGroup(TyperGroup):
    """Arguments that cannot be read end here, before there is an Invocation to say so."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        # A group within the group raises into the outer one's `invoke`, which says it.
        as_json = parent is None and _asks_for_json(args)
        with _documented(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta.setdefault(_AS_JSON, as_json)
        return context

    def invoke(self, ctx: Any) -> Any:
        with _documented(as_json=ctx.parent is None and ctx.meta[_AS_JSON]):
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's
        """Write a section for each panel."""
        rows = defaultdict[str, list[tuple[str, str]]](list)
        for title, name, says in self.sentences():
            rows[title].append((name, says))
        for title, listed in rows.items():
            with formatter.section(title):
                formatter.write_dl(listed)
        if not list_examples(self.help):
            with formatter.section("Examples"):
                for command in self.commands.values():
                    formatter.write(f"  {list_examples(command.help)[0]}\n")

    def sentences(self) -> Iterator[tuple[str, str, str]]:
        """Of each command the panel, the name and the first sentence of its help."""
        for name, command in self.commands.items():
            yield "Commands", name, (command.help or "").partition("\n\n")[0]


class RootGroup(CommandGroup):
    """All that there are, each imported when it is called: help and a mistake import none."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Loaded()  # type: ignore[assignment]

    def sentences(self) -> Iterator[tuple[str, str, str]]:
        for each in find_commands().values():
            yield each.panel.capitalize(), each.name, each.says


class _Loaded(Mapping[str, Any]):
    def __iter__(self) -> Iterator[str]:
        return iter(find_commands())

    def __len__(self) -> int:
        return len(find_commands())

    def __getitem__(self, name: str) -> Any:
        there = find_commands()[name]
        run = getattr(import_module(there.module), there.variable)
        if isinstance(run, typer.Typer):
            return get_group(run)
        made = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
        made.command(name, help=format_help(run))(run)
        return get_command(made)


# The folders, by what an operator is about to do, as `mendq --help` shows them.
PANELS = ("look", "queues", "decide", "undo", "redrive", "deploy")
_EXAMPLES = "\nExamples:\n"
_EQUALS = """: say --option value, and quote a filter whole: --where "body.type == 'order'\""""
HELP = {"help_option_names": ["-h", "--help"]}
# As the files of the panels write a command and a group.
_COMMAND = re.compile(
    r"^@command\(\s*(?P<place>\d+),\s.*?(?P<group>[a-z]*),?\s*\)\n(?:@\w+\n)?"
    r"^def (?P<variable>\w+)\("
    r'.*?"""(?P<says>[^\n]*?)(?:"""|$)',
    re.MULTILINE | re.DOTALL,
)
_GROUP = re.compile(
    r'^(?P<variable>\w+) = group\("(?P<name>[a-z-]+)", "(?P<says>[^"]+)"', re.MULTILINE
)


class CommandSource(NamedTuple):
    """Where a command, or a group of them, is written, and its first sentence."""

    panel: str
    place: int
    name: str
    says: str
    module: str
    variable: str


@cache
def find_commands() -> Mapping[str, CommandSource]:
    """Every command by its name, in the order of `mendq --help`; read, not imported."""
    found = [
        each
        for panel in PANELS
        for path in sorted(Path(__file__).with_name(panel).glob("*.py"))
        for each in parse_commands(path.read_text(), panel, f"{__package__}.{panel}.{path.stem}")
    ]
    ordered = sorted(found, key=lambda each: (PANELS.index(each.panel), each.place))
    return {each.name: each for each in ordered}


def parse_commands(source: str, panel: str, module: str) -> Iterator[CommandSource]:
    """Yield the commands that `source`, the text of `module`, declares in this panel."""
    grouped = {each["variable"]: each for each in _GROUP.finditer(source)}
    for each in _COMMAND.finditer(source):
        of = grouped.get(each["group"])
        name, says = (of["name"], of["says"]) if of else (each["variable"], each["says"])
        variable = of["variable"] if of else each["variable"]
        yield CommandSource(
            panel, int(each["place"]), to_command_name(name), says, module, variable
        )


def to_command_name(variable: str) -> str:
    """A word of Python's has an underscore behind it; one between words is a hyphen."""
    return variable.rstrip("_").replace("_", "-")


def group(name: str, says: str) -> typer.Typer:
    """A group within the group, such as `mendq policy`."""
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        help=says,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=HELP,
    )


def format_help(run: Callable[..., object]) -> str:
    """Return its docstring as Click's help; what follows `Examples:` keeps its lines."""
    return cleandoc(run.__doc__ or "").replace(_EXAMPLES, f"\n\b{_EXAMPLES}")


def list_examples(said: str | None) -> list[str]:
    """What there is to type, in a help or in the docstring that it is made of."""
    return [each.strip() for each in cleandoc(said or "").partition(_EXAMPLES)[2].splitlines()]


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Behind `--` everything is an argument."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before


@contextmanager
def _documented(*, as_json: bool) -> Iterator[None]:
    """Typer tells people on standard error and exits; this is the script's part."""
    try:
        yield
    except typer.TyperException as mistake:
        if "unexpected extra" in mistake.message and "=" in mistake.message:
            mistake.message += _EQUALS
        in_words = getattr(mistake, "format_message", mistake.__str__)
        Output(as_json).print_json(CommandError(in_words(), Exit.USAGE).document())
        raise
