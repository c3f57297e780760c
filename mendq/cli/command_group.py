"""The group of commands: panels in its help; with --json, a usage error is a document too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from mendq.cli.exit_codes import Exit, Stopped
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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        rows = defaultdict[str, list[tuple[str, str]]](list)
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for name, command in self.commands.items():
            rows[getattr(command, "rich_help_panel", "") or "Commands"].append(
                (name, command.get_short_help_str(limit))
            )
        for title, listed in rows.items():
            with formatter.section(title):
                formatter.write_dl(listed)


def group(name: str, says: str) -> typer.Typer:
    """A group within the group, such as `mendq policy`."""
    return typer.Typer(
        name=name, cls=CommandGroup, help=says, no_args_is_help=True, rich_markup_mode=None
    )


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
        in_words = getattr(mistake, "format_message", mistake.__str__)
        Output(as_json).document(Stopped(in_words(), Exit.USAGE).document())
        raise
