"""The pinned CDK CLI gives the same template as `python app.py`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import aws_cdk as cdk
import pytest

from infra.packaging.cdk_cli import CDK_CLI_PACKAGE, NPX_SCRIPT, main, replace_settings_option
from infra.packaging.wheels import ROOT
from infra.synthesis import load_raw_settings
from tests.infra.pinned_cli import NODE, find_first_error
from tests.infra.synthesized import whole_assembly


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_pip_install_and_npx_cdk_synth_in_a_fresh_environment_give_the_template_of_app_py(
    tmp_path: Path,
) -> None:
    """Uses a new virtual environment, its own Node, and cdk.json unchanged."""
    environment = tmp_path / "environment"
    out = tmp_path / "cdk.out"
    venv.create(environment, with_pip=True)
    npx = environment / "bin" / "npx"  # the npx of the wheel does not find its library
    npx.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(NODE / "node"))} {shlex.quote(str(NPX_SCRIPT))} "$@"\n'
    )
    npx.chmod(0o755)
    path = os.pathsep.join((str(environment / "bin"), str(NODE), os.environ["PATH"]))
    activated = {**os.environ, "PATH": path, "CI": "true", "npm_config_yes": "true"}
    for variable in ("PYTHONPATH", "VIRTUAL_ENV", "CDK_OUTDIR"):
        activated.pop(variable, None)
    for command in ("pip install -r requirements.txt", f"npx {CDK_CLI_PACKAGE} synth"):
        words = shlex.split(command) + (["--output", str(out)] if "synth" in command else [])
        done = subprocess.run(
            words, cwd=ROOT, env=activated, capture_output=True, text=True, check=False
        )
        if done.returncode and ("npm error" in done.stderr or "pip" in done.args):
            pytest.skip(f"{command} could not fetch what it takes: {find_first_error(done.stderr)}")
        assert done.returncode == 0, done.stderr
    template = "Mendq.template.json"
    assert (out / template).read_text() == (whole_assembly() / template).read_text()


def test_cdk_settings_option_passes_a_multi_line_settings_file_unchanged(tmp_path: Path) -> None:
    """The file has several lines, and characters at which shells and the CLI split."""
    path = tmp_path / "it's prod.json"
    given = {"mode": "heal", "notifications": {"urgent": ["https://e.example.com/in?key=a=b"]}}
    path.write_text(json.dumps(given, indent=2))
    *rest, option, context = replace_settings_option(["--settings", str(path), "synth", "--quiet"])
    name, _, text = context.partition("=")
    assert option == "--context"
    assert name == "mendq"
    assert rest == ["synth", "--quiet"]
    assert load_raw_settings(cdk.App(context={name: text})) == given


def test_cdk_command_with_a_missing_settings_file_exits_2_and_names_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--settings", str(tmp_path / "gone.json"), "deploy"]) == 2
    assert "gone.json: cannot be read" in capfd.readouterr().err


def test_cdk_arguments_without_a_settings_option_are_passed_on_unchanged() -> None:
    typed = ["deploy", "Mendq-444455556666-eu-west-1", "--profile", "staging"]
    assert replace_settings_option(typed) == typed


@pytest.mark.long
def test_make_cdk_runs_the_pinned_cdk_cli_version() -> None:
    """The README documents this command. npx downloads the CLI if it is missing."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.packaging.cdk_cli", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "npm error" in done.stderr:
        pytest.skip(f"npx could not fetch {CDK_CLI_PACKAGE}: {find_first_error(done.stderr)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CDK_CLI_PACKAGE.split("@")[1])
