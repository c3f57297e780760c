"""IAM policies for people, made from the actions that each command declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mendq.cli.commands import INVOKE_ACTION, CommandKind, list_commands
from mendq.cli.deploy.drill import RECORD_ACTIONS_BY_RESOURCE


def _actions_by_command(kind: CommandKind) -> dict[str, frozenset[str]]:
    """Return the IAM actions of each command of this kind, by the words that people type."""
    return {
        command.full_name: command.actions for command in list_commands() if command.kind is kind
    }


LOOKING = _actions_by_command(CommandKind.LOOKING)
STEERING = _actions_by_command(CommandKind.STEERING)
MESSAGES = _actions_by_command(CommandKind.MESSAGES)
OFFLINE = _actions_by_command(CommandKind.OFFLINE)
_PLACE = "REGION:ACCOUNT"
_TABLE = f"arn:aws:dynamodb:{_PLACE}:table/Mendq-*"

# Resources of actions on Mendq's own resources, by action or by service. All other actions are on
# the users' queues and functions, or take no resource: they get `*`.
_RULES: Mapping[str, tuple[str, ...]] = {
    "cloudformation:ListStacks": ("*",),
    "cloudformation:": (f"arn:aws:cloudformation:{_PLACE}:stack/Mendq/*",),
    "dynamodb:Query": (_TABLE, f"{_TABLE}/index/*"),
    "dynamodb:": (_TABLE,),
    "events:": (
        f"arn:aws:events:{_PLACE}:rule/Mendq-*",
        f"arn:aws:events:{_PLACE}:rule/default/Mendq-*",
    ),
    "iam:": ("arn:aws:iam::ACCOUNT:role/mendq-*",),
    INVOKE_ACTION: (
        f"arn:aws:lambda:{_PLACE}:function:Mendq-Approve*",
        f"arn:aws:lambda:{_PLACE}:function:Mendq-Rollback*",
    ),
    "s3:GetObject": ("arn:aws:s3:::mendq-*/*",),
    "s3:ListBucket": ("arn:aws:s3:::mendq-*",),
    "scheduler:": (f"arn:aws:scheduler:{_PLACE}:schedule/*/Mendq-*",),
    "sns:": (f"arn:aws:sns:{_PLACE}:Mendq-*",),
}


def _add_rules_of_commands() -> Mapping[str, tuple[str, ...]]:
    """Return _RULES and the resources that commands declare for their own actions (`on`)."""
    rules = dict(_RULES)
    for command in list_commands():
        rules.update(command.resources_by_action)
    return rules


_RESOURCES = _add_rules_of_commands()
_READ_ACTIONS = frozenset().union(*LOOKING.values())


def make_look_policy() -> dict[str, Any]:
    """Return the policy for people who may see everything and change nothing."""
    return make_policy(_READ_ACTIONS)


def make_steer_policy() -> dict[str, Any]:
    """Return the policy that people need to control Mendq, in addition to the look policy."""
    return make_policy(frozenset().union(*STEERING.values()) - _READ_ACTIONS)


def make_record_policy() -> dict[str, Any]:
    """Return the policy of `mendq drill --record DIR`.

    The other KMS rights that a run needs come from the policy of the key that it makes.
    """
    statements = [
        {"Effect": "Allow", "Action": actions, "Resource": [resource]}
        for resource, actions in RECORD_ACTIONS_BY_RESOURCE.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def make_policy(actions: Iterable[str]) -> dict[str, Any]:
    """Return the narrowest policy for `actions`, with one statement per set of resources."""
    actions_by_resources = defaultdict[tuple[str, ...], list[str]](list)
    for action in sorted(actions):
        service, _, _ = action.partition(":")
        resources = _RESOURCES.get(action) or _RESOURCES.get(f"{service}:", ("*",))
        actions_by_resources[resources].append(action)
    statements = [
        {"Effect": "Allow", "Action": allowed, "Resource": list(resources)}
        for resources, allowed in actions_by_resources.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}
