"""Which IAM actions a command takes, noted of every request that its own code sends."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from mendq.cli.commands import ActionsByCommand, list_commands
from tests.infra.aws_calls import Sent

ROOT = Path(__file__).resolve().parents[2]
# The IAM actions that each command declares, by the command as it is typed.
ACTIONS_BY_COMMAND: ActionsByCommand = {
    command.full_name: command.actions for command in list_commands()
}
_OURS = tuple(f"{ROOT / each}/" for each in ("mendq", "functions"))
_TESTS = f"{ROOT / 'tests'}/"
_OUTERMOST = f"{ROOT / 'mendq' / 'cli' / 'invocation.py'}"
_SEND = "_make_api_call"
_send = vars(BaseClient)[_SEND]


def find_command_name(arguments: Sequence[str]) -> str:
    """`quarantine` has commands of its own."""
    names = (" ".join(arguments[:2]), *arguments[:1])
    return next((each for each in names if each in ACTIONS_BY_COMMAND), "")


@contextmanager
def record_called_actions() -> Iterator[set[str]]:
    """Fills the set for as long as the block lasts."""
    actions: set[str] = set()

    def send(self: Any, operation: str, params: Mapping[str, Any]) -> Any:
        if _is_the_commands_own():
            sent = Sent(self.meta.service_model.service_name, operation, params, frozenset())
            actions.update(sent.actions())
        return _send(self, operation, params)

    with patch.object(BaseClient, _SEND, send):
        yield actions
    actions.discard("sts:GetCallerIdentity")  # which anybody may


def _is_the_commands_own() -> bool:
    """Neither a test's, nor a Lambda's that runs within the test."""
    frame, found = sys._getframe(2), False
    while frame is not None and frame.f_code.co_filename != _OUTERMOST:
        file = frame.f_code.co_filename
        if file.startswith(_TESTS):
            return False
        found = found or file.startswith(_OURS)
        frame = frame.f_back  # type: ignore[assignment]
    return found
