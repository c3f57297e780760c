"""Where the local account is and who may call it: the facts that every part of it shares."""

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
PORTS = REPOSITORY / "build" / "account"  # a folder for each port that is served
CACHE = REPOSITORY / "build" / "assemblies"  # what was synthesized
CREDENTIALS = "credentials"
# The profiles of that file: the root user of each account.
_NAMES = ("default", "other-account", "third-account", "fourth-account")
PROFILES: Mapping[str, str] = {name: f"{n}" * 12 for n, name in enumerate(_NAMES)}
# Every account here is of it.
ORGANIZATION = "o-localaccount"
WRONG_USE, FAILED = 2, 1
# Of clients in our own process: one try, what fails there fails again.
ONCE = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})


class CannotStart(Exception):
    """The account cannot start; the text is one line that names the cause and the remedy."""

    def __init__(self, line: str, exit_code: int = WRONG_USE) -> None:
        super().__init__(" ".join(line.split()))
        self.exit_code = exit_code


def endpoint_url(port: int) -> str:
    """The address that clients use."""
    return f"http://{HOST}:{port}"


def operator(url: str) -> dict[str, str]:
    """The variables that a shell needs to work with the account at `url`."""
    path = PORTS / url.rpartition(":")[2] / CREDENTIALS
    return {"AWS_SHARED_CREDENTIALS_FILE": str(path), "AWS_ENDPOINT_URL": url}


def shell(url: str) -> dict[str, str]:
    """The environment of a shell that works with that account and knows of no other."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return others | operator(url)


def credentials(url: str, profile: str = "default") -> dict[str, str]:
    """The access key of a profile of the account at `url`, named as boto3 takes it."""
    file = ConfigParser()
    file.read(operator(url)["AWS_SHARED_CREDENTIALS_FILE"])
    return {name: value for name, value in file[profile].items() if name != "region"}


def client(service_name: str, url: str, **more: Any) -> Any:
    """A boto3 client of the account at `url`; its root user unless `more` says who calls."""
    keys = {} if "aws_access_key_id" in more else credentials(url)
    return boto3.client(service_name, endpoint_url=url, **{"region_name": REGION, **keys, **more})
