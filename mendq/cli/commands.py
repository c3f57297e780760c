"""The commands: each is declared with what it asks of AWS; its folder is its panel.

What is asked is in IAM's words: what whoever runs the command has to be allowed.
`sts:GetCallerIdentity` is left out: everybody may ask who they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum, auto
from functools import cache
from importlib import import_module

import typer
from msgspec import Struct

from mendq.cli.command_group import find_commands, format_help, to_command_name
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import with_invocation
from mendq.model.facts import Need, scan_read_actions

Rights = Mapping[str, frozenset[str]]
Resources = Mapping[str, tuple[str, ...]]

STACK = frozenset({"cloudformation:DescribeStacks"})
CASE_STORE = STACK | {"dynamodb:GetItem"}
CASES = CASE_STORE | {"dynamodb:Query"}
EVERY_CASE = CASES | {"dynamodb:Scan"}
SETTINGS = STACK | {"lambda:GetFunctionConfiguration"}
MANAGED = SETTINGS | {"tag:GetResources", "sqs:ListQueues"}
QUEUE = frozenset({"sqs:GetQueueAttributes"})
# Whatever the catalogue asks to be gathered, where nobody is paged.
FACTS = frozenset(each.iam_action for each in scan_read_actions(Need))
SHOWN = EVERY_CASE | SETTINGS | QUEUE | {"access-analyzer:CheckNoNewAccess"}
TRAILS = frozenset(
    {"cloudtrail:DescribeTrails", "cloudtrail:GetEventSelectors", "cloudtrail:GetTrailStatus"}
)
FROZEN = SETTINGS | {"dynamodb:GetItem", "ssm:GetCalendarState"}
INVOKE = "lambda:InvokeFunction"
SOURCES = frozenset({"sqs:ListDeadLetterSourceQueues"})
DLQ = SOURCES | {"sqs:ListMessageMoveTasks"}
TAKING = QUEUE | {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"}
DROPPING = TAKING | {"sqs:DeleteMessage"}
RETURNING = DROPPING | {"sqs:SendMessage", "sqs:ListQueueTags", "sqs:ListMessageMoveTasks"}
CLAIM = "dynamodb:UpdateItem"


class Kind(StrEnum):
    """How far a command goes.

    LOOKING changes nothing, STEERING what is Mendq's own, OFFLINE asks AWS nothing. MESSAGES has
    messages in hand: on which queues, docs/redrive.md says.
    """

    LOOKING = auto()
    STEERING = auto()
    MESSAGES = auto()
    OFFLINE = auto()


class DeclaredCommand(Struct, frozen=True):
    """A command; `group` is the one that it is in, if any.

    `on` are the resources of actions that `permissions` has no rule for.
    """

    run: Callable[..., None]
    kind: Kind
    actions: frozenset[str]
    group: typer.Typer | None
    on: Resources

    @property
    def name(self) -> str:
        return to_command_name(self.run.__name__)

    @property
    def full_name(self) -> str:
        """As it is typed: behind its group's name."""
        return self.name if self.group is None else f"{self.group.info.name} {self.name}"


_DECLARED: list[DeclaredCommand] = []


def command(
    place: int,  # noqa: ARG001 - read in the file, see `written`
    kind: Kind,
    actions: Iterable[str] = (),
    group: typer.Typer | None = None,
    on: Resources | None = None,
) -> Callable[[Callable[..., Exit | None]], Callable[..., None]]:
    """Declare a command, called as its function is, and what it asks.

    By its `place` among those of its panel, `command_group.written` finds it in its file.
    """

    def declare(command: Callable[..., Exit | None]) -> Callable[..., None]:
        run = with_invocation(command, asks_aws=kind is not Kind.OFFLINE)
        made = DeclaredCommand(run, kind, frozenset(actions), group, on or {})
        _DECLARED.append(made)
        return run if group is None else group.command(made.name, help=format_help(run))(run)

    return declare


@cache
def list_commands() -> tuple[DeclaredCommand, ...]:
    """Every command, in the order of `mendq --help`."""
    for each in find_commands().values():
        import_module(each.module)
    order = list(find_commands())
    return tuple(sorted(_DECLARED, key=lambda each: order.index(each.full_name.partition(" ")[0])))
