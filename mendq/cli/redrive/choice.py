"""Options that `redrive`, `quarantine return` and `quarantine drop` share.

They say which messages to send back or drop, and how fast.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from msgspec import Struct

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import set_parameters
from mendq.cli.output import YesOption, require_yes_or_terminal
from mendq.redrive.message_filter import (
    EVERY_MESSAGE_FILTER,
    FilterUnreadable,
    MessageFilter,
    parse_filter,
)
from mendq.redrive.mover import MOST_MESSAGES_PER_SEND

_WHERE_OPTION = typer.Option(
    "--where", metavar="JMESPATH", help="Take only messages that match: docs/message-filter.md."
)
_RATE_OPTION = typer.Option(metavar="R/s", help="The most messages per second, such as 10/s.")
_TYPE_AND_DEFAULT_BY_PARAMETER: dict[str, tuple[Any, Any]] = {
    "where": (Annotated[str | None, _WHERE_OPTION], None),
    "every": (
        Annotated[bool, typer.Option("--all", help="Take all messages of this queue.")],
        False,
    ),
    "limit": (Annotated[int | None, typer.Option(help="The most messages to take.", min=1)], None),
    "rate": (Annotated[str | None, _RATE_OPTION], None),
    "dry_run": (
        Annotated[
            bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")
        ],
        False,
    ),
    "yes": (YesOption, False),
}
_RATE_PATTERN = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(?:/s)?")


class MessageChoice(Struct, frozen=True):
    """The shared options, as the operator gave them: which messages, how many and how fast."""

    message_filter: MessageFilter
    # None if no limit was given.
    limit: int | None = None
    # Messages a second; None if no rate was given.
    messages_per_second: float | None = None
    dry_run: bool = False
    yes: bool = False
    # True if the first message of each FIFO group stays, also if it matches the filter.
    leave_first: bool = False
    # The command that was given, without these options.
    command: str = ""

    def format_options(self, condition: str) -> str:
        """Return the options of a command on those chosen messages that also match `condition`.

        The options contain the operator's filter, limit and rate, but not --leave-first.
        """
        words = ["--where", self.message_filter.narrow(condition)]
        if self.limit is not None:
            words.extend(["--limit", str(self.limit)])
        if self.messages_per_second is not None:
            rate_text = f"{self.messages_per_second:.3f}".rstrip("0").removesuffix(".")
            words.extend(["--rate", f"{rate_text}/s"])
        return shlex.join(words)

    def apply_limit(self, chosen_message_count: int) -> int:
        """Return how many of the chosen messages may go: at most the limit, if there is one."""
        return chosen_message_count if self.limit is None else min(chosen_message_count, self.limit)

    @property
    def batch_size(self) -> int:
        """Number of messages to send in one batch.

        At a low rate the batches are small, so that the messages are sent evenly over time.
        """
        if self.messages_per_second is None:
            return MOST_MESSAGES_PER_SEND
        return max(1, min(MOST_MESSAGES_PER_SEND, int(self.messages_per_second)))


def with_choice_options(command: Callable[..., Exit]) -> Callable[..., Exit]:
    """Decorate a command: give it the shared options, and pass them to it as its `choice`.

    The command raises CommandError if the options are not valid. It also raises it if there is no
    terminal to ask for a confirmation, and neither --yes nor --dry-run is given.
    """
    parameters = inspect.signature(command, eval_str=True).parameters

    @wraps(command)
    def run_with_choice(call: Any, **arguments: Any) -> Exit:
        option_values = {name: arguments.pop(name) for name in _TYPE_AND_DEFAULT_BY_PARAMETER}
        dry_run = option_values["dry_run"]
        yes = option_values["yes"]
        choice = MessageChoice(
            message_filter=_parse_where_option(
                option_values["where"], every=option_values["every"]
            ),
            limit=option_values["limit"],
            messages_per_second=_parse_rate_option(option_values["rate"]),
            dry_run=dry_run,
            yes=yes,
        )
        require_yes_or_terminal(yes=yes or dry_run)
        return command(call, choice=choice, **arguments)

    parameters_except_choice = [
        parameter for parameter in parameters.values() if parameter.name != "choice"
    ]
    return set_parameters(run_with_choice, parameters_except_choice, _TYPE_AND_DEFAULT_BY_PARAMETER)


def _parse_where_option(expression: str | None, *, every: bool) -> MessageFilter:
    """Return the filter of --where, or the filter for all messages of --all.

    Raises CommandError if neither or both are given, or if the expression cannot be parsed.
    """
    if (expression is None) is not every:
        raise CommandError("give either --where JMESPATH or --all", Exit.USAGE)
    try:
        return EVERY_MESSAGE_FILTER if expression is None else parse_filter(expression)
    except FilterUnreadable as unreadable_filter:
        raise CommandError(f"--where: {unreadable_filter}", Exit.USAGE) from unreadable_filter


def _parse_rate_option(rate_text: str | None) -> float | None:
    """Return the messages a second of `10/s`, `0.5/s` or `10`. None if no rate was given.

    Raises CommandError if the text is not a rate above 0.
    """
    if rate_text is None:
        return None
    rate_match = _RATE_PATTERN.fullmatch(rate_text.strip())
    messages_per_second = float(rate_match.group(1)) if rate_match else 0.0
    if not messages_per_second:
        raise CommandError(f"--rate {rate_text[:40]!r} is no rate: say 10/s, or 0.5/s", Exit.USAGE)
    return messages_per_second
