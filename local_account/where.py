"""Address, account id, Region and credentials of the local account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

HOST = "127.0.0.1"
ACCOUNT = "000000000000"
REGION = "us-east-1"
REPOSITORY = Path(__file__).resolve().parent.parent
# Has one folder per running account, named by its port.
ACCOUNTS_FOLDER = REPOSITORY / "build" / "account"
ASSEMBLIES_FOLDER = REPOSITORY / "build" / "assemblies"  # synthesized stacks
CREDENTIALS_FILE_NAME = "credentials"
# Profile of the credentials file -> the account whose root user it is.
ACCOUNT_BY_PROFILE: Mapping[str, str] = {
    "default": "000000000000",
    "other-account": "111111111111",
    "third-account": "222222222222",
    "fourth-account": "333333333333",
}
# All these accounts are members of this organization.
ORGANIZATION_ID = "o-localaccount"
# Exit codes.
WRONG_USE_EXIT_CODE = 2
FAILURE_EXIT_CODE = 1
# For clients inside the account's own process: a failed call would fail again, so no retries.
NO_RETRIES_CONFIGURATION = Config(
    retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}
)


class CannotStart(Exception):
    """Raised if the account cannot start. The text is one line: the cause, and often the remedy."""

    def __init__(self, message: str, exit_code: int = WRONG_USE_EXIT_CODE) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code


def make_endpoint_url(port: int) -> str:
    """Return the endpoint URL of the account that listens on `port`."""
    return f"http://{HOST}:{port}"


def make_operator_variables(url: str) -> dict[str, str]:
    """Return the environment variables that make AWS clients use the account at `url`."""
    credentials_path = ACCOUNTS_FOLDER / url.rpartition(":")[2] / CREDENTIALS_FILE_NAME
    return {"AWS_SHARED_CREDENTIALS_FILE": str(credentials_path), "AWS_ENDPOINT_URL": url}


def make_shell_environment(url: str) -> dict[str, str]:
    """Return the environment of a process whose AWS clients use only the account at `url`."""
    other_variables = {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_")
    }
    return other_variables | make_operator_variables(url)


def read_credentials(url: str, profile: str = "default") -> dict[str, str]:
    """Return the access key and secret key of a profile, as keyword arguments of a boto3 client.

    Args:
        url: Endpoint URL of the account.
        profile: One of `ACCOUNT_BY_PROFILE`.
    """
    credentials_parser = ConfigParser()
    credentials_parser.read(make_operator_variables(url)["AWS_SHARED_CREDENTIALS_FILE"])
    return {name: value for name, value in credentials_parser[profile].items() if name != "region"}


def make_client(service_name: str, url: str, **arguments: Any) -> Any:
    """Return a boto3 client for the account at `url`.

    The client calls as the root user, unless `arguments` has an access key.
    """
    access_keys = {} if "aws_access_key_id" in arguments else read_credentials(url)
    default_arguments = {"region_name": REGION, **access_keys}
    return boto3.client(service_name, endpoint_url=url, **{**default_arguments, **arguments})
