"""The two policies of docs/rights.md are enough, where permissions are enforced.

Each command runs with the credentials of a user who has these policies and nothing else.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from local_account.process import LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.cli.app import app
from mendq.cli.permissions import make_look_policy, make_steer_policy
from tests.cli.called_actions import ACTIONS_BY_COMMAND, find_command_name, record_called_actions
from tests.local_account.callers import policy, user
from tests.local_account.mendq_here import open_proposal
from tests.local_account.queues import Queue, new_queue

pytestmark = [pytest.mark.account, pytest.mark.long]
OLD_MINUTES = 90
RETAINED = 4  # the table and three buckets


class Person:
    """Somebody with these policies and no others."""

    def __init__(self, account: LocalAccount, *policies: dict[str, Any]) -> None:
        self.account = account
        statements = [
            statement
            for policy_document in policies
            for statement in _fill_in(policy_document)["Statement"]
        ]
        self.arn, keys = user(account, *statements)
        self.asked: set[str] = set()
        self._environment = {
            **{name.upper(): value for name, value in keys.items()},
            "AWS_ENDPOINT_URL": account.endpoint_url,
            "AWS_REGION": REGION,
        }

    def mendq(self, *arguments: str, code: int | None = 0) -> Any:
        """The document; what was asked is what its command is said to ask."""
        with patch.dict(os.environ, self._environment), record_called_actions() as asked:
            result = CliRunner().invoke(app, [*arguments, "--json"], prog_name="mendq")
        assert code is None or result.exit_code == code, (arguments, result.output)
        assert asked <= ACTIONS_BY_COMMAND[find_command_name(arguments)]
        self.asked |= asked
        return json.loads(result.stdout)

    def is_refused(self, *arguments: str) -> None:
        """Require that AWS denies a command that needs the steer policy."""
        assert self.mendq(*arguments, code=1)["error"]["code"].startswith("AccessDenied")


def _actions(policy: dict[str, Any]) -> set[str]:
    return {action for statement in policy["Statement"] for action in statement["Action"]}


def _fill_in(policy: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(policy).replace("REGION", REGION).replace("ACCOUNT", ACCOUNT)
    filled: dict[str, Any] = json.loads(text)
    return filled


@pytest.fixture
def looker(account: LocalAccount) -> Person:
    return Person(account, make_look_policy())


@pytest.fixture
def proposal(account: LocalAccount) -> tuple[Queue, str]:
    queue = new_queue(account, fifo=True, tags={"mendq": "propose"}, VisibilityTimeout="2")
    statement = {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue"}
    queue.set(Policy=policy({**statement, "Resource": queue.arn}))
    return queue, open_proposal(account, queue)


def test_look_policy_allows_every_read_command_and_no_change(
    looker: Person, proposal: tuple[Queue, str], tmp_path: Path
) -> None:
    queue, case_id = proposal
    doctor = looker.mendq("doctor", code=None)
    assert [check for check in doctor["checks"] if check["status"] == "unknown"] == []
    assert queue.arn in doctor["managed_queues"]
    assert case_id in [case["case_id"] for case in looker.mendq("cases")]
    assert looker.mendq("show", case_id)["state"] == "proposed"
    assert looker.mendq("export", str(tmp_path))["written"]
    assert looker.mendq("scan", "--dry-run")["not_looked_at"] == {}
    looker.mendq("report", code=4)
    assert looker.mendq("cost")["not_looked_at"] == []
    # The table of seal keys is listed as long as the stack is there, with which it is deleted.
    assert len(looker.mendq("resources")) == RETAINED + 1
    looker.mendq("quarantine", "list")
    looker.is_refused("approve", case_id, "--yes")
    looker.is_refused("rollback", case_id, "--yes")
    looker.is_refused("freeze", "why", "--yes")
    looker.account.put_back(queue.arn, OLD_MINUTES)
    looker.is_refused("policy", "pin", queue.arn, "--yes")
    looker.is_refused("drill", "--yes")
    assert looker.mendq("show", case_id)["state"] == "proposed"


def test_look_and_steer_policies_allow_every_operator_change_and_hold_no_unused_action(
    looker: Person, proposal: tuple[Queue, str]
) -> None:
    queue, case_id = proposal
    steerer = Person(looker.account, make_look_policy(), make_steer_policy())
    steerer.mendq("freeze", "why", "--yes")
    looker.is_refused("thaw", "--yes")
    steerer.mendq("thaw", "--yes")
    assert steerer.mendq("approve", case_id, "--yes")["state"] == "applied"
    steerer.mendq("rollback", case_id, "--yes")
    steerer.account.put_back(queue.arn, OLD_MINUTES)
    steerer.mendq("policy", "pin", queue.arn, "--yes")
    assert steerer.mendq("drill", "--yes", "--minutes", "2")["done"]
    assert steerer.asked >= _actions(make_steer_policy())
