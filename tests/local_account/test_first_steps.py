"""What `make account` says once it is ready."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from local_account.account_settings import checked, first_steps, raw_settings
from local_account.where import ACCOUNT
from mendq.cli.__main__ import app
from tests.local_account.assemblies import write_assembly

URL = "http://127.0.0.1:4566"
SETTINGS = checked(raw_settings(None))


def _under(heading: str, text: str) -> list[str]:
    return text.partition(f"{heading}\n")[2].partition("\n\n")[0].splitlines()


def test_the_exports_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in _under("In another shell:", first_steps(URL, SETTINGS)):
        word, assignment = shlex.split(line)
        assert word == "export"
        monkeypatch.setenv(*assignment.split("=", 1))
    session = boto3.Session()
    assert session.client("sqs").meta.endpoint_url == URL
    assert session.region_name == os.environ["AWS_REGION"]
    credentials = session.get_credentials()
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key) == ("test", "test")


def test_the_settings_in_force_are_those_deployed(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"mode": "propose", "timing": {"propagationSeconds": 60}}')
    changed = first_steps(URL, checked(raw_settings(path)))
    assert _under("Settings in force:", changed) == [
        "  mode propose, tagMayRaiseTo heal",
        "  floor lowered: none",
    ]
    shipped = _under("Settings in force:", first_steps(URL, SETTINGS))
    assert shipped[0] == "  mode observe, tagMayRaiseTo heal"
    assert shipped[1].startswith("  floor lowered: timing.propagationSeconds: 0 instead of")


def test_each_command_to_try_is_there_and_its_options_too() -> None:
    commands = _under("To try there, in this folder:", first_steps(URL, SETTINGS))
    assert len(commands) == 3
    for line in commands:
        program, command, *options = shlex.split(line.partition("#")[0])
        assert program == ".venv/bin/mendq"
        help_text = CliRunner().invoke(app, [command, "--help"])
        assert help_text.exit_code == 0
        assert all(each in help_text.stdout for each in options)


@pytest.mark.account
def test_they_follow_the_ready_line_which_stays_one_line(tmp_path: Path) -> None:
    process = _account(tmp_path)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("  export AWS_DEFAULT_REGION"):
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    (ready,) = (each for each in lines if each.startswith("ready "))
    url = ready.split()[1]
    assert ready == f"ready {url} account={ACCOUNT} region=us-east-1"
    assert f"  export AWS_ENDPOINT_URL={url}" in lines[lines.index(ready) :]
    assert process.returncode == 0


def _account(folder: Path) -> subprocess.Popen[str]:
    assembly = write_assembly(folder / "cdk.out")
    return subprocess.Popen(
        [sys.executable, "-m", "local_account", "--assembly", str(assembly)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
