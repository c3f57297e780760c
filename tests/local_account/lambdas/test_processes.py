"""What a Lambda's process may see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from local_account.lambdas.processes import lambda_environment, link_packages

PACKAGES = Path("/runtime")
FUNCTION = {"Runtime": "python3.13", "Environment": {"Variables": {"MENDQ_MODE": "heal"}}}


def test_a_lambda_sees_its_own_variables_and_nothing_of_ours() -> None:
    spawned = {
        "MENDQ_MODE": "heal",
        "MENDQ_CASE_TABLE": "set by whoever started the account",
        "AUTH": "true",
        "PYTHONPATH": "/somewhere",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "PATH": "/bin",
    }
    assert lambda_environment(spawned, FUNCTION, PACKAGES) == {
        "MENDQ_MODE": "heal",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "PATH": "/bin",
        "PYTHONPATH": "/runtime",
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "MENDQ_MOST_DAYS_AHEAD": "15",
    }


def test_a_lambda_imports_the_sdk_and_no_package_of_ours(tmp_path: Path) -> None:
    link_packages(tmp_path / "runtime")

    def imports(name: str) -> bool:
        command = [sys.executable, "-S", "-c", f"import {name}"]
        environment = {"PYTHONPATH": str(tmp_path / "runtime"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        return done.returncode == 0

    assert not imports("aws_lambda_powertools")
    assert not imports("pytest")
    assert imports("boto3, botocore, s3transfer, jmespath, urllib3, dateutil, six")
