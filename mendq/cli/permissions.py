"""IAM policies for people, made from the actions that each command declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mendq.cli.commands import INVOKE_LAMBDA_ACTION, CommandKind, list_commands
from mendq.cli.deploy.drill import IAM_ACTIONS_FOR_RECORD_BY_RESOURCE


def _collect_actions_by_command(kind: CommandKind) -> dict[str, frozenset[str]]:
    """Return the IAM actions of each command of this kind, by the command's full name."""
    return {
        command.full_name: command.actions for command in list_commands() if command.kind is kind
    }


LOOK_ACTIONS_BY_COMMAND = _collect_actions_by_command(CommandKind.LOOKING)
STEER_ACTIONS_BY_COMMAND = _collect_actions_by_command(CommandKind.STEERING)
MESSAGES_ACTIONS_BY_COMMAND = _collect_actions_by_command(CommandKind.MESSAGES)
OFFLINE_ACTIONS_BY_COMMAND = _collect_actions_by_command(CommandKind.OFFLINE)
_REGION_AND_ACCOUNT = "REGION:ACCOUNT"
# The case store's table. The pattern does not fit the table of seal keys.
_TABLE_ARN = f"arn:aws:dynamodb:{_REGION_AND_ACCOUNT}:table/Mendq-CaseStore*"

# Resources of actions on Mendq's own resources, by action or by service. All other actions are on
# the users' queues and functions, or take no resource: they get `*`.
_MENDQ_RESOURCES_BY_ACTION_OR_SERVICE: Mapping[str, tuple[str, ...]] = {
    "cloudformation:ListStacks": ("*",),
    "cloudformation:": (f"arn:aws:cloudformation:{_REGION_AND_ACCOUNT}:stack/Mendq/*",),
    "dynamodb:Query": (_TABLE_ARN, f"{_TABLE_ARN}/index/*"),
    "dynamodb:": (_TABLE_ARN,),
    "events:": (
        f"arn:aws:events:{_REGION_AND_ACCOUNT}:rule/Mendq-*",
        f"arn:aws:events:{_REGION_AND_ACCOUNT}:rule/default/Mendq-*",
    ),
    "iam:": ("arn:aws:iam::ACCOUNT:role/mendq-*",),
    INVOKE_LAMBDA_ACTION: (
        f"arn:aws:lambda:{_REGION_AND_ACCOUNT}:function:Mendq-Approve*",
        f"arn:aws:lambda:{_REGION_AND_ACCOUNT}:function:Mendq-Rollback*",
    ),
    "s3:GetObject": ("arn:aws:s3:::mendq-*/*",),
    "s3:ListBucket": ("arn:aws:s3:::mendq-*",),
    "scheduler:": (f"arn:aws:scheduler:{_REGION_AND_ACCOUNT}:schedule/*/Mendq-*",),
    "sns:": (f"arn:aws:sns:{_REGION_AND_ACCOUNT}:Mendq-*",),
}


def _collect_resources_by_action() -> Mapping[str, tuple[str, ...]]:
    """Return the resources of IAM actions: Mendq's own, and those that commands declare."""
    resources_by_action = dict(_MENDQ_RESOURCES_BY_ACTION_OR_SERVICE)
    for command in list_commands():
        resources_by_action.update(command.resources_by_action)
    return resources_by_action


_RESOURCES_BY_ACTION_OR_SERVICE = _collect_resources_by_action()
_READ_ACTIONS = frozenset().union(*LOOK_ACTIONS_BY_COMMAND.values())


def make_look_policy() -> dict[str, Any]:
    """Return the policy for people who may see everything and change nothing."""
    return make_policy(_READ_ACTIONS)


def make_steer_policy() -> dict[str, Any]:
    """Return the policy that people need to control Mendq, in addition to the look policy."""
    return make_policy(frozenset().union(*STEER_ACTIONS_BY_COMMAND.values()) - _READ_ACTIONS)


def make_record_policy() -> dict[str, Any]:
    """Return the policy of `mendq drill --record DIR`.

    A run needs further KMS rights. They come from the policy of the key that the run makes.
    """
    statements = [
        {"Effect": "Allow", "Action": actions, "Resource": [resource]}
        for resource, actions in IAM_ACTIONS_FOR_RECORD_BY_RESOURCE.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def make_policy(actions: Iterable[str]) -> dict[str, Any]:
    """Return a policy that allows `actions`.

    Actions on the same resources share a statement. Actions that are not on Mendq's own resources
    get `*` unless the command declares some.
    """
    actions_by_resources = defaultdict[tuple[str, ...], list[str]](list)
    for action in sorted(actions):
        service, _, _ = action.partition(":")
        resources = _RESOURCES_BY_ACTION_OR_SERVICE.get(f"{service}:", ("*",))
        resources = _RESOURCES_BY_ACTION_OR_SERVICE.get(action, resources)
        actions_by_resources[resources].append(action)
    statements = [
        {"Effect": "Allow", "Action": actions_on_resources, "Resource": list(resources)}
        for resources, actions_on_resources in actions_by_resources.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}
