"""`mendq`: the commands, in the order in which an operator meets them."""

from __future__ import annotations

from collections.abc import Callable

import typer

from mendq.cli.command_group import CommandGroup
from mendq.cli.decide.decide import approve, close, decline
from mendq.cli.decide.freeze import freeze, thaw
from mendq.cli.decide.pin import pin
from mendq.cli.deploy.drill import drill
from mendq.cli.deploy.lint import lint
from mendq.cli.look.cases import cases
from mendq.cli.look.cost import cost
from mendq.cli.look.doctor import doctor
from mendq.cli.look.explain import explain
from mendq.cli.look.export import export
from mendq.cli.look.report import report
from mendq.cli.look.resources import retained
from mendq.cli.look.scan import scan
from mendq.cli.look.show import show
from mendq.cli.output import writable
from mendq.cli.redrive.quarantine import quarantine
from mendq.cli.redrive.redrive import redrive
from mendq.cli.undo.rollback import rollback

COMMANDS: dict[str, Callable[..., None]] = {
    "doctor": doctor,
    "cases": cases,
    "show": show,
    "approve": approve,
    "decline": decline,
    "close": close,
    "rollback": rollback,
    "pin": pin,
    "export": export,
    "scan": scan,
    "report": report,
    "explain": explain,
    "lint": lint,
    "cost": cost,
    "redrive": redrive,
    "drill": drill,
    "freeze": freeze,
    "thaw": thaw,
    "kept": retained,
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
