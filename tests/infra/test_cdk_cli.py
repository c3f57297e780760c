"""The pinned CDK CLI, as a user runs it: it gives what `python app.py` gives, and deploys it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.packaging.cdk_cli import CLI, HEAD, NPX, hint, main, with_settings
from infra.packaging.wheels import ROOT
from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.model.settings import variable_of
from tests.infra.pinned_cli import NODE, cdk, first_error, identity, status
from tests.infra.synthesized import folder_of, folder_of_three, whole_assembly


def test_it_gives_the_template_that_app_py_gives(cli: Path, tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"
    done = cdk(cli, tmp_path, "synth", "--quiet", "--output", str(out))
    assert done.returncode == 0, done.stderr
    for name in ("Mendq.template.json", "Mendq.assets.json"):
        assert (out / name).read_text() == (whole_assembly() / name).read_text(), name
    listed = cdk(cli, tmp_path, "ls", "--app", str(out))
    assert listed.stdout.split() == ["Mendq"], listed.stderr


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_the_two_commands_of_a_reader_synthesize_the_stack(tmp_path: Path) -> None:
    """In an environment of his own, activated, with a Node of his own and cdk.json as it stands."""
    environment, out = tmp_path / "environment", tmp_path / "cdk.out"
    venv.create(environment, with_pip=True)
    npx = environment / "bin" / "npx"  # the wheel's own does not find its library
    npx.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(NODE / "node"))} {shlex.quote(str(NPX))} "$@"\n'
    )
    npx.chmod(0o755)
    path = os.pathsep.join((str(environment / "bin"), str(NODE), os.environ["PATH"]))
    activated = {**os.environ, "PATH": path, "CI": "true", "npm_config_yes": "true"}
    for variable in ("PYTHONPATH", "VIRTUAL_ENV", "CDK_OUTDIR"):
        activated.pop(variable, None)
    for command in ("pip install -r requirements.txt", f"npx {CLI} synth"):
        words = shlex.split(command) + (["--output", str(out)] if "synth" in command else [])
        done = subprocess.run(
            words, cwd=ROOT, env=activated, capture_output=True, text=True, check=False
        )
        if done.returncode and ("npm error" in done.stderr or "pip" in done.args):
            pytest.skip(f"{command} could not fetch what it takes: {first_error(done.stderr)}")
        assert done.returncode == 0, done.stderr
    template = "Mendq.template.json"
    assert (out / template).read_text() == (whole_assembly() / template).read_text()


def test_its_context_wins_and_mistakes_are_passed_on(cli: Path, tmp_path: Path) -> None:
    mistaken = 'mendq={"mode": "Heal", "modus": 1}'
    done = cdk(cli, tmp_path, "synth", "--output", str(tmp_path / "cdk.out"), "-c", mistaken)
    assert done.returncode == 1
    assert "modus: no such setting; did you mean mode?" in done.stderr
    assert 'mode: "Heal" is not observe, propose or heal; did you mean heal?' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_settings_takes_the_place_of_the_whole_object(cli: Path, tmp_path: Path) -> None:
    """Over several lines, and with what shells and the CLI split at."""
    notifications = {"urgent": ["https://events.example.com/in?key=a=b"]}
    path, out = tmp_path / "it's prod.json", tmp_path / "cdk.out"
    words = ["--settings", str(path), "synth", "--quiet"]
    path.write_text(
        json.dumps({"queues": ["it's orders", "a b"], "notifications": notifications}, indent=2)
    )
    done = cdk(cli, tmp_path, *with_settings(words), "--output", str(out))
    assert done.returncode == 1
    assert "it's orders" in done.stderr
    path.write_text(json.dumps({"mode": "observe", "notifications": notifications}, indent=2))
    done = cdk(cli, tmp_path, *with_settings(words), "--output", str(out))
    assert done.returncode == 0, done.stderr
    assert notifications["urgent"][0] in (out / "Mendq.template.json").read_text()


def test_a_file_without_settings_starts_nothing_and_without_one_the_cli_gets_what_was_typed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--settings", str(tmp_path / "gone.json"), "deploy"]) == 2
    assert "gone.json cannot be read" in capfd.readouterr().err
    typed = ["deploy", "Mendq-444455556666-eu-west-1", "--profile", "staging"]
    assert with_settings(typed) == typed


@pytest.fixture
def own_account() -> Iterator[LocalAccount]:
    """An account for one test, which deploys to it."""
    with LocalAccount() as running:
        yield running


@pytest.mark.account
@pytest.mark.long
@pytest.mark.parametrize("bootstraps", [False, True])
def test_it_deploys(cli: Path, tmp_path: Path, own_account: LocalAccount, bootstraps: bool) -> None:
    """What we ship, onto the stack that the account made: with our own rights, or the CLI's."""

    def run(*arguments: str) -> None:
        done = cdk(cli, tmp_path, *arguments, **identity(own_account))
        assert done.returncode == 0, done.stderr

    if bootstraps:
        run("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    assert _may_be_raised_to(own_account) == "heal"
    run("deploy", "--app", str(whole_assembly()), "--require-approval", "never")
    assert _may_be_raised_to(own_account) == "observe"
    assert status(own_account, STACK_NAME) == "UPDATE_COMPLETE"
    assert status(own_account, "CDKToolkit") == f"{'UPDATE' if bootstraps else 'CREATE'}_COMPLETE"


def _may_be_raised_to(account: LocalAccount) -> str:
    """The setting, as the deployed heal Lambda has it."""
    (variables,) = (
        each["Environment"]["Variables"]
        for each in account.client("lambda").list_functions()["Functions"]
        if each["Role"].endswith(f":role/mendq-heal-{REGION}")
    )
    return str(json.loads(variables[variable_of("tag_may_raise_to")]))


def test_make_cdk_runs_the_pinned_version() -> None:
    """As the README says it; npx fetches it where it is not there."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.packaging.cdk_cli", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "npm error" in done.stderr:
        pytest.skip(f"npx could not fetch {CLI}: {first_error(done.stderr)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CLI.split("@")[1])


RESOURCES = "  .venv/bin/mendq resources"
IRELAND = "Mendq-444455556666-eu-west-1"


@pytest.mark.parametrize("arguments", [["deploy"], ["diff"], ["ls", "--profile", "staging"], []])
def test_nothing_is_printed_where_nothing_was_destroyed(arguments: list[str]) -> None:
    assert hint(arguments, folder_of("default")) == []


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], ["--region us-east-1"]),
        (["--profile", "staging"], ["--profile staging --region us-east-1"]),
        (["--profile=staging"], ["--profile staging --region us-east-1"]),
        (["--profile", "a b; c"], ["--profile 'a b; c' --region us-east-1"]),
    ],
)
def test_after_a_destroy_it_is_said_where_to_ask_for_what_stayed(
    arguments: list[str], asked: list[str]
) -> None:
    said = hint(["destroy", *arguments], folder_of("default"))
    assert said == [HEAD, *(f"{RESOURCES} {each}" for each in asked)]


def test_of_the_stacks_that_are_named_or_all_and_without_an_assembly_of_any(tmp_path: Path) -> None:
    three = folder_of_three()
    assert hint(["destroy", IRELAND], three) == [HEAD, f"{RESOURCES} --region eu-west-1"]
    for stacks in ("--all", "Mendq-*"):
        regions = {line.rpartition(" ")[2] for line in hint(["destroy", stacks], three)[1:]}
        assert regions == {"us-east-1", "ap-southeast-4", "eu-west-1"}
    assert hint(["destroy"], tmp_path) == [HEAD, f"{RESOURCES} --region REGION"]
