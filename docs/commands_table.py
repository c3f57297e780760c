"""The commands of `mendq` as the README shows them, from what `--help` says."""

from __future__ import annotations

from collections.abc import Iterator

from states_page import table
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cli.__main__ import app

BEGIN = "<!-- derived: commands (make docs) -->"
HEAD = ("command", "what it does")
# What each is told about at more length.
PAGES = {
    "cost": "docs/cost.md",
    "lint": "docs/lint.md",
    "sweep": "docs/sweep.md",
    "redrive": "docs/redrive.md",
    "quarantine": "docs/redrive.md",
    "pin": "docs/runbooks/access_denied.md#a-known-good-policy",
    "approve": "docs/operate.md#approving",
    "roll-back": "docs/operate.md#undoing",
    "freeze": "docs/operate.md#stopping-it",
    "show": "docs/operate.md#reading-mendq-show",
    "drill": "docs/operate.md#now-and-then",
}


def commands_table() -> str:
    """Every command in the order of `mendq --help`."""
    group = get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError("mendq is a group of commands")
    return table(HEAD, _rows(group)).rstrip("\n")


def _rows(group: TyperGroup) -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        typed = f"`mendq {' '.join((name, *_words(command)))}`"
        page = PAGES.get(name)
        yield (f"[{typed}]({page})" if page else typed), _sentence(command)


def _words(command: object) -> Iterator[str]:
    """Its arguments."""
    if isinstance(command, TyperCommand):
        for each in command.params:
            if each.param_type_name == "argument":
                name = (each.metavar or each.name or "").strip("{}[]").upper()
                yield name if each.required else f"[{name}]"


def _sentence(command: object) -> str:
    told = getattr(command, "help", None) or ""
    within = command.commands if isinstance(command, TyperGroup) else ()
    also = f" ({', '.join(f'`{each}`' for each in within)})" if within else ""
    return " ".join(told.partition("\n\n")[0].split()) + also
