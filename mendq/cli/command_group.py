"""The group of commands: with --json, a mistake in the arguments is a document too."""

from __future__ import annotations

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
        self, info_name: str | None, args: list[str], *parents: Any, **extra: Any
    ) -> Any:
        as_json = _asks_for_json(args)
        with _documented(as_json=as_json):
            context = super().make_context(info_name, args, *parents, **extra)
        context.meta[_AS_JSON] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        with _documented(as_json=ctx.meta[_AS_JSON]):
            return super().invoke(ctx)


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
