"""Declaration of the commands: where each appears in the help and which IAM actions it needs.

The folder of a command's file is its panel in `mendq --help`. The declared actions are those that
the person who runs the command must be allowed. `sts:GetCallerIdentity` is left out, because AWS
allows it without any permission.
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

# IAM actions by the command that needs them.
Rights = Mapping[str, frozenset[str]]
# Resource ARN patterns by IAM action.
Resources = Mapping[str, tuple[str, ...]]

# Sets of IAM actions that several commands need.
STACK = frozenset({"cloudformation:DescribeStacks"})
CASE_STORE = STACK | {"dynamodb:GetItem"}
CASES = CASE_STORE | {"dynamodb:Query"}
EVERY_CASE = CASES | {"dynamodb:Scan"}
SETTINGS = STACK | {"lambda:GetFunctionConfiguration"}
MANAGED = SETTINGS | {"tag:GetResources", "sqs:ListQueues"}
QUEUE = frozenset({"sqs:GetQueueAttributes"})
# All facts that a scan reads for the symptoms of the catalogue.
FACTS = frozenset(read_action.iam_action for read_action in scan_read_actions(Need))
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
    """Kind of a command, by the strongest thing that it does.

    LOOKING changes nothing. STEERING changes what belongs to Mendq, such as cases, pins, freezes
    and drill queues, or asks a Lambda of Mendq to act. MESSAGES receives, sends or deletes
    messages; docs/redrive.md says on which queues. OFFLINE makes no AWS call.
    """

    LOOKING = auto()
    STEERING = auto()
    MESSAGES = auto()
    OFFLINE = auto()


class DeclaredCommand(Struct, frozen=True):
    """One command, its kind and the IAM actions that it needs."""

    run: Callable[..., None]
    kind: Kind
    actions: frozenset[str]
    # The group that contains the command, such as `mendq policy`. None for most commands.
    group: typer.Typer | None
    # Resources of those actions for which `permissions` has no rule.
    on: Resources

    @property
    def name(self) -> str:
        return to_command_name(self.run.__name__)

    @property
    def full_name(self) -> str:
        """The words that an operator types after `mendq`, with the group's name if it has one."""
        return self.name if self.group is None else f"{self.group.info.name} {self.name}"


_DECLARED: list[DeclaredCommand] = []


def command(
    place: int,  # noqa: ARG001 - read from the source text, see `find_commands`
    kind: Kind,
    actions: Iterable[str] = (),
    group: typer.Typer | None = None,
    on: Resources | None = None,
) -> Callable[[Callable[..., Exit | None]], Callable[..., None]]:
    """Decorate a function as a command of the same name.

    Args:
        place: Position in the panel. Commands with the same number are sorted by file name.
        kind: What the command does at most.
        actions: IAM actions that the command needs.
        group: The group that contains the command, if any.
        on: Resources of those actions for which `permissions` has no rule.
    """

    def declare(function: Callable[..., Exit | None]) -> Callable[..., None]:
        run = with_invocation(function, asks_aws=kind is not Kind.OFFLINE)
        declared_command = DeclaredCommand(run, kind, frozenset(actions), group, on or {})
        _DECLARED.append(declared_command)
        if group is None:
            return run
        return group.command(declared_command.name, help=format_help(run))(run)

    return declare


@cache
def list_commands() -> tuple[DeclaredCommand, ...]:
    """Import every command and return all in the order of `mendq --help`."""
    sources = find_commands()
    for source in sources.values():
        import_module(source.module)
    order = list(sources)

    def place_of(declared_command: DeclaredCommand) -> int:
        first_word = declared_command.full_name.partition(" ")[0]
        return order.index(first_word)

    return tuple(sorted(_DECLARED, key=place_of))
