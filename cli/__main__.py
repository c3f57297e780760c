"""`mendq`: the commands, in the order in which an operator meets them."""

from __future__ import annotations

from collections.abc import Callable

import typer

from cli.command_group import CommandGroup
from cli.commands.cases import cases
from cli.commands.cost import cost
from cli.commands.decide import approve, close, decline
from cli.commands.doctor import doctor
from cli.commands.drill import drill
from cli.commands.explain import explain
from cli.commands.export import export
from cli.commands.freezing import freeze, thaw
from cli.commands.kept import kept
from cli.commands.lint import lint
from cli.commands.pin import pin
from cli.commands.quarantine import quarantine
from cli.commands.redrive import redrive
from cli.commands.report import report
from cli.commands.roll_back import roll_back
from cli.commands.show import show
from cli.commands.sweep import sweep
from cli.output import writable

COMMANDS: dict[str, Callable[..., None]] = {
    "doctor": doctor,
    "cases": cases,
    "show": show,
    "approve": approve,
    "decline": decline,
    "close": close,
    "roll-back": roll_back,
    "pin": pin,
    "export": export,
    "sweep": sweep,
    "report": report,
    "explain": explain,
    "lint": lint,
    "cost": cost,
    "redrive": redrive,
    "drill": drill,
    "freeze": freeze,
    "thaw": thaw,
    "kept": kept,
}

app = typer.Typer(
    name="mendq",
    cls=CommandGroup,
    help="See and steer what Mendq does to the queues of an account.",
    epilog="Exit: 0 done, 1 failed, 2 usage or not confirmed, 3 a person's value was kept, "
    "4 not found.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for name, command in COMMANDS.items():
    app.command(name)(command)
    if command is redrive:
        app.add_typer(quarantine, name="quarantine")


def main() -> None:
    """Run one command and exit with its number."""
    with writable():
        app(prog_name="mendq")


if __name__ == "__main__":
    main()
