"""The Typer app `mendq`, which lists the commands by what an operator wants to do."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from mendq.cli.command_group import CONTEXT_SETTINGS, RootGroup

app = typer.Typer(
    name="mendq",
    cls=RootGroup,
    epilog="Exit: 0 done, 1 failed, 2 usage or not confirmed, 3 a person's value was kept, "
    "4 not found.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"mendq {version('mendq')}")
        raise typer.Exit


@app.callback()
def mendq(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """See and control what Mendq does to the queues of an account.

    \b
    Examples:
      mendq scan            # on any account, before anything is deployed
      mendq cases --open    # cases that wait for a person
      mendq show orders     # everything about the case of a queue
    """
