"""The pinned CDK CLI, as a user runs it: it gives what `python app.py` gives, and deploys it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.packaging.cdk_cli import CLI, main, with_settings
from infra.packaging.wheels import ROOT
from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.model.settings import variable_of
from tests.infra.pinned_cli import cdk, first_error, identity, status
from tests.infra.synthesized import whole_assembly


def test_it_gives_the_template_that_app_py_gives(cli: Path, tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"
    done = cdk(cli, tmp_path, "synth", "--quiet", "--output", str(out))
    assert done.returncode == 0, done.stderr
    for name in ("Mendq.template.json", "Mendq.assets.json"):
        assert (out / name).read_text() == (whole_assembly() / name).read_text(), name
    listed = cdk(cli, tmp_path, "ls", "--app", str(out))
    assert listed.stdout.split() == ["Mendq"], listed.stderr


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
    path = tmp_path / "it's prod.json"
    path.write_text(
        json.dumps({"queues": ["it's orders", "a b"], "notifications": notifications}, indent=2)
    )
    done = cdk(
        cli,
        tmp_path,
        *with_settings(["--settings", str(path), "synth", "--quiet"]),
        *("--output", str(tmp_path / "cdk.out")),
    )
    assert done.returncode == 1
    assert "it's orders" in done.stderr
    path.write_text(json.dumps({"mode": "observe", "notifications": notifications}, indent=2))
    words = with_settings(["--settings", str(path), "synth", "--quiet"])
    done = cdk(cli, tmp_path, *words, "--output", str(tmp_path / "cdk.out"))
    assert done.returncode == 0, done.stderr
    assert notifications["urgent"][0] in (tmp_path / "cdk.out" / "Mendq.template.json").read_text()


def test_a_file_without_settings_starts_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--settings", str(tmp_path / "gone.json"), "deploy"]) == 2
    assert "gone.json cannot be read" in capfd.readouterr().err


def test_without_a_file_the_cli_gets_what_was_typed() -> None:
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
    shipped = ("--app", str(whole_assembly()), "--require-approval", "never")
    assert _may_be_raised_to(own_account) == "heal"
    run("deploy", *shipped)
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
