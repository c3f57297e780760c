"""`mendq` within this process, for what is asked again and again: a start is most of a command."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner, Result

from local_account.process import LocalAccount
from local_account.where import make_shell_environment
from mendq.cli.app import app
from tests.local_account.queues import Queue, eventually, fail_late


def mendq_here(
    account: LocalAccount,
    *arguments: str,
    columns: int = 80,
    credentials: Mapping[str, str] | None = None,
) -> Result:
    """Run a command as somebody with credentials for the account.

    `credentials` are those of a user, as `callers.user` returns them; None for every right.
    """
    variables = make_shell_environment(account.endpoint_url) | {"COLUMNS": f"{columns}"}
    variables |= {name.upper(): value for name, value in (credentials or {}).items()}
    with patch.dict(os.environ, variables, clear=True):
        result = CliRunner().invoke(app, arguments, prog_name="mendq")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def newest_case(account: LocalAccount, queue: Queue) -> dict[str, Any]:
    """Return the newest case about a queue, or an empty dict if there is none."""
    cases = json.loads(mendq_here(account, "cases", "--json").stdout)
    return dict(next((case for case in cases if case["queue_arn"] == queue.arn), {}))


def wait_for_case(account: LocalAccount, queue: Queue, state: str) -> str:
    """The id of the queue's newest case, once it is in that state."""
    eventually(lambda: newest_case(account, queue).get("state") == state, every_seconds=0.5)
    return str(newest_case(account, queue)["case_id"])


def open_proposal(account: LocalAccount, queue: Queue) -> str:
    """The id of the case that heal opens once deletes of a FIFO queue have come late."""
    fail_late(queue, times=4)
    return wait_for_case(account, queue, "proposed")
