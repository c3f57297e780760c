"""Record the IAM actions of the requests that a command's own code sends."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from mendq.cli.commands import ActionsByCommand, list_commands
from tests.infra.aws_calls import SentRequest

ROOT = Path(__file__).resolve().parents[2]
# The IAM actions that each command declares, by the command as it is typed.
ACTIONS_BY_COMMAND: ActionsByCommand = {
    command.full_name: command.actions for command in list_commands()
}
_OURS = tuple(f"{ROOT / package}/" for package in ("mendq", "functions"))
_TESTS = f"{ROOT / 'tests'}/"
_OUTERMOST = f"{ROOT / 'mendq' / 'cli' / 'invocation.py'}"
_SEND = "_make_api_call"
_send = vars(BaseClient)[_SEND]


def find_command_name(arguments: Sequence[str]) -> str:
    """Return the name of the command, such as `cases` or `quarantine peek`."""
    names = (" ".join(arguments[:2]), *arguments[:1])
    return next((name for name in names if name in ACTIONS_BY_COMMAND), "")


@contextmanager
def record_called_actions() -> Iterator[set[str]]:
    """Add the IAM action of each request to the returned set while the block runs."""
    actions: set[str] = set()

    def send(self: Any, operation: str, params: Mapping[str, Any]) -> Any:
        if _is_sent_by_the_command():
            sent = SentRequest(self.meta.service_model.service_name, operation, params, frozenset())
            actions.update(sent.actions())
        return _send(self, operation, params)

    with patch.object(BaseClient, _SEND, send):
        yield actions
    actions.discard("sts:GetCallerIdentity")  # every caller may call this


def _is_sent_by_the_command() -> bool:
    """True unless a test, or a Lambda function that runs within the test, sends the request."""
    frame = sys._getframe(2)
    is_ours = False
    while frame is not None and frame.f_code.co_filename != _OUTERMOST:
        file = frame.f_code.co_filename
        if file.startswith(_TESTS):
            return False
        is_ours = is_ours or file.startswith(_OURS)
        frame = frame.f_back  # type: ignore[assignment]
    return is_ours
