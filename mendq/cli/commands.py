"""Declaration of the commands: their position in the help, and the IAM actions that they need.

The folder of a command's file is its panel in `mendq --help`. The person who runs the command needs
permission for the declared actions. `sts:GetCallerIdentity` is not declared, because AWS allows it
without any permission.
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
from mendq.model.facts import Need, list_scan_read_actions

# IAM actions by the command that needs them.
ActionsByCommand = Mapping[str, frozenset[str]]
# Resource ARN patterns by IAM action.
ResourcesByAction = Mapping[str, tuple[str, ...]]

# Sets of IAM actions that several commands need.
STACK_ACTIONS = frozenset({"cloudformation:DescribeStacks"})
CASE_LOOKUP_ACTIONS = STACK_ACTIONS | {"dynamodb:GetItem"}
CASE_QUERY_ACTIONS = CASE_LOOKUP_ACTIONS | {"dynamodb:Query"}
CASE_SCAN_ACTIONS = CASE_QUERY_ACTIONS | {"dynamodb:Scan"}
SETTINGS_ACTIONS = STACK_ACTIONS | {"lambda:GetFunctionConfiguration"}
IAM_ACTIONS_TO_LIST_MANAGED_QUEUES = SETTINGS_ACTIONS | {"tag:GetResources", "sqs:ListQueues"}
QUEUE_ATTRIBUTES_ACTIONS = frozenset({"sqs:GetQueueAttributes"})
# All facts that a scan reads for the symptoms of the catalogue.
SCAN_FACTS_ACTIONS = frozenset(
    read_action.iam_action for read_action in list_scan_read_actions(Need)
)
SHOW_ACTIONS = (
    CASE_SCAN_ACTIONS
    | SETTINGS_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | {"access-analyzer:CheckNoNewAccess"}
)
TRAIL_ACTIONS = frozenset(
    {"cloudtrail:DescribeTrails", "cloudtrail:GetEventSelectors", "cloudtrail:GetTrailStatus"}
)
FREEZE_ACTIONS = SETTINGS_ACTIONS | {"dynamodb:GetItem", "ssm:GetCalendarState"}
INVOKE_LAMBDA_ACTION = "lambda:InvokeFunction"
DLQ_SOURCES_ACTIONS = frozenset({"sqs:ListDeadLetterSourceQueues"})
DLQ_ACTIONS = DLQ_SOURCES_ACTIONS | {"sqs:ListMessageMoveTasks"}
RECEIVE_MESSAGES_ACTIONS = QUEUE_ATTRIBUTES_ACTIONS | {
    "sqs:ReceiveMessage",
    "sqs:ChangeMessageVisibility",
}
DELETE_MESSAGES_ACTIONS = RECEIVE_MESSAGES_ACTIONS | {"sqs:DeleteMessage"}
SEND_BACK_MESSAGES_ACTIONS = DELETE_MESSAGES_ACTIONS | {
    "sqs:SendMessage",
    "sqs:ListQueueTags",
    "sqs:ListMessageMoveTasks",
}
CLAIM_ACTION = "dynamodb:UpdateItem"


class CommandKind(StrEnum):
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

    run_command: Callable[..., None]
    kind: CommandKind
    actions: frozenset[str]
    # The group that contains the command, such as `mendq policy`. None for most commands.
    group: typer.Typer | None
    # Resources of the actions that have no rule in `mendq/cli/permissions.py`.
    resources_by_action: ResourcesByAction

    @property
    def name(self) -> str:
        return to_command_name(self.run_command.__name__)

    @property
    def full_name(self) -> str:
        """The words that an operator types after `mendq`, with the group's name if it has one."""
        return self.name if self.group is None else f"{self.group.info.name} {self.name}"


_DECLARED_COMMANDS: list[DeclaredCommand] = []


def command(
    position: int,  # noqa: ARG001 - read from the source text, see `find_commands`
    kind: CommandKind,
    actions: Iterable[str] = (),
    group: typer.Typer | None = None,
    resources_by_action: ResourcesByAction | None = None,
) -> Callable[[Callable[..., Exit | None]], Callable[..., None]]:
    """Decorate a function as a command of the same name.

    Args:
        position: Position in its panel of `mendq --help`. Commands with the same number are sorted
            by file name.
        kind: The strongest thing that the command does.
        actions: IAM actions that the command needs.
        group: The group that contains the command. None if it stands alone.
        resources_by_action: The resources that IAM must allow, for those actions for which
            `permissions` has no rule.
    """

    def declare_command(function: Callable[..., Exit | None]) -> Callable[..., None]:
        run_command = with_invocation(function, calls_aws=kind is not CommandKind.OFFLINE)
        declared_command = DeclaredCommand(
            run_command, kind, frozenset(actions), group, resources_by_action or {}
        )
        _DECLARED_COMMANDS.append(declared_command)
        if group is None:
            return run_command
        return group.command(declared_command.name, help=format_help(run_command))(run_command)

    return declare_command


@cache
def list_commands() -> tuple[DeclaredCommand, ...]:
    """Import every command, and return all commands in the order of `mendq --help`."""
    source_by_command_name = find_commands()
    for source in source_by_command_name.values():
        import_module(source.module)
    command_names = list(source_by_command_name)

    def find_position(declared_command: DeclaredCommand) -> int:
        first_command_word = declared_command.full_name.partition(" ")[0]
        return command_names.index(first_command_word)

    return tuple(sorted(_DECLARED_COMMANDS, key=find_position))
