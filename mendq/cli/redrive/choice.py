"""Which messages a person chooses, how many and how fast: the options of three commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from msgspec import Struct

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import set_parameters
from mendq.cli.output import Yes, require_yes_or_terminal
from mendq.redrive.message_filter import EVERY_MESSAGE, MessageFilter, Misread, message_filter
from mendq.redrive.mover import MOST_ENTRIES

_WHERE = typer.Option("--where", metavar="JMESPATH", help="Which messages: docs/message-filter.md.")
_RATE = typer.Option(metavar="R/s", help="At most so many a second, such as 10/s.")
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "where": (Annotated[str | None, _WHERE], None),
    "every": (Annotated[bool, typer.Option("--all", help="All messages of this queue.")], False),
    "limit": (Annotated[int | None, typer.Option(help="At most so many.", min=1)], None),
    "rate": (Annotated[str | None, _RATE], None),
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")], False),
    "yes": (Yes, False),
}
_A_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(?:/s)?")


class Choice(Struct, frozen=True):
    """The options of a redrive; `limit` and `per_second` are None if they were not given.

    With `leave_first` the first message of each FIFO group stays, also if it matches the filter.
    `command` is the command that was given, without these options.
    """

    messages: MessageFilter
    limit: int | None = None
    per_second: float | None = None
    dry_run: bool = False
    yes: bool = False
    leave_first: bool = False
    command: str = ""

    def going(self, chosen: int) -> int:
        """How many at most."""
        return chosen if self.limit is None else min(chosen, self.limit)

    @property
    def batch(self) -> int:
        """How many go at once, so that what goes slowly goes evenly."""
        rate = MOST_ENTRIES if self.per_second is None else int(self.per_second)
        return max(1, min(MOST_ENTRIES, rate))


def choosing(command: Callable[..., Exit]) -> Callable[..., Exit]:
    """Give a command the options that say a `choice`, in place of that.

    Raises CommandError for no choice.
    """
    parameters = inspect.signature(command, eval_str=True).parameters

    @wraps(command)
    def run(call: Any, **given: Any) -> Exit:
        where, every, limit, rate, dry_run, yes = (given.pop(name) for name in _OPTIONS)
        choice = Choice(_chosen_by(where, every=every), limit, _rate_of(rate), dry_run, yes)
        require_yes_or_terminal(yes=yes or dry_run)
        return command(call, choice=choice, **given)

    own = [each for each in parameters.values() if each.name != "choice"]
    return set_parameters(run, own, _OPTIONS)


def _chosen_by(expression: str | None, *, every: bool) -> MessageFilter:
    """CommandError where that is nothing, both, or cannot be read."""
    if (expression is None) is not every:
        raise CommandError("give either --where JMESPATH or --all", Exit.USAGE)
    try:
        return EVERY_MESSAGE if expression is None else message_filter(expression)
    except Misread as misread:
        raise CommandError(f"--where: {misread}", Exit.USAGE) from misread


def _rate_of(text: str | None) -> float | None:
    """`10/s`, `0.5/s`, `10`; CommandError where it is no rate above 0."""
    if text is None:
        return None
    found = _A_RATE.fullmatch(text.strip())
    rate = float(found.group(1)) if found else 0.0
    if not rate:
        raise CommandError(f"--rate {text[:40]!r} is no rate: say 10/s, or 0.5/s", Exit.USAGE)
    return rate
