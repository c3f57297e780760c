"""`mendq`: the commands, by what an operator is about to do."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from mendq.cli.command_group import HELP, RootGroup

app = typer.Typer(
    name="mendq",
    cls=RootGroup,
    epilog="Exit: 0 done, 1 failed, 2 usage or not confirmed, 3 a person's value was kept, "
    "4 not found.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mendq {version('mendq')}")
        raise typer.Exit


@app.callback()
def mendq(
    _version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_say_version, is_eager=True, help="Its version."),
    ] = False,
) -> None:
    """See and steer what Mendq does to the queues of an account.

    \b
    Examples:
      mendq scan            # on any account, before anything is deployed
      mendq cases --open    # what waits for somebody
      mendq show orders     # all of the case of a queue
    """
