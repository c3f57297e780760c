"""The commands: each file declares its own and what they ask of AWS; its folder is their panel.

What is asked is in IAM's words: what whoever runs the command has to be allowed.
`sts:GetCallerIdentity` is left out: everybody may ask who they are.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import typer
from msgspec import Struct, field

Rights = Mapping[str, frozenset[str]]
Command = Callable[..., None] | typer.Typer

EVERYBODYS = frozenset({"sts:GetCallerIdentity"})
STACK = frozenset({"cloudformation:DescribeStacks"})
CASE_STORE = STACK | {"dynamodb:GetItem"}
CASES = CASE_STORE | {"dynamodb:Query"}
EVERY_CASE = CASES | {"dynamodb:Scan"}
SETTINGS = STACK | {"lambda:GetFunctionConfiguration"}
MANAGED = SETTINGS | {"tag:GetResources", "sqs:ListQueues"}
QUEUE = frozenset({"sqs:GetQueueAttributes"})
SHOWN = EVERY_CASE | SETTINGS | QUEUE
TRAILS = frozenset(
    {"cloudtrail:DescribeTrails", "cloudtrail:GetEventSelectors", "cloudtrail:GetTrailStatus"}
)
FROZEN = SETTINGS | {"dynamodb:GetItem", "ssm:GetCalendarState"}
INVOKE = "lambda:InvokeFunction"
DLQ = frozenset({"sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks"})
TAKING = QUEUE | {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"}
DROPPING = TAKING | {"sqs:DeleteMessage"}
RETURNING = DROPPING | {"sqs:SendMessage", "sqs:ListQueueTags", "sqs:ListMessageMoveTasks"}
CLAIM = "dynamodb:UpdateItem"

# The folders, by what an operator is about to do, as `mendq --help` shows them.
PANELS = ("look", "decide", "undo", "redrive", "deploy")


class Commands(Struct, frozen=True):
    """The commands of one file by name, each with what it asks of AWS.

    `place` is the file's among those of its panel. `looking` changes nothing, `steering` what is
    Mendq's own; `messages` has messages in hand: on which queues, docs/redrive.md says.
    `on` are the resources of actions that `permissions` has no rule for.
    """

    place: int
    looking: Rights = field(default_factory=dict)
    steering: Rights = field(default_factory=dict)
    messages: Rights = field(default_factory=dict)
    offline: Rights = field(default_factory=dict)
    on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """As they are typed first: a group has commands of its own."""
        every = (*self.looking, *self.steering, *self.messages, *self.offline)
        return tuple(dict.fromkeys(each.partition(" ")[0] for each in every))


@cache
def declared() -> tuple[Commands, ...]:
    """What the files declare, panel by panel."""
    return tuple(commands for _, _, commands in files())


def by_panel() -> Iterator[tuple[str, str, Command]]:
    """Panel, name and command of each, as `mendq --help` shows them."""
    for panel, module, commands in files():
        for name in commands.names:
            yield panel.capitalize(), name, getattr(import_module(module), name)


def files() -> list[tuple[str, str, Commands]]:
    """Panel, module and declaration of each file that has one."""
    found = []
    for panel in PANELS:
        for each in pkgutil.iter_modules([str(Path(__file__).with_name(panel))]):
            module = f"{__package__}.{panel}.{each.name}"
            if commands := getattr(import_module(module), "COMMANDS", None):
                found.append((panel, module, commands))
    return sorted(found, key=lambda file: (PANELS.index(file[0]), file[2].place))
