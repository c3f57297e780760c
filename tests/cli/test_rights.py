"""Test the IAM actions that commands declare. `Operator.run` checks that no other is called."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from botocore import xform_name
from typer.core import TyperGroup
from typer.main import get_command

from mendq.cli import commands
from mendq.cli.app import app
from mendq.cli.command_group import find_commands
from mendq.cli.permissions import (
    LOOK_ACTIONS_BY_COMMAND,
    MESSAGES_ACTIONS_BY_COMMAND,
    OFFLINE_ACTIONS_BY_COMMAND,
    STEER_ACTIONS_BY_COMMAND,
    make_look_policy,
    make_steer_policy,
)
from tests.cli.called_actions import ACTIONS_BY_COMMAND, ROOT
from tests.infra.named_calls import find_used_definitions, list_words

# The API calls of an IAM action whose name is not the API's.
_CALLED = {
    "dynamodb:GetItem": ("get_item", "transact_get_items"),
    "lambda:InvokeFunction": ("invoke",),
    "s3:ListAllMyBuckets": ("list_buckets",),
    "s3:ListBucket": ("head_bucket", "list_objects_v2"),
    "sqs:ChangeMessageVisibility": ("change_message_visibility", "change_message_visibility_batch"),
    "sqs:DeleteMessage": ("delete_message", "delete_message_batch"),
    "sqs:SendMessage": ("send_message", "send_message_batch"),
    "sqs:TagQueue": ("create_queue",),
}
# CheckNo: Access Analyzer only judges the policies in the request.
_READS = ("CheckNo", "Describe", "Get", "List", "Lookup", "Query", "Scan")


def test_every_command_declares_its_iam_actions_in_exactly_one_group() -> None:
    commands_of_app = set()
    for name, command in cast("TyperGroup", get_command(app)).commands.items():
        subcommands = command.commands if isinstance(command, TyperGroup) else [""]
        commands_of_app |= {f"{name} {subcommand}".strip() for subcommand in subcommands}
    groups = (
        LOOK_ACTIONS_BY_COMMAND,
        STEER_ACTIONS_BY_COMMAND,
        MESSAGES_ACTIONS_BY_COMMAND,
        OFFLINE_ACTIONS_BY_COMMAND,
    )
    declared_commands = [command for group in groups for command in group]
    assert sorted(declared_commands) == sorted(commands_of_app)


def test_mendq_help_lists_every_declared_command() -> None:
    declared = (command.full_name.partition(" ")[0] for command in commands.list_commands())
    assert [*dict.fromkeys(declared)] == [*find_commands()]


def test_starting_mendq_does_not_import_boto3() -> None:
    program = "import sys; from mendq.cli import __main__; print('boto3' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_listing_the_commands_for_help_imports_no_aws_library() -> None:
    """Importing boto3 takes a third of a second, which help must not cost."""
    program = (
        "import sys; from mendq.cli.commands import list_commands; list_commands();"
        "print([each for each in ('boto3', 'botocore.session', 'urllib3') if each in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(
    "command",
    [command for command in ACTIONS_BY_COMMAND if command not in OFFLINE_ACTIONS_BY_COMMAND],
)
def test_command_declares_only_iam_actions_that_its_code_calls(command: str) -> None:
    words = _list_called_words(command)
    for action in ACTIONS_BY_COMMAND[command]:
        operation = action.partition(":")[2]
        calls = _CALLED.get(action, (xform_name(operation),))
        assert words & set(calls), (
            f"`mendq {command}` declares {action} in its @command, and its code calls none of "
            f"{', '.join(calls)}: remove the action. If IAM's word for the call is not the "
            "API's, add both to _CALLED here."
        )


@cache
def _list_called_words(command: str) -> frozenset[str]:
    (module,) = (
        declared.run_command.__module__
        for declared in commands.list_commands()
        if declared.full_name == command
    )
    return frozenset(
        word
        for nodes in find_used_definitions(
            ROOT / Path(*module.split(".")).with_suffix(".py")
        ).values()
        for node in nodes
        for word in list_words(node)
    )


def test_look_policy_allows_only_read_actions() -> None:
    actions = [
        action for statement in make_look_policy()["Statement"] for action in statement["Action"]
    ]
    assert all(action.partition(":")[2].startswith(_READS) for action in actions)


def test_steer_policy_allows_actions_only_on_mendqs_own_resources() -> None:
    for statement in make_steer_policy()["Statement"]:
        assert all("endq-" in resource for resource in statement["Resource"])
