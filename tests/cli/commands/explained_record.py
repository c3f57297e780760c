"""What `mendq explain` says of one record: golden files `explained.json` and `explained.txt`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app

JSON_FILE = "tests/cli/commands/explained.json"
TEXT_FILE = "tests/cli/commands/explained.txt"
RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("record.json").read_text())


def render_json() -> str:
    """Return the text of `explained.json` as the command is now."""
    return json.dumps(json.loads(_explain("--json")), indent=2) + "\n"


def render_text() -> str:
    """Return the text of `explained.txt` as the command is now, in a terminal of 70 columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "70")
        return _explain()


def _explain(*options: str) -> str:
    content = json.dumps(RECORD).encode()
    return CliRunner().invoke(app, ["explain", "-", *options], input=content).stdout
