"""`mendq`: the commands, by what an operator is about to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from mendq.cli.command_group import CommandGroup
from mendq.cli.decide.decide import approve, close, decline
from mendq.cli.decide.freeze import freeze, thaw
from mendq.cli.decide.policy import policy
from mendq.cli.deploy.drill import drill
from mendq.cli.deploy.lint import lint
from mendq.cli.look.cases import cases
from mendq.cli.look.cost import cost
from mendq.cli.look.doctor import doctor
from mendq.cli.look.explain import explain
from mendq.cli.look.export import export
from mendq.cli.look.report import report
from mendq.cli.look.resources import resources
from mendq.cli.look.scan import scan
from mendq.cli.look.show import show
from mendq.cli.output import writable
from mendq.cli.redrive.quarantine import quarantine
from mendq.cli.redrive.redrive import redrive
from mendq.cli.undo.rollback import rollback

Command = Callable[..., None] | typer.Typer
# By what an operator is about to do, as `mendq --help` shows them.
PANELS: Mapping[str, Sequence[Command]] = {
    "Look": (doctor, cases, show, scan, report, cost, explain, export, resources),
    "Decide": (approve, decline, close, policy, freeze, thaw),
    "Undo": (rollback,),
    "Redrive": (redrive, quarantine),
    "Deploy": (lint, drill),
}
COMMANDS = {
    each.__name__: each
    for panel in PANELS.values()
    for each in panel
    if not isinstance(each, typer.Typer)
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
for title, panel in PANELS.items():
    for command in panel:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=title)
        else:
            app.command(rich_help_panel=title)(command)


def main() -> None:
    """Run one command and exit with its number."""
    with writable():
        app(prog_name="mendq")


if __name__ == "__main__":
    main()
