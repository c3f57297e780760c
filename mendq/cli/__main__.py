"""`mendq`: the commands, by what an operator is about to do."""

from __future__ import annotations

import typer

from mendq.cli.command_group import CommandGroup
from mendq.cli.commands import declared
from mendq.cli.output import writable

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
COMMANDS, GROUPS = {}, list[typer.Typer]()
for each in declared():
    panel = each.panel.capitalize()
    if each.group is None:
        COMMANDS[each.name] = app.command(each.name, rich_help_panel=panel)(each.run)
    elif each.group not in GROUPS:
        app.add_typer(each.group, rich_help_panel=panel)
        GROUPS.append(each.group)


def main() -> None:
    """Run one command and exit with its number."""
    with writable():
        app(prog_name="mendq")


if __name__ == "__main__":
    main()
