"""`mendq` within this process, for what is asked again and again: a start is most of a command."""

from __future__ import annotations

import os
from unittest.mock import patch

from typer.testing import CliRunner, Result

from local_account.process import LocalAccount
from local_account.where import operator
from mendq.cli.__main__ import app


def mendq_here(account: LocalAccount, *arguments: str, columns: int = 80) -> Result:
    """Run a command as somebody with credentials for the account."""
    shell = operator(account.endpoint_url) | {"COLUMNS": f"{columns}"}
    with patch.dict(os.environ, shell):
        result = CliRunner().invoke(app, arguments, prog_name="mendq")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
